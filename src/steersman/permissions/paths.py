"""Path patterns of rules, read as the CLI reads them: like lines of a .gitignore.

`src/**` and `/src/**` begin at the session's directory, `//tmp/**` at the root, `~/notes/**` at the
home directory. A pattern without a slash matches at any depth. Case is ignored. Links are not
followed, because this module does not access the file system; the CLI follows them.

Paths and patterns are compared name by name, so that a long path takes little time.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from steersman._effort import Effort

Names = tuple[str, ...]
LIMIT = 4096
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


def leads_through_process(path: str) -> bool:
    """Return whether an absolute path leads through links that each process has of its own.

    `/proc/self/cwd`, `/proc/<pid>/root` and `/dev/fd/3` are other files for the CLI than for this
    program. No approval covers such a path, and every denial does.
    """
    return _is_of_process(_folded(tuple(_resolved("/", path)), is_lenient=True))


def matches_path(pattern: str, path: str, place: Place, effort: Effort | None = None) -> bool:
    """Return whether a pattern certainly covers the file, or a directory that contains it."""
    if len(path) > LIMIT:
        return False
    named, based = _named(path, place), _based(pattern, place, is_lenient=False)
    if named is None or based is None:
        return False
    base, compiled = based
    return (
        not _is_of_process(_folded(named, is_lenient=True))
        and len(named) > len(base)
        and named[: len(base)] == base
        and (effort or Effort()).spend(compiled.steps(named))
        and compiled.covers(_folded(named[len(base) :], is_lenient=False))
    )


def may_match_path(pattern: str, path: str, place: Place, effort: Effort | None = None) -> bool:
    """Return whether a pattern covers the file in any way in which the path may be read."""
    if len(path) > LIMIT:
        return True
    based = _based(pattern, place, is_lenient=True)
    if based is None:
        return False
    base, compiled = based
    effort, depth = effort or Effort(), len(base)
    readings = _readings(path, place)
    return any(map(_is_of_process, readings)) or any(
        not effort.spend(compiled.steps(names)) or compiled.covers(names[depth:])
        for names in readings
        if len(names) > depth and names[:depth] == base
    )


def may_match_glob(pattern: str, path: str, place: Place, effort: Effort) -> bool:
    """Return whether a pattern may cover a file that the shell finds for a path with wildcards."""
    if len(path) > LIMIT:
        return True
    based = _based(pattern, place, is_lenient=True)
    if based is None:
        return False
    base, compiled = based
    depth, readings = len(base), _readings(path, place)
    return any(map(_is_of_process, readings)) or any(
        not effort.spend(4 * compiled.steps(names)) or compiled.may_meet(names[depth:])
        for names in readings
        if len(names) > depth
        if all(itertools.starmap(_may_be, zip(names, base, strict=False)))
    )


def needle_of(pattern: str, place: Place) -> str:
    """Return a text that is in every path that a pattern may cover; it is in lower case."""
    based = _based(pattern, place, is_lenient=True)
    return "" if based is None else based[1].needle


def folded_text(text: str) -> str:
    """Return a text in the case in which paths and patterns are compared."""
    return _fold(text, is_lenient=True)


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


@functools.lru_cache(maxsize=64)
def _named(path: str, place: Place) -> Names | None:
    """Return the names of the file that a tool opens for a path; None if that is not certain."""
    start, written = place.now or place.cwd, path
    if path.startswith("~/"):
        start, written = place.home, path[2:].lstrip("/")
    return tuple(_resolved(start, written)) if start else None


@functools.lru_cache(maxsize=64)
def _readings(path: str, place: Place) -> tuple[Names, ...]:
    """Return the names of every file that a tool or a shell may open for a path, in lower case."""
    found = dict.fromkeys(tuple(names) for names in _files_of(path, place))
    return tuple(_folded(names, is_lenient=True) for names in found)


def _files_of(path: str, place: Place) -> Iterator[list[str]]:
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


def _is_of_process(names: Names) -> bool:
    """Return whether names in lower case lead through the links of a process."""
    if len(names) < 2 or not (names[0][0] in "pd" or _EXPANDED.search(names[0])):  # noqa: PLR2004 - two names
        return False
    first, second, is_open = names[0], names[1], _EXPANDED.search(names[1]) is not None
    if _may_be(first, "dev") and _may_be(second, "fd"):
        return True
    is_process = second in ("self", "thread-self") or second.isdigit() or is_open
    return is_process and _may_be(first, "proc") and (first == "proc" or len(names) > 2)  # noqa: PLR2004


def _folded(names: Names, *, is_lenient: bool) -> Names:
    return tuple([_fold(name, is_lenient=is_lenient) for name in names])


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
_NOTHING = r"[^\s\S]"
"""An expression for one character that no character is."""
_WRONG_SET = re.compile(r"\[[!^]?\]|\[[^\]]*[\[\\]|\\\Z")


@functools.lru_cache(maxsize=1024)
def _based(pattern: str, place: Place, *, is_lenient: bool) -> tuple[Names, _Pattern] | None:
    """Return the directory at which a pattern begins, and what it matches there; None if unknown.

    An empty text at the beginning anchors the pattern at that directory.
    """
    base = _resolved("/", place.cwd)
    texts = tuple(pattern.removeprefix("./").split("/"))
    if pattern.startswith("//"):
        base, texts = [], tuple(pattern[1:].split("/"))
    elif pattern.startswith("~/"):
        if not place.home:
            return None
        base, texts = _resolved("/", place.home), tuple(pattern[1:].split("/"))
    if not is_lenient:
        return tuple(base), _compiled(texts, is_lenient=False)
    base, texts = _without_parents(base, texts)
    return _folded(tuple(base), is_lenient=True), _compiled(texts, is_lenient=True)


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
    literals: dict[str, int]
    """The segments that are names, each as one bit for every place at which it stands."""
    wildcards: tuple[tuple[re.Pattern[str], int], ...]
    """The segments with wildcards, and their bits."""
    ends: tuple[tuple[str, str], ...]
    """What these begin and end with."""
    skipping: int
    """The bits of `**`: any number of directories."""
    end: int
    """The bit behind the last segment."""
    is_folder: bool
    is_lenient: bool
    needle: str
    """The longest text that every covered path contains."""

    def steps(self, names: Names) -> int:
        """Return the work of `covers`; least if the path has not all the names."""
        length = sum(map(len, names)) if self.wildcards else 0
        return 4 + 2 * len(names) + len(self.wildcards) * length // 64

    def covers(self, names: Names) -> bool:
        """Return whether the pattern matches the path, or a directory that contains it."""
        if self.end == 1:
            # What git would do with an empty pattern is nothing.
            return self.is_lenient
        if not self.literals.keys() <= set(names):
            return False
        # The segments that can follow what has been read so far, as bits.
        reached = self._with_skipped(1)
        for name in names[:-1] if self.is_folder else names:
            fits = self.literals.get(name, 0)
            for expression, bits in self.wildcards:
                if expression.fullmatch(name):
                    fits |= bits
            reached = self._with_skipped(((reached & fits) << 1) | (reached & self.skipping))
            if reached & self.end:
                return True
            if not reached:
                return False
        return False

    def may_meet(self, names: Names) -> bool:
        """Return whether the pattern may match what names with wildcards of the shell stand for."""
        reached = self._with_skipped(1)
        for name in names[:-1] if self.is_folder else names:
            fits = 0
            for literal, each in self.literals.items():
                fits |= each if _may_be(name, literal) else 0
            is_plain = _EXPANDED.search(name) is None
            for (expression, each), ends in zip(self.wildcards, self.ends, strict=True):
                may_fit = expression.fullmatch(name) if is_plain else _may_meet(name, ends)
                fits |= each if may_fit else 0
            reached = self._with_skipped(((reached & fits) << 1) | (reached & self.skipping))
            if reached & self.end:
                return True
        return False

    def _with_skipped(self, reached: int) -> int:
        # `**` never comes twice in a row, and never last.
        return reached | (reached & self.skipping) << 1


_EXPANDED = re.compile(r"[*?\[{$`]")


def _ends(written: str) -> tuple[str, str]:
    """Return the text before the first and behind the last wildcard of the shell."""
    special = _EXPANDED.search(written)
    start = special.start() if special else len(written)
    last = max(map(written.rfind, "*?]}"))
    is_known = last >= start and "$" not in written and "`" not in written
    return written[:start], written[last + 1 :] if is_known else ""


def _may_be(written: str, name: str) -> bool:
    """Return whether a name with wildcards of the shell may stand for another name."""
    if _EXPANDED.search(written) is None:
        return written == name
    if written[0] in "*?[" and name.startswith("."):
        # The shell finds such names only for a pattern with a dot.
        return False
    first, last = _ends(written)
    return name.startswith(first) and name.endswith(last)


def _may_meet(written: str, ends: tuple[str, str]) -> bool:
    """Return whether a name with wildcards of the shell and one of a rule may be the same name."""
    first, last = _ends(written)
    before, behind = ends
    return (first.startswith(before) or before.startswith(first)) and (
        last.endswith(behind) or behind.endswith(last)
    )


@functools.lru_cache(maxsize=1024)
def _compiled(texts: tuple[str, ...], *, is_lenient: bool) -> _Pattern:
    """Compile the texts between the slashes of a pattern. Raises `ValueError`."""
    is_folder = len(texts) > 1 and texts[-1] == ""
    body = texts[:-1] if is_folder else texts
    is_anchored = len(body) > 1
    kept = [text for text in body if text]
    segments: list[str | None] = [] if is_anchored or not kept else [None]
    for number, text in enumerate(kept):
        if text != "**" or number == len(kept) - 1:
            # `a/**` covers what is inside `a`: any name there, and what that contains.
            segments.append("*" if text == "**" else text)
        elif segments[-1:] != [None]:
            segments.append(None)
    literals: dict[str, int] = {}
    wildcards: dict[re.Pattern[str], int] = {}
    ends: dict[re.Pattern[str], tuple[str, str]] = {}
    skipping = 0
    runs: list[str] = []
    for number, segment in enumerate(segments):
        tokens = [] if segment is None else _tokens(segment, is_lenient=is_lenient)
        runs += _literal_runs(tokens)
        if segment is None:
            skipping |= 1 << number
        elif all(isinstance(each, str) and each for each in tokens):
            name = "".join(map(str, tokens))
            literals[name] = literals.get(name, 0) | 1 << number
        else:
            expression, texts_between = _expression(tokens), _literal_runs(tokens)
            wildcards[expression] = wildcards.get(expression, 0) | 1 << number
            ends[expression] = (texts_between[0], texts_between[-1])
    return _Pattern(
        literals,
        tuple(wildcards.items()),
        tuple(ends.values()),
        skipping,
        1 << len(segments),
        is_folder,
        is_lenient,
        max(runs, key=len, default=""),
    )


@dataclass(frozen=True, slots=True)
class _Set:
    """Characters such as `[a-z]`, or with `!` all others."""

    ranges: tuple[tuple[str, str], ...]
    is_negated: bool
    is_lenient: bool

    def expression(self) -> str:
        """Return the set as a part of a regular expression, for names in lower case."""
        ascii_ones = [each for each in map(chr, range(128)) if self._fits(each)]
        others = r"[^\x00-\x7f]"
        if not self.is_lenient:
            # Only ASCII letters have two cases for git.
            beyond = [(max(low, "\x80"), high) for low, high in self.ranges if high >= "\x80"]
            inside = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in beyond)
            others = f"[{inside}]" if inside else _NOTHING
            others = rf"(?:(?!{others})[^\x00-\x7f])" if self.is_negated else others
        plain = f"[{re.escape(''.join(ascii_ones))}]" if ascii_ones else _NOTHING
        return f"(?:{plain}|{others})"

    def _fits(self, character: str) -> bool:
        forms = {character, character.upper()}
        found = any(low <= form <= high for form in forms for low, high in self.ranges)
        return found is not self.is_negated


_Token = str | _Set | None
"""A character, a set of characters, or None for `*`. The empty text is `?`."""


def _tokens(text: str, *, is_lenient: bool) -> list[_Token]:
    """Split the text between two slashes of a pattern into its tokens. Raises `ValueError`."""
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
    return tokens


def _expression(tokens: list[_Token]) -> re.Pattern[str]:
    """Return an expression for names that takes time linear in the length of the name.

    The text between two `*` is looked for once, from the left, and the last text at the end. That
    is enough, and nothing is tried twice.
    """
    texts: list[list[str]] = [[]]
    for token in tokens:
        if token is None:
            texts.append([])
        elif isinstance(token, str):
            texts[-1].append(re.escape(token) or ".")
        else:
            texts[-1].append(token.expression())
    first, *middle = ["".join(each) for each in texts]
    if not middle:
        return re.compile(first, re.DOTALL)
    last = middle.pop()
    inner = "".join(f"(?>.*?{each})" for each in middle if each)
    end = f".{{{len(texts[-1])},}}+(?<={last})" if last else ".*+"
    return re.compile(first + inner + end, re.DOTALL)


def _literal_runs(tokens: list[_Token]) -> list[str]:
    """Return the texts between the wildcards of a segment."""
    runs = [""]
    for token in tokens:
        if isinstance(token, str) and token:
            runs[-1] += token
        else:
            runs.append("")
    return runs


def _ranges(inside: str) -> tuple[tuple[str, str], ...]:
    ranges: list[tuple[str, str]] = []
    for low, high in re.findall(r"(.)(?:-(.))?", inside, re.DOTALL):
        if high and high < low:
            raise ValueError(f"a range such as [a-z], not {low}-{high}")
        ranges.append((low, high or low))
    return tuple(ranges)
