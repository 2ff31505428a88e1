"""A gate that holds every tool call of the CLI while the session is paused.

The gate is a `PreToolUse` hook. The first pause registers it with a second `initialize`, which
replaces the hooks, so a session that never pauses has no extra cost.
"""

from __future__ import annotations

import asyncio

import msgspec

from steersman.control.handshake import Initialize

GATE = "gate"
"""The callback id of the gate's hook, beside `hook_0`, `hook_1` and so on."""

LONGEST_PAUSE = 365 * 24 * 3600
"""Timeout of the hook in seconds; with its default, the CLI denies the tool after ten minutes."""


class Gate:
    """Open until `close` is called."""

    def __init__(self) -> None:
        self.is_installed = False
        """Whether the hook is registered with the current CLI."""
        self.has_stopped_tree = False
        """Whether the CLI's process tree is stopped too, by `pause(hard=True)`."""
        self._is_open = asyncio.Event()
        self._is_open.set()

    @property
    def is_closed(self) -> bool:
        """Whether tool calls are held."""
        return not self._is_open.is_set()

    def close(self) -> None:
        """Hold every tool call from now on."""
        self._is_open.clear()

    def open(self) -> None:
        """Release the held tool calls, and hold no more."""
        self._is_open.set()

    async def wait(self) -> dict[str, object]:
        """Wait until the gate is open, then return the hook's output, which decides nothing."""
        await self._is_open.wait()
        return {}


def with_gate(initialize: Initialize) -> Initialize:
    """Return `initialize` with the gate in front of every other `PreToolUse` hook."""
    hooks = initialize.hooks or {}
    gate = {"hookCallbackIds": [GATE], "timeout": LONGEST_PAUSE, "onFailure": "block"}
    before_tools = [gate, *hooks.get("PreToolUse", [])]
    return msgspec.structs.replace(initialize, hooks={**hooks, "PreToolUse": before_tools})
