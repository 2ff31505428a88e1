"""Bash commands compared with rules.

An allow rule covers a line only if the line belongs to a small grammar that is read with certainty
(plain words, plain quotes, `&&`, `||`, `;`, `|`), and if the rule covers every command in it. A
deny or ask rule covers a line if the program that it names may be started anywhere in it: behind
`sudo` or `env`, in a substitution, in the text for a shell. The result is `MAYBE` if the text does
not decide it. Then an allow rule does not allow, and a deny rule asks.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from steersman.permissions.shell_programs import (
    EVALUATORS,
    KEYWORDS,
    SHELLS,
    WRAPPERS,
    behind_wrapper,
    is_quiet,
    starts_commands,
)
from steersman.permissions.shell_reader import Command, Reading, Word, read, words_of_text

__all__ = ["LONGEST", "Match", "commands_in", "grants_command", "is_readable", "stops_command"]

LONGEST = 16 * 1024
"""The longest command line that is read; no approval covers a longer one, and a denial asks."""
DEEPEST = 4
"""The most wrappers before a command, and texts for a shell within each other, that are read."""


class Match(Enum):
    """The result of comparing a rule with a call."""

    NO = 0
    MAYBE = 1
    YES = 2


def grants_command(rule: str, line: str) -> Match:
    """Return whether an allow rule covers every command of `line`."""
    commands = _plain_commands(line)
    if commands is None:
        return Match.MAYBE
    pattern = _pattern(rule)
    # The CLI compares an approval with the command as it is written, including quotes.
    fits = [pattern.fits(" ".join(words)) for words in commands]
    is_hidden = any(
        starts_commands(words[0], words[1:]) and pattern.text != " ".join(words)
        for words in commands
    )
    if all(fits) and not is_hidden:
        return Match.YES
    return Match.MAYBE if any(fits) or is_hidden else Match.NO


def stops_command(rule: str, line: str) -> Match:
    """Return whether a deny or ask rule covers any command of `line`."""
    if len(line) > LONGEST:
        return Match.MAYBE
    return _stops(_wanted(rule), line, DEEPEST)


def is_readable(line: str) -> bool:
    """Return whether a line is short enough to be read."""
    return len(line) <= LONGEST and read(line).is_whole


def commands_in(line: str) -> tuple[tuple[str, ...], ...]:
    """Return every command of a line as words without quotes, for rules about files.

    The files of redirections come last; the name of a command that has none is empty. A line for
    which `is_readable` is false has no commands here.
    """
    if not is_readable(line):
        return ()
    return tuple(map(_texts, read(line).commands))


def _texts(command: Command) -> tuple[str, ...]:
    words = list(itertools.dropwhile(lambda word: word.written in KEYWORDS, command.words))
    return tuple(word.text for word in (words or [Word()]) + command.targets)


# Patterns


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rule's content: `a:*` is a prefix of whole words, `*` matches any text."""

    text: str
    parts: tuple[str, ...]
    """The text between the wildcards."""
    may_end: bool = False
    """True if ` *` at the end also matches nothing."""

    def fits(self, text: str) -> bool:
        """Return whether the whole text matches, in time linear in its length."""
        return _fits(self.parts, text) or (
            self.may_end and _fits((*self.parts[:-2], self.parts[-2][:-1]), text)
        )


@functools.lru_cache(maxsize=1024)
def _pattern(rule: str, *, is_lenient: bool = False) -> _Pattern:
    spaced = " ".join(rule.split())
    if rule.endswith(":*"):
        spaced = " ".join(rule[:-2].split())
        return _Pattern(spaced, (spaced + " ", ""), may_end=True)
    parts = tuple(spaced.split("*"))
    # `git *` also covers `git` alone; the CLI grants that only if it is the only wildcard.
    may_end = spaced.endswith(" *") and (is_lenient or len(parts) == 2)  # noqa: PLR2004
    return _Pattern(spaced, parts, may_end)


def _fits(parts: tuple[str, ...], text: str) -> bool:
    first, *middle = parts
    if not middle:
        return text == first
    last = middle.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


# Approvals

_REDIRECT = r"(?:[012]?>>?[ \t]*/dev/null|<[ \t]*/dev/null|[012]?>&[012])(?=[ \t;|]|&&|\Z)"
_PLAIN = re.compile(
    rf"(?P<space>[ \t]+)|(?P<joint>&&|\|\||[;|])|(?P<redirect>{_REDIRECT})"
    # The CLI asks about words that begin with `=`, and about backslashes and braces in quotes.
    r"|(?P<word>(?!=)(?:[A-Za-z0-9_./:+@%,=~*?\[\]-]|'[^'\\{}]*'|\"[^\"$`\\!{}]*\")+)"
)
_HEAD = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:+@%,-]*")


