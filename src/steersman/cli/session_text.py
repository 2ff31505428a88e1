"""Stored sessions and their messages, as lines for a terminal and as JSON for scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from steersman import _json
from steersman._terminal import one_line
from steersman.cli.page import Page
from steersman.cli.run_json import line_of
from steersman.sessions import Hit, SessionInfo, StoredMessage
from steersman.transcripts.export import parts_of

LABELS = {"user": "you", "assistant": "claude"}
PARTS = {"call": "tool", "result": "result", "thinking": "thought"}
MOST_LINES = 12
"""How many lines of a tool's input or result are shown, without --whole."""


def print_list(console: Console, found: Iterable[SessionInfo], *, is_terminal: bool) -> None:
    """Print sessions as a table on a terminal, else as one line each."""
    if not is_terminal:
        for each in found:
            print("  ".join(_cells(each)))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("session", "changed", "tag", "title"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*map(Text, _cells(each)))
    console.print(table)


def _cells(info: SessionInfo) -> list[str]:
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.last_modified / 1000))
    return [info.session_id, changed, one_line(info.tag or "-"), one_line(info.summary)]


def as_rows(hits: Iterable[Hit]) -> Iterator[str]:
    """Yield one line for each hit of a search."""
    for each in hits:
        yield one_line(f"{each.session_id}  {each.timestamp[:16]}  {each.snippet}")


def value_json(value: SessionInfo | Hit) -> str:
    """Return a session or a hit as one line of JSON."""
    return json.dumps(asdict(value))


def message_json(message: StoredMessage) -> str:
    """Return the line of a session file, as ASCII."""
    return line_of(_json.loads(message.raw))


def show_message(page: Page, message: StoredMessage, *, is_whole: bool) -> None:
    """Write a message, part by part."""
    label = LABELS.get(message.type, message.type)
    for part in parts_of(message):
        if part.kind == "text":
            page.line(label, part.text)
            continue
        lines = part.text.splitlines()
        rest = len(lines) - MOST_LINES
        if rest > 0 and not is_whole:
            lines = [*lines[:MOST_LINES], f"... {rest} more lines: --whole shows them"]
        name = part.label.removeprefix("Tool call: ")
        page.line(PARTS.get(part.kind, part.kind), "\n".join([name, *lines]))
