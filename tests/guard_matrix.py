"""Every kind of guard, and every way in which one fails: the tool must not run.

The command of a call names the failure: the guard that is asked about `touch raises` raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from steersman.hooks import HookMatcher, Hooks, PermissionRequest, PreToolUse
from steersman.inbox import Inbox
from steersman.permissions import Allow
from steersman.permissions.policy import Policy, allow, ask, deny
from steersman.permissions.rules import ToolCall

__all__ = ["FAILURES", "KINDS", "MODES", "answering", "commands", "options_of"]

MODES = ("default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan")

SHORT, NEVER = 0.2, 3600.0
"""The timeout of the hooks, and the time for which a late guard waits."""

ANSWERS: Mapping[str, Any] = {
    "nonsense": 42,
    "text": "allow",
    "misplaced": {"permissionDecision": "deny"},
    "behavior": {"behavior": "allow"},
    "underscored": {"hook_specific_output": {"permissionDecision": "deny"}},
    "misspelt": {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecison": "deny"}
    },
    "foreign": {"hookSpecificOutput": {"hookEventName": "Stop"}},
}
"""What a guard returns that is not an answer."""


class Unusual(BaseException):
    """An error that is no `Exception`."""


ERRORS: Mapping[str, type[BaseException]] = {
    "raises": RuntimeError,
    "unusual": Unusual,
    "recursion": RecursionError,
    "exits": GeneratorExit,
    "cancelled": asyncio.CancelledError,
}

LATE = ("late", "swallows", "swallowsandallows")
FAILURES = (*ANSWERS, *ERRORS, *LATE)


def commands(kind: str) -> list[str]:
    """Return the commands that a guard of this kind is asked about, one for each failure."""
    failures: Iterable[str] = FAILURES
    if "hook" not in kind and kind != "rule":
        # Only hooks have a timeout.
        failures = [each for each in FAILURES if each not in LATE]
    if kind == "inbox":
        failures = list(ANSWERS)
    return [f"touch {each}" for each in failures]


def fail(command: str) -> Any:
    """Fail as the command says."""
    how = command.rsplit(maxsplit=1)[-1]
    if how in ERRORS:
        raise ERRORS[how]
    return ANSWERS[how]


async def fail_late(command: str) -> Any:
    """Fail as the command says, perhaps after the timeout."""
    how = command.rsplit(maxsplit=1)[-1]
    if how == "late":
        await asyncio.sleep(NEVER)
    if how in LATE:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(NEVER)
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        return None if how == "swallows" else {"hookSpecificOutput": decision}
    return fail(command)


async def failing_hook(event: PreToolUse | PermissionRequest) -> Any:
    return await fail_late(event.tool_input["command"])


async def failing_official_hook(given: Any, _tool_use_id: object, _context: object) -> Any:
    return await fail_late(given["tool_input"]["command"])


def failing_predicate(call: ToolCall) -> Any:
    return fail(str(call.input["command"]))


def failing_approver(_tool: str, given: dict[str, Any], _context: object) -> Any:
    return fail(given["command"])


def approve(*_given: object) -> Allow:
    return Allow()


def hooked(event: Any, kind: Any = None) -> Hooks:
    hooks = Hooks()
    hooks.on(event, timeout=SHORT, kind=kind)(failing_hook)
    return hooks


KINDS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "rule": lambda: {
        "policy": Policy(deny("Bash(touch *)")),
        "hooks": hooked(PreToolUse, "advise"),
        "can_use_tool": approve,
    },
    "denying predicate": lambda: {
        "policy": Policy(deny("Bash", when=failing_predicate), allow("Bash")),
        "can_use_tool": approve,
    },
    "allowing predicate": lambda: {
        "policy": Policy(allow("Bash", when=failing_predicate), otherwise="deny"),
        "can_use_tool": approve,
    },
    "hook": lambda: {"hooks": hooked(PreToolUse), "can_use_tool": approve},
    "hook beside an allow rule": lambda: {
        "hooks": hooked(PreToolUse),
        "policy": Policy(allow("Bash")),
        "can_use_tool": approve,
    },
    "official hook": lambda: {
        "hooks": {"PreToolUse": [HookMatcher("^Ba", [failing_official_hook], timeout=SHORT)]},
        "can_use_tool": approve,
    },
    "permission hook": lambda: {
        "hooks": hooked(PermissionRequest),
        "policy": Policy(ask("Bash")),
        "can_use_tool": approve,
    },
    "approver": lambda: {"policy": Policy(ask("Bash")), "can_use_tool": failing_approver},
    "inbox": lambda: {"policy": Policy(ask("Bash")), "inbox": Inbox()},
}


def options_of(kind: str) -> dict[str, Any]:
    """Return the options of a session that is guarded by a guard of this kind."""
    return KINDS[kind]()


async def answering(inbox: Inbox | None) -> None:
    """Answer every ask with what its command names."""
    if inbox is None:
        return
    async for change in inbox.watch():
        if change.what == "opened":
            given = change.ask.payload.input["command"]  # type: ignore[union-attr]
            try:
                await inbox.answer(change.ask.id, fail(given))
            except Exception:  # noqa: BLE001 - the inbox refuses the answer, so this answers nothing
                await inbox.expire(change.ask.id)