_GRAMMAR = re.compile(r"s?w(?:sw)*(?:sr)*(?:s?js?w(?:sw)*(?:sr)*)*(?:s?j)?s?")
"""A line by the first letters of its tokens. Redirections end a command, as they do for the CLI."""


@functools.lru_cache(maxsize=256)
def _plain_commands(line: str) -> tuple[tuple[str, ...], ...] | None:
    """Return the commands of a line as they are written, or None if it is not in the grammar."""
    if len(line) > LONGEST or not line.replace("\t", " ").isprintable():
        return None
    tokens = [(token.lastgroup or "", token.group()) for token in _PLAIN.finditer(line)]
    is_read = sum(len(text) for _, text in tokens) == len(line)
    if not is_read or _GRAMMAR.fullmatch("".join(kind[0] for kind, _ in tokens)) is None:
        return None
    commands: list[list[str]] = [[]]
    for kind, text in tokens:
        if kind == "word":
            commands[-1].append(text)
        elif kind == "joint":
            commands.append([])
    if not commands[-1]:
        if not line.rstrip(" \t").endswith(";"):
            return None
        commands.pop()
    is_plain = all(_HEAD.fullmatch(words[0]) and "\t" not in "".join(words) for words in commands)
    return tuple(map(tuple, commands)) if is_plain else None


# Denials

_REPLACES = re.compile(r"-\w*[IiS]|--(?:rep|sp)")
"""Options of wrappers that make a command of text: `xargs -I`, `env -S`."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a deny or ask rule names."""

    patterns: tuple[_Pattern, ...]
    words: tuple[str, ...]
    """The whole words before the first wildcard."""
    name: str
    """The name of the program, without folders; the beginning of it, if a wildcard follows."""
    is_whole: bool
    others: frozenset[str] = frozenset()
    """Words before the first wildcard, except the first, if they can be found in any text."""

    def fits(self, words: tuple[Word, ...]) -> bool:
        """Return whether the rule covers a command, as it is written or without its quotes."""
        texts = {" ".join(word.text for word in words), " ".join(word.written for word in words)}
        head, folder = words[0].text.rpartition("/")[2], "/" in words[0].text
        if folder:
            texts.add(" ".join((head, *(word.text for word in words[1:]))))
        return any(pattern.fits(text) for pattern in self.patterns for text in texts)

    def may_fit(self, words: tuple[Word, ...]) -> bool:
        """Return whether the rule covers a command if its expansions give the right text."""
        for wanted, word in zip(self.words, words, strict=False):
            if word.is_dynamic:
                return True
            if wanted.casefold() not in (word.text.casefold(), _base(word.text).casefold()):
                return False
        first = words[0].text
        if self.words and self.words[0] not in (first, _base(first)):
            # Only the case differs, which some file systems ignore.
            return True
        return bool(self.words or not self.is_whole) and any(word.is_dynamic for word in words)

    def is_in(self, names: frozenset[str], line: Reading) -> bool:
        """Return whether the program is among these names, and the rule's other words in a line."""
        if not line.mentions.issuperset(self.others):
            return False
        if self.is_whole:
            return self.name in names
        return any(name.startswith(self.name) for name in names)


@functools.lru_cache(maxsize=1024)
def _wanted(rule: str) -> _Wanted:
    pattern = _pattern(rule, is_lenient=True)
    bare = re.sub(r"['\"\\]", "", rule)
    patterns = (pattern,) if bare == rule else (pattern, _pattern(bare, is_lenient=True))
    before, *rest = patterns[-1].text.split("*")
    words = before.split()
    if rest and words and not before.endswith(" "):
        partial = words.pop()
        if not words:
            return _Wanted(patterns, (), _base(partial), is_whole=False)
    name = _base(words[0]) if words else ""
    others = frozenset(word for word in words[1:] if re.fullmatch(r"[\w.+-]+", word))
    return _Wanted(patterns, tuple(words), name, bool(words), others)


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _stops(wanted: _Wanted, line: str, depth: int) -> Match:
    reading = read(line)
    if not reading.is_whole:
        return Match.MAYBE
    found = [_stops_one(wanted, command, reading, depth) for command in reading.commands]
    if Match.YES in found:
        return Match.YES
    if Match.MAYBE in found or (not reading.is_certain and wanted.is_in(reading.mentions, reading)):
        return Match.MAYBE
    return Match.NO


