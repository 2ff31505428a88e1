"""Shows what happens in a session as lines above the prompt, in the order of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.text import Text

from steersman._terminal import one_line, printable
from steersman.agent import Session
from steersman.cli.call_text import CallView, Line, brief
from steersman.cli.page import Page
from steersman.journal import Entry, Kind
from steersman.journal.text import TextStream
from steersman.messages import Assistant, ToolResultBlock, ToolUseBlock, User

LOST = "this terminal was too slow; the journal no longer has"


class LineStream:
    """Streamed text to complete lines: a line is written once nothing can be added to it."""

    def __init__(self, write: Callable[[str], None], fold: Callable[[str], list[str]]) -> None:
        self._write = write
        self._fold = fold
        """Breaks a text into lines that fit the terminal."""
        self._rest = ""

    def feed(self, chunk: str) -> None:
        """Add a chunk, and write the lines that are complete."""
        *whole, rest = (self._rest + chunk).split("\n")
        for line in whole:
            self._write(line)
        *full, self._rest = self._fold(rest) or [""]
        for line in full:
            self._write(line)

    def end(self) -> None:
        """Write the last line."""
        rest, self._rest = self._rest, ""
        if rest.strip():
            self._write(rest)


class ChatLines:
    """The reader of a chat: texts, tool calls, failures and restarts."""

    def __init__(self, session: Session, page: Page, console: Console) -> None:
        self._session = session
        self._page = page
        self._console = console
        self._text = TextStream()
        self._lines = LineStream(self._write, self._fold)
        self._is_begun = False
        """Whether the text of the model has its label."""
        self._ended = ("", 0.0)
        """How the last turn ended, and when."""
        self._calls: dict[str, tuple[str, float]] = {}

    async def follow(self) -> None:
        """Show entries until the session ends."""
        async for entry in self._session.journal():
            if isinstance(entry, Entry):
                self._show(entry)
            else:
                self._page.line("failed", f"{LOST} {entry.lost} entries")

    def line(self, label: str, text: str, note: str = "") -> None:
        """Write a line of our own, after the text so far."""
        self._end_text()
        self._page.line(label, text, note)

    def ask(self, seen: CallView, lines: Iterable[Line], keys: str) -> None:
        """Write what a tool call would do, and the keys that answer."""
        self._end_text()
        self._page.ask(seen, lines)
        self._page.line("", keys)

    def _show(self, entry: Entry) -> None:
        chunk = self._text.feed(entry)
        if chunk:
            self._lines.feed(printable(chunk))
        if entry.kind is Kind.MESSAGE:
            self._show_calls(entry)
        elif entry.kind is Kind.SETTLED:
            self._settled(entry)
        elif entry.kind is Kind.RESTARTED:
            self.line("note", "the CLI was lost and is restarted", str(entry.details.get("cause")))

    def _show_calls(self, entry: Entry) -> None:
        message = entry.message
        if isinstance(message, Assistant):
            for block in message.message.content:
                if isinstance(block, ToolUseBlock):
                    self._calls[block.id] = (brief(block.name, block.input), entry.at)
            self._end_text()
        elif isinstance(message, User) and not isinstance(message.message.content, str):
            for block in message.message.content:
                known = self._calls.pop(getattr(block, "tool_use_id", ""), None)
                if isinstance(block, ToolResultBlock) and known is not None:
                    failed = ", failed" if block.is_error else ""
                    self.line("tool", known[0], f"{entry.at - known[1]:.1f} s{failed}")

    def _settled(self, entry: Entry) -> None:
        self._end_text()
        outcome = str(entry.details.get("outcome") or "completed")
        reason = one_line(str(entry.details.get("reason") or ""))
        # Prompts that were read in the same turn end with it, each with an entry of its own.
        if outcome != "completed" and (outcome, entry.at) != self._ended:
            is_failed = outcome == "failed"
            self._page.line(*("failed", reason) if is_failed else ("note", outcome, reason))
        self._ended = (outcome, entry.at)

    def _end_text(self) -> None:
        self._lines.end()
        self._is_begun = False

    def _write(self, line: str) -> None:
        if line.strip() or self._is_begun:
            self._page.line("" if self._is_begun else "claude", line)
            self._is_begun = True

    def _fold(self, text: str) -> list[str]:
        wrapped = Text(text).wrap(self._console, self._page.room, overflow="fold")
        return [line.plain for line in wrapped]
