"""Labelled lines on a terminal or in a pipe, wrapped by the width of characters, by `rich`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from steersman._terminal import printable
from steersman.cli.call_text import CallView, Line
from steersman.cli.output import has_colour

GUTTER, GAP = 7, 2
LEAST = 20
"""The narrowest column of text; in a narrower terminal, lines are wider than that."""
COLOURS = {
    "you": "bold",
    "claude": "cyan",
    "tool": "magenta",
    "ask": "yellow",
    "next": "blue",
    "now": "blue",
    "later": "blue",
    "denied": "red",
    "failed": "bold red",
    "done": "green",
}
KINDS = {"added": "green", "removed": "red", "context": "dim", "plain": ""}


def console_for(out: TextIO, *, width: int | None = None) -> Console:
    """Return a console that adds nothing of its own: no markup, no emoji, no guessed colours."""
    coloured = has_colour(out)
    return Console(
        file=out,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=not coloured,
        color_system="standard" if coloured else None,
    )


class Page:
    """Writes labelled lines; the text is wrapped beside the column of labels."""

    def __init__(self, console: Console, before: Callable[[], None] = lambda: None) -> None:
        self._console = console
        self._before = before
        """Ends a line that something else is writing on the same terminal."""

    def line(self, label: str, text: str, note: str = "") -> None:
        """Write a text with its label, and a note at the end."""
        body = Text(printable(text))
        if note:
            body.append(f"   {printable(note)}", "dim")
        self._rows(label, [body])

    def ask(self, seen: CallView, lines: Iterable[Line]) -> None:
        """Write what a tool call would do."""
        body = [Text(line.text, KINDS[line.kind]) for line in lines]
        self._rows("ask", [Text(seen.title, "bold"), *body])

    @property
    def room(self) -> int:
        """The width of the column of text."""
        return max(LEAST, self._console.width - GUTTER - GAP)

    def _rows(self, label: str, texts: Iterable[Text]) -> None:
        self._before()
        room = self.room
        head = Text(label.rjust(GUTTER), COLOURS.get(label, "dim"))
        for text in texts:
            for line in text.wrap(self._console, room, overflow="fold", tab_size=4):
                line.rstrip()
                self._console.print(head + Text(" " * GAP) + line, soft_wrap=True)
                head = Text(" " * GUTTER)
