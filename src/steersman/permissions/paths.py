"""Path patterns of rules, read as the CLI reads them: like lines of a .gitignore.

`src/**` and `/src/**` begin at the session's directory, `//tmp/**` at the root, `~/notes/**` at the
home directory. A pattern without a slash matches at any depth. Case is ignored. Links are not
followed, because this module does not access the file system; the CLI follows them.

Paths and patterns are compared name by name, so that a long path takes little time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Place", "is_protected", "matches_path", "may_match_path", "objection_to"]

LIMIT = 16 * 1024
"""Characters; a longer path is not compared. Allow rules do not cover it, and others do."""


@dataclass(frozen=True, slots=True)
class Place:
    """The directories at which relative paths and patterns begin."""

    cwd: str = "/"
    """The session's first directory: patterns begin here."""
    home: str = ""
    now: str = ""
    """The directory after `cd` in Bash: relative paths begin here. Empty if it is `cwd`."""


def is_protected(path: str) -> bool:
    """Return whether the CLI may restrict writing to a path although a rule allows it.

    The CLI guards `.git`, `.claude`, `.bashrc` and others. Here every name that begins with a dot
    counts as protected.
    """
    return any(part.startswith(".") and part not in (".", "..") for part in path.split("/"))


def matches_path(pattern: str, path: str, place: Place) -> bool:
    """Return whether a pattern certainly covers the file, or a directory that contains it."""
    start, written = place.now or place.cwd, path
    if path.startswith("~/"):
        start, written = place.home, path[2:].lstrip("/")
    base, texts = _based(pattern, place)
    if len(path) > LIMIT or not start or base is None:
        return False
    names = _resolved(start, written)
    if len(names) <= len(base) or names[: len(base)] != base:
        return False
    return _compiled(texts, is_lenient=False).covers(names[len(base) :])


def may_match_path(pattern: str, path: str, place: Place) -> bool:
    """Return whether a pattern covers the file in any way in which the path may be read."""
    if len(path) > LIMIT:
        return True
    base, texts = _based(pattern, place)
    if base is None:
        return False
    base, texts = _without_parents(base, texts)
    folded, compiled = _folded(base), _compiled(texts, is_lenient=True)
    depth = len(base)
    return any(
        _folded(names[:depth]) == folded and compiled.covers(names[depth:])
        for names in _readings(path, place)
        if len(names) > depth
    )


def objection_to(pattern: str) -> str | None:
    """Return what a pattern must be that git, the CLI or this module cannot read, or None."""
    if pattern[:1] in ("!", "#"):
        return r"a path pattern, with \ before a leading ! or #"
    if pattern != pattern.strip():
        return "a path pattern without white space at its ends"
    try:
        _compiled(tuple(pattern.split("/")), is_lenient=False)
    except ValueError as wrong:
        return str(wrong)
    return None


# --- Paths ------------------------------------------------------------------------------------


def _resolved(start: str, path: str) -> list[str]:
    """Return the names of a path from the root, without empty names, `.` and `..`."""
    names: list[str] = []
    for name in (path if path.startswith("/") else f"{start}/{path}").split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names


def _readings(path: str, place: Place) -> Iterator[list[str]]:
    """Yield the names of every file that a tool or a shell may open for a path."""
    yield _resolved(place.cwd, path)
    if place.now not in ("", place.cwd):
        yield _resolved(place.now, path)
    if not path.startswith("~"):
        return
    user, _, rest = path[1:].partition("/")
    homes = {f"/home/{user}", f"/Users/{user}", f"/{user}", f"{place.home}/../{user}"}
    if user in ("", place.home.rpartition("/")[2]):
        homes = {place.home}
    elif user in ("+", "-"):
        # The shell's current and its last directory.
        homes = {place.cwd, place.now}
    for home in homes:
        yield _resolved(home, rest.lstrip("/"))


def _folded(names: Sequence[str]) -> list[str]:
    return [_fold(name, is_lenient=True) for name in names]


def _fold(text: str, *, is_lenient: bool) -> str:
    """Return a name in lower case, of the same length. Other letters than ASCII if lenient."""
    if text.isascii():
        return text.lower()
    return "".join(_folded_letter(each, is_lenient=is_lenient) for each in text)


def _folded_letter(letter: str, *, is_lenient: bool) -> str:
    if not is_lenient:
        return letter.lower() if letter.isascii() else letter
    folded = letter.casefold()
    return folded if len(folded) == 1 else letter


# --- Patterns ---------------------------------------------------------------------------------

_TOKEN = re.compile(r"\*+|\?|\[(?P<negated>[!^]?)(?P<set>[^\]]+)\]|\\(?P<escaped>.)|.", re.DOTALL)
_WRONG_SET = re.compile(r"\[[!^]?\]|\[[^\]]*[\[\\]|\\\Z")


def _based(pattern: str, place: Place) -> tuple[list[str] | None, tuple[str, ...]]:
    """Return the directory at which a pattern begins, and the texts between its slashes.

    An empty text at the beginning anchors the pattern at that directory.
    """
    if pattern.startswith("//"):
        return [], tuple(pattern[1:].split("/"))
    if pattern.startswith("~/"):
        return (_resolved("/", place.home) if place.home else None), tuple(pattern[1:].split("/"))
    return _resolved("/", place.cwd), tuple(pattern.removeprefix("./").split("/"))


