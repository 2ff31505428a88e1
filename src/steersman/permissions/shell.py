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
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from steersman._effort import Effort, fits_parts
from steersman.permissions.shell_line import HEAD, LONGEST_STEM, Line, base_name, line_of
from steersman.permissions.shell_programs import KEYWORDS, starts_commands
from steersman.permissions.shell_reader import MOST, Command, Word, read

LONGEST = 16 * 1024
"""The longest command line that is read; no approval covers a longer one, and a denial asks."""
MOST_GRANTED = 100
"""The most commands of a line that an approval covers."""


class Match(Enum):
    """The result of comparing a rule with a call."""

    NO = 0
    MAYBE = 1
    YES = 2


def grants_command(rule: str, line: str, effort: Effort | None = None) -> Match:
    """Return whether an allow rule covers every command of `line`."""
    plain = _plain_commands(line) if len(line) <= LONGEST else None
    if plain is None or not (effort or Effort()).spend(2 * len(plain.texts)):
        return Match.MAYBE
    pattern = command_pattern(rule)
    # The CLI compares an approval with the command as it is written, including quotes.
    fits = list(map(pattern.fits, plain.texts))
    is_hidden = any(pattern.text != text for text in plain.starting)
    if all(fits) and not is_hidden:
        return Match.YES
    return Match.MAYBE if any(fits) or is_hidden else Match.NO


def stops_command(rule: str, line: str, effort: Effort | None = None) -> Match:
    """Return whether a deny or ask rule covers any command of `line`."""
    if len(line) > LONGEST:
        return Match.MAYBE
    return _wanted(rule).stops(line_of(line), effort or Effort())


def is_readable(line: str) -> bool:
    """Return whether a line is short enough to be read."""
    return len(line) <= LONGEST and read(line).is_whole


def commands_in(line: str) -> tuple[tuple[str, ...], ...]:
    """Return every command of a line as words without quotes, for rules about files.

    The files of redirections come last; the name of a command that has none is empty. A line for
    which `is_readable` is false has no commands here.
    """
    return _commands_in(line) if is_readable(line) else ()


@functools.lru_cache(maxsize=64)
def _commands_in(line: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_texts, read(line).commands))


def _texts(command: Command) -> tuple[str, ...]:
    words = list(itertools.dropwhile(lambda word: word.written in KEYWORDS, command.words))
    return tuple(word.text for word in (words or [Word()]) + command.targets)


# Approvals

_REDIRECT = r"(?:[012]?>>?[ \t]*/dev/null|<[ \t]*/dev/null|[012]?>&[012])(?=[ \t;|]|&&|\Z)"
_PLAIN = re.compile(
    rf"(?P<space>[ \t]+)|(?P<joint>&&|\|\||[;|])|(?P<redirect>{_REDIRECT})"
    # The CLI asks about words that begin with `=`, and about backslashes and braces in quotes.
    # It cannot read `[[` and `~[` everywhere.
    r"|(?P<word>(?!=)(?:(?!\[\[|~\[)[A-Za-z0-9_./:+@%,=~*?\[\]-]|'[^'\\{}]*'|\"[^\"$`\\!{}]*\")+)"
)

_GRAMMAR = re.compile(r"s?w(?:sw)*(?:sr)*(?:s?js?w(?:sw)*(?:sr)*)*(?:s?j)?s?")
"""A line by the first letters of its tokens. Redirections end a command, as they do for the CLI."""


@dataclass(frozen=True, slots=True)
class _Plain:
    """The commands of a line in the grammar, as they are written."""

    texts: tuple[str, ...]
    starting: tuple[str, ...]
    """Those of them that may start what their arguments name."""


@functools.lru_cache(maxsize=64)
def _plain_commands(line: str) -> _Plain | None:
    """Return the commands of a line, or None if it is not in the grammar."""
    if not line.replace("\t", " ").isprintable():
        return None
    found = itertools.islice(_PLAIN.finditer(line), MOST)
    tokens = [(token.lastgroup or "", token.group()) for token in found]
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
    if len(commands) > MOST_GRANTED or not all(map(_is_plain, commands)):
        return None
    starting = [words for words in commands if starts_commands(words[0], tuple(words[1:]))]
    return _Plain(tuple(map(" ".join, commands)), tuple(map(" ".join, starting)))


def _is_plain(words: list[str]) -> bool:
    return HEAD.fullmatch(words[0]) is not None and "\t" not in "".join(words)


