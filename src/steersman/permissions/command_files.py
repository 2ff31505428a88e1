"""The files that a command line may name, for rules about files.

A word is a path as it is written, behind `=`, `:` or `@`, and behind an option; relative to the
directory of the session, to the current one, and to every directory that the line may change to
(`cd`, `pushd`, `-C`). Wildcards and braces that the shell expands are compared with the pattern of
the rule. What other variables and programs expand to is not known.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from steersman._effort import Effort
from steersman.permissions.paths import (
    Place,
    folded_text,
    may_match_glob,
    may_match_path,
    needle_of,
)
from steersman.permissions.shell_line import line_of
from steersman.permissions.shell_programs import KEYWORDS
from steersman.permissions.shell_reader import Command, Word

MOVING = frozenset({"cd", "pushd", "chdir", "-C", "--directory", "--chdir"})
"""What is followed by a directory at which later words begin."""
MOST_DIRECTORIES = 16
"""Directories that one line may change to; with more, it may name any file."""

_AT_CWD = re.compile(r"\$(?:PWD\b|\{PWD\})(?=/|\Z)")
_AT_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})(?=/|\Z)")
_OPTION = re.compile(r"-\w(?=.)|--directory=|--chdir=")
_JOINED = re.compile(r"[=:@]")
_BETWEEN = re.compile(r"[\s'\"`;|&<>()\[\]{},!]+")
"""What stands between file names in a text that a program may run."""
_PROCESS = re.compile(r"proc\b|dev\b.{0,9}fd\b", re.IGNORECASE)
"""What is in every text that leads to the links of a process, unless it has wildcards."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a line that may be files, and the directories that it may change to."""

    heads: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The names of the commands that have a word, by the word."""
    dynamic: set[str] = field(default_factory=set[str])
    """The words that the shell expands."""
    inner: set[str] = field(default_factory=set[str])
    """Parts of words that a program may run: `open(".env")` in the text for `python3 -c`."""
    directories: tuple[str, ...] = ()
    text: str = ""
    """All words in lower case, to search in."""
    folded: tuple[tuple[str, str], ...] = ()
    """Each word, and the word in lower case."""


@functools.lru_cache(maxsize=64)
def words_of(line: str) -> Words:
    """Return the words of a line that may be files."""
    words = Words()
    directories: dict[str, None] = {}
    for command in line_of(line).commands:
        _add_words(command, words)
        for directory in _directories(command):
            # `cd a; cd b` may lead to `a/b`.
            joined = [f"{each}/{directory}" for each in directories]
            directories |= dict.fromkeys([directory, *joined][: 2 * MOST_DIRECTORIES])
            if len(directories) > MOST_DIRECTORIES:
                break
    _add_inner(line_of(line).given, words)
    found = tuple(directories)[: MOST_DIRECTORIES + 1]
    folded = tuple((word, folded_text(word)) for word in words.heads)
    text = "\n".join(lower for _, lower in folded)
    return replace(words, directories=found, text=text, folded=folded)


def _add_words(command: Command, words: Words) -> None:
    given = list(itertools.dropwhile(lambda word: word.written in KEYWORDS, command.words))
    head, *rest = given or [Word()]
    if "=" in head.text:
        # An assignment names a file that a later command opens.
        rest = [head, *rest]
    for word in (*rest, *command.targets):
        for form in _forms(word.text):
            words.heads.setdefault(form, set()).add(head.text)
            if word.is_dynamic:
                words.dynamic.add(form)


def _add_inner(given: Iterable[Word], words: Words) -> None:
    """Add the parts of words that may be commands of another language."""
    for word in given:
        if _BETWEEN.search(word.text):
            parts = {form for part in _BETWEEN.split(word.text) for form in _forms(part)}
            for part in parts - words.heads.keys() - {""}:
                words.heads[part] = {""}
                words.inner.add(part)


def _forms(text: str) -> Iterator[str]:
    """Yield the paths that a word may contain."""
    if "$" in text:
        text = _AT_HOME.sub("~", _AT_CWD.sub(".", text))
    yield text
    option = _OPTION.match(text)
    if option:
        yield text[option.end() :]
    if _JOINED.search(text):
        yield from filter(None, _JOINED.split(text)[1:])


def _directories(command: Command) -> Iterator[str]:
    texts = [word.text for word in command.words]
    for at, text in enumerate(texts):
        if text in MOVING:
            following = (each for each in texts[at + 1 :] if not each.startswith("-"))
            yield from itertools.islice(following, 1)
        elif text.startswith(("--directory=", "--chdir=", "-C")):
            yield text.partition("=")[2] if "=" in text else text[2:]


def named_by(
    pattern: str, line: str, place: Place, effort: Effort, links: Mapping[str, str]
) -> tuple[set[str], bool]:
    """Return the names of the commands that may name a file of a pattern, and whether that is sure.

    `links` are the files to which words lead.
    """
    words = words_of(line)
    if len(words.directories) > MOST_DIRECTORIES:
        return {""}, False
    places = _places(words.directories, place)
    needle = needle_of(pattern, place)
    starts = "/".join(f"{each.now}/{each.home}" for each in (place, *places))
    if needle in folded_text(starts) or _PROCESS.search(f"{words.text}/{starts}"):
        # Every relative path may have it, or lead there in another process.
        needle = ""
    is_in = needle in words.text or "~" in words.text or bool(words.dynamic or links)
    if not effort.spend(4 + (len(words.heads) // 4 if is_in else 0)):
        return {""}, False
    sure, unsure = set[str](), set[str]()
    for word, lower in words.folded if is_in else ():
        if word in links and may_match_path(pattern, links[word], place, effort):
            sure |= words.heads[word]
        if (needle in lower or lower[:1] == "~") and any(
            may_match_path(pattern, word, each, effort) for each in places
        ):
            found = unsure if word in words.inner else sure
            found |= words.heads[word]
        elif word in words.dynamic and _may_expand(pattern, word, places, effort):
            unsure |= words.heads[word]
        if effort.left < 0:
            return {""}, False
    return (sure, True) if sure else (unsure, False)


@functools.lru_cache(maxsize=64)
def _places(directories: tuple[str, ...], place: Place) -> tuple[Place, ...]:
    """Return the places at which a relative word may begin."""
    now = place.now or place.cwd
    places = [replace(place, now=now)]
    for directory in directories:
        path = directory if directory.startswith("/") else f"{now}/{directory}"
        if directory.startswith("~"):
            path = f"{place.home}/{directory.partition('/')[2]}"
        places.append(replace(place, now=path))
    return tuple(places)


def _may_expand(pattern: str, word: str, places: tuple[Place, ...], effort: Effort) -> bool:
    """Return whether a word may name a file of the pattern when the shell has expanded it."""
    if word.startswith(("$", "`")) and "/" not in word:
        # Nothing of the path is known.
        return False
    return any(may_match_glob(pattern, word, each, effort) for each in places)
