"""A gate before every tool of the CLI's, shut while the session is paused.

It is a hook of ours on `PreToolUse`, which the CLI learns of with the first pause: a second
`initialize` replaces the hooks. A session that never pauses pays nothing for it.
"""

from __future__ import annotations

import asyncio

import msgspec

from steersman.control.handshake import Initialize

__all__ = ["GATE", "Gate", "with_gate"]

GATE = "gate"
"""The callback id of our own hook, beside `hook_0`, `hook_1` and so on."""

LONGEST_PAUSE = 365 * 24 * 3600
"""Seconds that the CLI waits at the gate; its own default would deny the tool after ten minutes."""


class Gate:
    """Open, until somebody shuts it."""

    def __init__(self) -> None:
        self.is_installed = False
        """Whether the CLI knows of it; a new CLI does not."""
        self.has_stopped_tree = False
        """Whether the CLI's processes are stopped as well."""
        self._is_open = asyncio.Event()
        self._is_open.set()

    @property
    def is_closed(self) -> bool:
        """Whether tools are held."""
        return not self._is_open.is_set()

    def close(self) -> None:
        """Hold every tool that comes."""
        self._is_open.clear()

    def open(self) -> None:
        """Let go of all that wait, and of those that come."""
        self._is_open.set()

    async def wait(self) -> dict[str, object]:
        """Give the hook's answer, no opinion, once the gate is open."""
        await self._is_open.wait()
        return {}


def with_gate(initialize: Initialize) -> Initialize:
    """The same handshake, with the gate before every other hook."""
    hooks = initialize.hooks or {}
    gate = {"hookCallbackIds": [GATE], "timeout": LONGEST_PAUSE, "onFailure": "block"}
    before_tools = [gate, *hooks.get("PreToolUse", [])]
    return msgspec.structs.replace(initialize, hooks={**hooks, "PreToolUse": before_tools})