# Denials


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a deny or ask rule names."""

    patterns: tuple[CommandPattern, ...]
    words: tuple[str, ...]
    """The whole words before the first wildcard."""
    name: str
    """The name of the program, without folders; the beginning of it, if a wildcard follows."""
    is_whole: bool
    others: frozenset[str] = frozenset()
    """Words before the first wildcard, except the first, if they can be found in any text."""

    def stops(self, line: Line, effort: Effort) -> Match:
        """Return whether the rule covers a command of the line, in any form and spelling."""
        if not line.is_whole or not effort.spend(4 + len(line.texts) // 4096):
            return Match.MAYBE
        patterns = [each for each in self.patterns if each.may_fit(line.texts)]
        steps = len(patterns) * (len(line.sure) + len(line.unsure))
        if not effort.spend(steps + (0 if self.is_whole else len(line.names) // 4)):
            return Match.MAYBE
        if any(pattern.fits_any(line.sure) for pattern in patterns):
            return Match.YES
        may_start = (
            line.starts_any
            or (line.removes and self.name in ("rm", "unlink"))
            or self._may_be_started(line)
            or self._may_fit(line)
            or any(pattern.fits_any(line.unsure) for pattern in patterns)
        )
        return Match.MAYBE if may_start else Match.NO

    def _may_fit(self, line: Line) -> bool:
        """Return whether the rule covers a command if its expansions give the right text."""
        if not self.words:
            return line.has_expansion and not self.is_whole
        words = tuple(word.casefold() for word in self.words[:LONGEST_STEM])
        written = line.heads.get(words[0])
        if written is not None and self.words[0] not in written:
            # Only the case differs, which some file systems ignore.
            return True
        return words in line.before_stems or any(
            words[:end] in line.stems for end in range(len(words))
        )

    def _may_be_started(self, line: Line) -> bool:
        """Return whether the program is among the names that may be started."""
        if not line.mentions.issuperset(self.others):
            return False
        if self.is_whole:
            return self.name in line.names
        return any(name.startswith(self.name) for name in line.names)


@functools.lru_cache(maxsize=1024)
def _wanted(rule: str) -> _Wanted:
    pattern = command_pattern(rule, is_lenient=True)
    bare = re.sub(r"['\"\\]", "", rule)
    patterns = (pattern,) if bare == rule else (pattern, command_pattern(bare, is_lenient=True))
    before, *rest = patterns[-1].text.split("*")
    words = before.split()
    if rest and words and not before.endswith(" "):
        partial = words.pop()
        if not words:
            return _Wanted(patterns, (), base_name(partial), is_whole=False)
    name = base_name(words[0]) if words else ""
    others = frozenset(word for word in words[1:] if re.fullmatch(r"[\w.+-]+", word))
    return _Wanted(patterns, tuple(words), name, bool(words), others)


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A rule's content: `a:*` is a prefix of whole words, `*` matches any text."""

    text: str
    parts: tuple[str, ...]
    """The text between the wildcards."""
    may_end: bool = False
    """True if ` *` at the end also matches nothing."""

    def fits(self, text: str) -> bool:
        """Return whether the whole text matches, in time linear in its length."""
        return fits_parts(self.parts, text) or (
            self.may_end and fits_parts((*self.parts[:-2], self.parts[-2][:-1]), text)
        )

    def may_fit(self, texts: str) -> bool:
        """Return whether all parts occur in these texts: if not, the pattern fits none of them."""
        return all(part.strip() in texts for part in self.parts)

    def fits_any(self, texts: Iterable[str]) -> bool:
        """Return whether one of these texts matches as a whole."""
        first = self.parts[0].rstrip()
        return any(text.startswith(first) and self.fits(text) for text in texts)


@functools.lru_cache(maxsize=1024)
def command_pattern(rule: str, *, is_lenient: bool = False) -> CommandPattern:
    """Parse a rule's content."""
    spaced = " ".join(rule.split())
    if rule.endswith(":*"):
        spaced = " ".join(rule[:-2].split())
        return CommandPattern(spaced, (spaced + " ", ""), may_end=True)
    parts = tuple(spaced.split("*"))
    # `git *` also covers `git` alone; the CLI grants that only if it is the only wildcard.
    may_end = spaced.endswith(" *") and (is_lenient or len(parts) == 2)  # noqa: PLR2004
    return CommandPattern(spaced, parts, may_end)