def _without_parents(base: list[str], texts: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Resolve `.` and `..` in a pattern."""
    if "." not in texts and ".." not in texts:
        return base, texts
    kept: list[str] = []
    for text in texts[:-1] if texts[-1] == "" else texts:
        if text == ".." and not kept:
            base = base[:-1]
        elif text == "..":
            # `**` also covers no directory, so it needs no parent.
            kept = kept if kept[-1] == "**" else kept[:-1]
        elif text not in ("", "."):
            kept.append(text)
    end = ("",) if texts[-1] == "" else ()
    return base, ("", *kept, *end)


@dataclass(frozen=True, slots=True)
class _Pattern:
    segments: tuple[_Segment | None, ...]
    """None is `**`: any number of directories."""
    is_folder: bool
    is_lenient: bool

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether the pattern matches the path, or a directory that contains it."""
        if not self.segments:
            # What git would do with an empty pattern is nothing.
            return self.is_lenient
        reached = self._with_skipped({0})
        for name in names[:-1] if self.is_folder else names:
            folded = _fold(name, is_lenient=self.is_lenient)
            reached = self._with_skipped(self._after(reached, folded))
            if len(self.segments) in reached:
                return True
            if not reached:
                return False
        return False

    def _after(self, reached: set[int], name: str) -> set[int]:
        after: set[int] = set()
        for at in reached:
            segment = self.segments[at]
            if segment is None:
                after.add(at)
            elif segment.fits(name):
                after.add(at + 1)
        return after

    def _with_skipped(self, reached: set[int]) -> set[int]:
        # `**` never comes twice in a row, and never last.
        return reached | {
            at + 1 for at in reached if at < len(self.segments) and self.segments[at] is None
        }


@functools.lru_cache(maxsize=1024)
def _compiled(texts: tuple[str, ...], *, is_lenient: bool) -> _Pattern:
    """Compile the texts between the slashes of a pattern. Raises `ValueError`."""
    is_folder = len(texts) > 1 and texts[-1] == ""
    body = texts[:-1] if is_folder else texts
    is_anchored = len(body) > 1
    kept = [text for text in body if text]
    segments: list[_Segment | None] = [] if is_anchored or not kept else [None]
    for number, text in enumerate(kept):
        if text != "**" or number == len(kept) - 1:
            # `a/**` covers what is inside `a`: any name there, and what that contains.
            segments.append(_compile_segment("*" if text == "**" else text, is_lenient=is_lenient))
        elif segments[-1:] != [None]:
            segments.append(None)
    return _Pattern(tuple(segments), is_folder, is_lenient)


@dataclass(frozen=True, slots=True)
class _Set:
    """Characters such as `[a-z]`, or with `!` all others."""

    ranges: tuple[tuple[str, str], ...]
    is_negated: bool
    is_lenient: bool

    def fits(self, character: str) -> bool:
        has_case = self.is_lenient or character.isascii()
        forms = {character, character.upper()} if has_case else {character}
        found = any(low <= form <= high for form in forms for low, high in self.ranges)
        return found is not self.is_negated


_Token = str | _Set | None
"""A character, a set of characters, or None for `*`. The empty text is `?`."""


@dataclass(frozen=True, slots=True)
class _Segment:
    tokens: tuple[_Token, ...]
    literal: str | None
    """The whole name, if the segment has no wildcard."""

    def fits(self, name: str) -> bool:
        """Return whether a name fits; steps back only to the last `*`."""
        if self.literal is not None:
            return name == self.literal
        tokens, at, position = self.tokens, 0, 0
        star, resume = -1, 0
        while position < len(name):
            if at < len(tokens) and tokens[at] is None:
                star, resume, at = at, position, at + 1
            elif at < len(tokens) and _fits(tokens[at], name[position]):
                at, position = at + 1, position + 1
            elif star >= 0:
                resume += 1
                at, position = star + 1, resume
            else:
                return False
        return all(token is None for token in tokens[at:])


def _fits(token: _Token, character: str) -> bool:
    return token.fits(character) if isinstance(token, _Set) else token in ("", character)


def _compile_segment(text: str, *, is_lenient: bool) -> _Segment:
    if _WRONG_SET.search(re.sub(r"\\[^\]]", "", text)):
        raise ValueError(r"sets such as [abc], [a-z] or [!a], without \ and brackets inside")
    tokens: list[_Token] = []
    for found in _TOKEN.finditer(text):
        if found["set"]:
            ranges = _ranges(found["set"])
            tokens.append(_Set(ranges, bool(found["negated"]), is_lenient))
        elif found["escaped"]:
            tokens.append(_fold(found["escaped"], is_lenient=is_lenient))
        elif found[0].startswith("*"):
            tokens.append(None)
        else:
            tokens.append("" if found[0] == "?" else _fold(found[0], is_lenient=is_lenient))
    is_literal = all(isinstance(each, str) and each for each in tokens)
    return _Segment(tuple(tokens), "".join(map(str, tokens)) if is_literal else None)


def _ranges(inside: str) -> tuple[tuple[str, str], ...]:
    ranges: list[tuple[str, str]] = []
    for low, high in re.findall(r"(.)(?:-(.))?", inside, re.DOTALL):
        if high and high < low:
            raise ValueError(f"a range such as [a-z], not {low}-{high}")
        ranges.append((low, high or low))
    return tuple(ranges)
