"""What is asked on a terminal: all of it can be seen before it can be allowed."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from steersman.cli.page import Page, console_for
from steersman.cli.terminal_asks import TerminalAsks
from steersman.permissions import Allow, Deny, PermissionContext
from steersman.permissions.questions import CanUseTool

LONG = "ls -la\n" + "\n" * 60 + "touch made"
ASKED = PermissionContext("r", "s", CanUseTool(tool_name="Bash", input={}, tool_use_id="t"))


class Terminal:
    """A terminal and the hands before it."""

    def __init__(self) -> None:
        self._hands, self._own = os.openpty()
        self.path = os.ttyname(self._own)

    def type(self, *lines: str) -> None:
        """Type lines, each with enter."""
        os.write(self._hands, "".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Hang up."""
        os.close(self._hands)
        os.close(self._own)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal on which nothing is typed yet."""
    with closing(Terminal()) as found:
        yield found


async def decided(terminal: Terminal, command: str, *typed: str) -> tuple[object, str]:
    """Return the decision after `typed`, and what was shown."""
    shown = io.StringIO()
    with closing(TerminalAsks(Page(console_for(shown, width=80)), terminal.path)) as asks:
        terminal.type(*typed)
        async with asyncio.timeout(10):
            decision = await asks.decide("Bash", {"command": command}, ASKED)
    return decision, shown.getvalue()


async def test_what_is_hidden_is_shown_before_a_key_allows_it(terminal: Terminal) -> None:
    refused, before = await decided(terminal, LONG, "y", "a", "e", "n", "too long")
    allowed, after = await decided(terminal, LONG, "y", "?", "y")

    assert refused == Deny("too long")
    assert "touch made" not in before
    assert before.count("22 lines are hidden: press ?") == 3
    assert allowed == Allow()
    assert "touch made" in after


async def test_a_command_is_drawn_with_what_cannot_be_seen_in_it(terminal: Terminal) -> None:
    _, shown = await decided(terminal, "echo ls\u202e; rm\u200b\xa0x\r", "y")

    assert "echo ls\\u202e; rm\\u200b\\xa0x\\r" in shown
