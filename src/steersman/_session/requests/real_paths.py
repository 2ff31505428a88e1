"""Follows links in the paths of a tool call, as the CLI does before it applies its own rules.

The paths are those of this machine. If the CLI runs elsewhere, the links that exist there are not
known here.
"""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from steersman.permissions.command_files import words_of
from steersman.permissions.paths import Place, leads_through_process
from steersman.permissions.rules import EDITING, READING, ToolCall
from steersman.permissions.shell import is_readable

LIMIT = 4096
"""Characters; rules do not compare longer paths either."""
FIELDS = ("file_path", "notebook_path", "path")
MOST_WORDS = 100
"""Words of a command whose links are followed."""
MOST_LINKS = 40
"""Links that one path may lead through, as in Linux."""
MOST_STARTS = 4
"""Directories at which these may begin."""


def readings_of(call: ToolCall, *, follows_words: bool = False) -> tuple[ToolCall, ...]:
    """Return the call, and if a path leads through a link, the call with its real paths.

    `follows_words`: the words of a command may be paths too.
    """
    if call.tool not in EDITING | READING:
        return _readings_of_command(call) if follows_words and call.command else (call,)
    place = call.place
    written = {name: _whole(call.input.get(name), place) for name in FIELDS}
    paths = {name: path for name, path in written.items() if path}
    real = {name: _real(path) for name, path in paths.items()}
    there = Place(_real(place.cwd), _real(place.home), _real(place.now))
    if real == paths and there == place:
        return (call,)
    return call, replace(call, input={**call.input, **real}, place=there)


def _readings_of_command(call: ToolCall) -> tuple[ToolCall, ...]:
    line = call.command or ""
    if not is_readable(line):
        return (call,)
    place, words = call.place, words_of(line)
    there = Place(_real(place.cwd), _real(place.home), _real(place.now))
    starts = [_whole(each, place) for each in (".", *words.directories)][:MOST_STARTS]
    real_starts = [(replace(place, now=each), replace(place, now=_real(each))) for each in starts]
    links: dict[str, str] = {}
    for word in itertools.islice(words.heads, MOST_WORDS):
        for start, real_start in real_starts:
            path = _whole(word, start)
            real = _real(path)
            # A word without a file may lead through a link to one that the command makes. A link
            # to the directory itself is none in the word.
            if real != path and (real != _whole(word, real_start) or os.path.lexists(path)):
                links[word] = real
    if not links and there == place:
        return (call,)
    return call, replace(call, place=there, links=links)


def _whole(path: object, place: Place) -> str:
    if not isinstance(path, str) or not path or len(path) > LIMIT:
        return ""
    text = place.home + path[1:] if path.startswith("~/") else path
    # The CLI resolves `..` in the text before it follows links.
    return os.path.normpath(f"{place.now or place.cwd}/{text}" if text[:1] != "/" else text)


def _real(path: str) -> str:
    with suppress(OSError, ValueError):
        real = os.path.realpath(path) if path else ""
        # A link to a link of each process leads the CLI to another file than this program.
        return real if real == path else _until_process(path) or real
    return path


def _until_process(path: str) -> str:
    """Return the path behind the first link that leads to the links of a process; "" if none."""
    for _ in range(MOST_LINKS):
        if leads_through_process(path):
            return path
        names = path.split("/")
        parents = ("/".join(names[:end]) for end in range(2, len(names) + 1))
        link = next(filter(os.path.islink, parents), None)
        if link is None:
            return ""
        target = Path(link).parent / Path(link).readlink()
        path = os.path.normpath(f"{target}{path[len(link) :]}")
    return ""
