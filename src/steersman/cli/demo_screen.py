"""Shows a conversation on a terminal: labelled lines, streamed text, colours if supported."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import TextIO

from steersman._terminal import printable

GUTTER = 9
NARROWEST = 2 * GUTTER
WIDEST = 88

COLOURS: Mapping[str, str] = {
    "you": "1",
    "claude": "36",
    "tool": "35",
    "ask": "33",
    "hook": "34",
    "allowed": "32",
    "denied": "31",
    "state": "2",
    "cost": "32",
    "file": "32",
    "failed": "31",
    "real": "33",
}


class Screen:
    """Writes labelled lines and streamed text, both wrapped at `width`."""

    def __init__(self, out: TextIO, *, width: int = 80, has_colour: bool = False) -> None:
        self._out = out
        self._width = max(NARROWEST, min(width, WIDEST))
        self._has_colour = has_colour
        self._column = 0
        self._rest = ""
        """The beginning of a word whose end has not arrived."""
        self._gap = ""
        """The space before the next word, written if the word fits on the line."""

    def title(self, text: str) -> None:
        """Write the title."""
        self.end()
        for line in textwrap.wrap(_shown(text), self._width):
            self._write(self._coloured("1", line) + "\n")
        self._write("\n")

    def line(self, label: str, text: str) -> None:
        """Write one labelled line."""
        self.end()
        body = textwrap.wrap(_shown(text), self._width - GUTTER) or [""]
        if label == "state":
            body = [self._coloured(COLOURS["state"], part) for part in body]
        self._write(self._label(label) + f"\n{' ' * GUTTER}".join(body) + "\n")

    def stream(self, label: str, chunk: str) -> None:
        """Write the next chunk of a text, word by word; the first chunk begins a line."""
        chunk = _shown(chunk)
        if self._column == 0:
            chunk = chunk.lstrip()
            if not chunk:
                return
            self._write(self._label(label))
            self._column = GUTTER
        *whole, self._rest = re.split(r"(?<=\s)(?=\S)", self._rest + chunk)
        for word in whole:
            self._put(word)

    def end(self) -> None:
        """End the line of streamed text, if there is one."""
        if self._column:
            rest, self._rest = self._rest, ""
            self._put(rest)
            self._write("\n")
            self._column, self._gap = 0, ""

    def _put(self, word: str) -> None:
        """Write a word, on the next line if it does not fit; keep the space after it for later."""
        bare = word.rstrip()
        if self._column + len(self._gap + bare) > self._width:
            self._break()
        room = self._width - GUTTER
        for start in range(0, len(bare) - room, room):
            self._write(bare[start : start + room])
            self._break()
        last = self._gap + bare[max(0, (len(bare) - 1) // room) * room :]
        self._write(last)
        self._column += len(last)
        self._gap = word[len(bare) :]
        if "\n" in self._gap:
            self._break()

    def _break(self) -> None:
        self._write("\n" + " " * GUTTER)
        self._column, self._gap = GUTTER, ""

    def _label(self, label: str) -> str:
        return self._coloured(COLOURS.get(label, "0"), label.rjust(GUTTER - 2)) + "  "

    def _coloured(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._has_colour else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _shown(text: str) -> str:
    """Return text of the model, of a tool or of a file without commands for the terminal."""
    return printable(text.replace("\r", "\n"))


def screen_for(out: TextIO, environ: Mapping[str, str] = os.environ) -> Screen:
    """Return a screen for `out`, with colours only on a terminal that supports them."""
    has_colour = out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Screen(out, width=shutil.get_terminal_size((80, 24)).columns, has_colour=has_colour)
