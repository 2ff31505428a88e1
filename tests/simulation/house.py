"""The host's own code in the simulation: an approver, hooks and a tool, good and bad ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from steersman.hooks import HookAnswer, Hooks, PostToolUse, PreToolUse, Stop, UserPromptSubmit, deny
from steersman.permissions import Allow, Deny, PermissionContext

COMMAND = re.compile(r"touch (\w+):p\d\.\w+")
FOR_EVER = 3600.0 * 24 * 365


class House:
    """Decides by the first word of a command, and records its decisions and what ran."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.denied: set[str] = set()
        self.ran: list[str] = []
        """Commands that the CLI ran."""
        self.noted: list[str] = []
        """Tags of the calls of the Python tool."""

    # The CLI's Bash

    def bash(self, given: Mapping[str, Any]) -> str:
        """Run a command, as it were."""
        self.ran.append(str(given.get("command")))
        return "ran"

    # Ours

    async def note(self, tag: str, manner: str) -> str:
        """Write down a tag."""
        self.noted.append(tag)
        if manner == "raise":
            raise ZeroDivisionError(tag)
        await asyncio.sleep({"slow": 3.0, "hang": FOR_EVER}.get(manner, 0.0))
        return f"noted {tag}"

    async def approve(
        self, _name: str, given: dict[str, Any], _context: PermissionContext
    ) -> Allow | Deny:
        """Allow commands that begin with `allow`, deny others; sometimes late or with an error."""
        command = str(given.get("command"))
        verdict = found[1] if (found := COMMAND.fullmatch(command)) else "deny"
        await asyncio.sleep({"slow": 2.0, "hang": FOR_EVER}.get(verdict, 0.0))
        if verdict in ("allow", "slow"):
            self.allowed.add(command)
            return Allow()
        self.denied.add(command)
        if verdict == "raise":
            raise ZeroDivisionError(command)
        if verdict == "nonsense":
            return "yes"  # type: ignore[return-value]
        return Deny("not here", interrupt=verdict == "stop")

    async def guard(self, event: PreToolUse) -> HookAnswer:
        """Stop what is guarded, before anyone is asked."""
        command = str(event.tool_input.get("command"))
        await asyncio.sleep(0)
        if "guarded:" in command:
            self.denied.add(command)
            return deny("house rule")
        if "broken:" in command:
            self.denied.add(command)
            raise ZeroDivisionError(command)
        return None

    @property
    def hooks(self) -> Hooks:
        """All of its hooks."""
        hooks = Hooks()
        hooks.on(PreToolUse, "Bash")(self.guard)
        hooks.on(PreToolUse)(_look_on)
        hooks.on(PostToolUse)(_look_on)
        hooks.on(UserPromptSubmit)(_look_on)
        hooks.on(Stop)(_look_on)
        return hooks


async def _look_on(_event: object) -> None:
    await asyncio.sleep(0)