def _stops_one(wanted: _Wanted, command: Command, reading: Reading, depth: int) -> Match:
    words, is_sure = tuple(command.words), command.is_sure
    for form, is_known in _forms(words):
        is_sure = is_sure and is_known
        words = form
        if form and wanted.fits(form):
            return Match.YES if is_sure else Match.MAYBE
        if form and wanted.may_fit(form):
            return Match.MAYBE
    skipped = tuple(command.words[: len(command.words) - len(words)])
    if any("=" in word.text for word in skipped) and wanted.is_in(_names(skipped), reading):
        # A variable may name a program: GIT_PAGER, EDITOR.
        return Match.MAYBE
    if any(word.is_dynamic for word in skipped) and _replaces(skipped):
        return Match.MAYBE
    if not words:
        # Options of a wrapper may be a command: `env -S "rm x"`.
        return Match.MAYBE if wanted.is_in(_names(skipped), reading) else Match.NO
    may_start = _may_start(wanted, words, skipped, reading, depth)
    may_start = may_start or (not is_sure and wanted.is_in(reading.mentions, reading))
    return Match.MAYBE if may_start else Match.NO


def _may_start(
    wanted: _Wanted,
    words: tuple[Word, ...],
    skipped: tuple[Word, ...],
    reading: Reading,
    depth: int,
) -> bool:
    """Return whether a command may start the program in a way that is not its name."""
    head, texts = _base(words[0].text), tuple(word.text for word in words[1:])
    is_name = _HEAD.fullmatch(head) is not None or head in ("[", "[[", ":", "")
    if words[0].is_dynamic or not is_name or (head in WRAPPERS and len(words) > 1):
        return True
    if head == "find" and _find_may_start(wanted, words, reading, depth):
        return True
    if head in SHELLS or head in EVALUATORS:
        return _may_evaluate(wanted, head, words[1:], reading, depth)
    replaces = _replaces(skipped)
    if is_quiet(head, texts) and not replaces:
        return False
    if wanted.is_in(_names((*skipped, *words[1:])), reading):
        return True
    # What comes out of one command may be the program of another.
    is_open = (reading.has_flow and head not in ("awk", "sed")) or replaces
    return is_open and wanted.is_in(reading.mentions, reading)


def _find_may_start(wanted: _Wanted, words: tuple[Word, ...], reading: Reading, depth: int) -> bool:
    if any(word.text == "-delete" for word in words) and wanted.name in ("rm", "unlink"):
        return True
    starts = [at for at, word in enumerate(words) if re.match("-(?:exec|ok)", word.text)]
    if len(starts) > DEEPEST or (starts and depth == 0):
        return True
    commands = (Command(list(words[at + 1 :]), is_sure=False) for at in starts)
    return any(_stops_one(wanted, each, reading, depth - 1) is not Match.NO for each in commands)


def _may_evaluate(
    wanted: _Wanted, head: str, words: tuple[Word, ...], reading: Reading, depth: int
) -> bool:
    """Return whether a shell, or `eval`, may start the program."""
    if head in (".", "source"):
        return True
    if depth == 0 or any(word.is_dynamic for word in words):
        return True
    texts = [word.text for word in words]
    if wanted.is_in(reading.mentions, reading) and (
        reading.has_flow or wanted.is_in(_names(words), reading)
    ):
        return True
    given = [text for text in texts if not text.startswith(("-", "+"))]
    # The lines of one level are together no longer than the line itself, so the work is linear.
    lines = [" ".join(given)]
    if head in SHELLS:
        if not any(re.fullmatch(r"[-+]\w*c\w*", text) for text in texts):
            # Without a script, it runs what it reads.
            return not given and (reading.has_flow or "-s" in texts)
        lines = given[:4]
    elif head not in ("eval", "trap") and any("$" in text or "`" in text for text in given):
        return True
    return any(_stops(wanted, text, depth - 1) is not Match.NO for text in lines)


def _replaces(words: tuple[Word, ...]) -> bool:
    return any(_REPLACES.match(word.text) for word in words)


def _names(words: tuple[Word, ...]) -> frozenset[str]:
    return words_of_text(" ".join(word.text for word in words))


def _forms(words: tuple[Word, ...]) -> Iterator[tuple[tuple[Word, ...], bool]]:
    """Yield a command, and every command that it wraps, with whether it surely does."""
    for _ in range(DEEPEST):
        at = 0
        while at < len(words) and _is_before_command(words[at]):
            at += 1
        words = words[at:]
        yield words, True
        head = _base(words[0].text) if words else ""
        if head not in WRAPPERS or words[0].is_dynamic:
            return
        texts = tuple(word.text for word in words[1:])
        if head == "command" and texts[:1] in (("-v",), ("-V",)):
            yield (Word("type", "type"), *words[2:]), True
            return
        skipped, is_sure = behind_wrapper(head, texts)
        words = words[1 + skipped :]
        yield words, is_sure
        if not is_sure:
            return


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")


def _is_before_command(word: Word) -> bool:
    return word.written in KEYWORDS or _ASSIGNMENT.match(word.written) is not None
