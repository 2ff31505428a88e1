"""Draw docs/pictures/terminal.svg: what `steersman demo` shows in a terminal, from a real run.

The demo runs in a pseudo-terminal, on the stock CLI if it is installed. `pyte` reads what it
writes as a terminal does, and `rich` draws the screen.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect  # type: ignore[import-untyped] # it has no types
import pyte
from pyte.screens import Char
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
COLUMNS, LINES = 84, 60
LIMIT = 60.0

FRAME = """\
<svg class="terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">\
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Without the web font that `rich` names: a picture loads nothing."""


def main() -> int:
    """Draw the picture."""
    lines = _lines(_screen())
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in lines:
        console.print(line, no_wrap=True, crop=True)
    drawn = console.export_svg(title="steersman demo", code_format=FRAME, unique_id="t")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text("\n".join(each.rstrip() for each in drawn.splitlines()) + "\n")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes\n")
    return 0


def _screen() -> pyte.Screen:
    """Run the demo in a terminal, and return the screen at the end."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.Stream(screen)
    with TemporaryDirectory() as home:
        env = {"HOME": home, "PATH": os.defpath, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        child = pexpect.spawn(
            sys.executable,
            ["-m", "steersman.cli", "demo"],
            env={**env, "PYTHONPATH": str(ROOT / "src")},
            dimensions=(LINES, COLUMNS),
            timeout=LIMIT,
            encoding="utf-8",
        )
        child.expect(pexpect.EOF)
        child.close()
    stream.feed(child.before or "")
    return screen


def _lines(screen: pyte.Screen) -> list[Text]:
    shown = [_line(screen, number) for number in range(screen.lines)]
    while shown and not shown[-1].plain:
        shown.pop()
    return shown


def _line(screen: pyte.Screen, number: int) -> Text:
    text = Text()
    for column in range(screen.columns):
        char = screen.buffer[number][column]
        text.append(char.data, style=_style(char))
    text.rstrip()
    return text


def _style(char: Char) -> str:
    words = [word for word, is_on in (("bold", char.bold), ("italic", char.italics)) if is_on]
    if char.fg != "default":
        words.append({"brown": "yellow"}.get(char.fg, char.fg))
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
