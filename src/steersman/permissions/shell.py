"""Bash commands compared with rules.

An allow rule covers a line only if it certainly covers every command in it. A deny rule covers a
line if it may cover any command in it, also behind `sudo`, `env` or a substitution. The result is
`MAYBE` if the text does not decide it: then the CLI, which parses the whole grammar of the shell,
or the user decides.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

__all__ = ["Match", "commands_in", "grants_command", "stops_command"]


class Match(Enum):
    """The result of comparing a rule with a call."""

    NO = 0
    MAYBE = 1
    YES = 2


WRAPPERS = frozenset(
    {"builtin", "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf"}
    | {"sudo", "time", "timeout", "xargs"}
)
"""Commands that run the command in their arguments."""
KEYWORDS = frozenset(
    {"!", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while"}
    | {"{", "}"}
)
SHELLS = frozenset({"bash", "dash", "fish", "ksh", "sh", "zsh"})
OPAQUE = frozenset({"-c", "-exec", "-execdir", "-ok", "-delete"})
"""Arguments that are followed by a command, or that act like one."""

_HARMLESS_REDIRECT = re.compile(r"\s*(?:\d?>&\d|[&\d]?>>?\s*/dev/null|<\s*/dev/null)(?=\s|$|[;|&])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_NUMBER = re.compile(r"[\d.]+[smhd]?")


def grants_command(rule: str, line: str) -> Match:
    """Return whether an allow rule covers every command of `line`."""
    parsed = _parsed(line)
    pattern = _pattern(rule)
    # The CLI compares an approval with the command as it is written, including quotes.
    fits = [pattern.fullmatch(written) is not None for written in parsed.written]
    if parsed.is_plain and fits and all(fits):
        return Match.YES
    is_hidden = not parsed.is_plain or any(words[0] in WRAPPERS for words in parsed.commands)
    return Match.MAYBE if any(fits) or is_hidden else Match.NO


def stops_command(rule: str, line: str) -> Match:
    """Return whether a deny or ask rule covers any command of `line`."""
    parsed = _parsed(line)
    pattern = _pattern(rule, is_lenient=True)
    if any(pattern.fullmatch(" ".join(form)) for each in parsed.commands for form in _forms(each)):
        return Match.YES
    return Match.MAYBE if any(map(_is_opaque, parsed.commands)) else Match.NO


def commands_in(line: str) -> tuple[tuple[str, ...], ...]:
    """Return every command of a line as words without quotes, for rules about files."""
    return _parsed(line).commands


@functools.lru_cache(maxsize=1024)
def _pattern(rule: str, *, is_lenient: bool = False) -> re.Pattern[str]:
    """Compile a rule's content: `a:*` is a prefix of whole words, `*` matches any text."""
    if rule.endswith(":*"):
        return re.compile(re.escape(_spaced(rule[:-2])) + r"(?: .*)?", re.DOTALL)
    spaced = _spaced(rule)
    body = ".*".join(map(re.escape, spaced.split("*")))
    # `git *` also covers `git` alone; the CLI grants that only if it is the only wildcard.
    if spaced.endswith(" *") and (is_lenient or spaced.count("*") == 1):
        body = re.escape(spaced[:-2]) if spaced.count("*") == 1 else body.removesuffix(r"\ .*")
        body += r"(?: .*)?"
    return re.compile(body, re.DOTALL)


def _spaced(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _Parsed:
    commands: tuple[tuple[str, ...], ...]
    written: tuple[str, ...]
    """The commands with their quotes, one space between words."""
    is_plain: bool
    """True if the line has only words, quotes, `&&`, `||`, `;` and `|`."""


@functools.lru_cache(maxsize=256)
def _parsed(line: str) -> _Parsed:
    reader = _Reader(_HARMLESS_REDIRECT.sub("", line))
    reader.read()
    commands = tuple(tuple(words) for words in reader.commands if words)
    written = tuple(" ".join(words) for words in reader.written if words)
    return _Parsed(commands, written, reader.is_plain)


_TOKEN = re.compile(
    r"'(?P<single>[^']*)'|(?P<joint>&&|\|\||[;|])|(?P<odd>\$\(|<\(|>\(|[`()&\n]|[<>]+)"
    r"|\\(?P<escaped>.)|(?P<quote>\")|(?P<space>[ \t\r]+)"
    r"|(?P<plain>[^\s'\"\\`()&|;<>$#]+)|(?P<other>.)",
    re.DOTALL,
)


class _Reader:
    """Splits a line into commands; in doubt into too many rather than too few."""

    def __init__(self, line: str) -> None:
        self.commands: list[list[str]] = [[]]
        self.written: list[list[str]] = [[]]
        self.is_plain = True
        self._line = line
        self._word: str | None = None
        self._as_written = ""
        self._is_quoted = False

    def read(self) -> None:
        for token in _TOKEN.finditer(self._line):
            kind, text = token.lastgroup or "", token.group()
            if kind == "single":
                self._add(text if self._is_quoted else token["single"], text)
            elif kind == "quote":
                self._is_quoted = not self._is_quoted
                self._add("", text)
            elif kind == "escaped":
                self.is_plain = False
                self._add(token["escaped"], text)
            elif kind == "odd":
                self._odd(text)
            elif self._is_quoted or kind in ("plain", "other"):
                self.is_plain = self.is_plain and not (kind == "other" and text in "$#'")
                self._add(text, text)
            else:
                self._end_word(ends_command=kind == "joint")
        self.is_plain = self.is_plain and not self._is_quoted
        self._end_word(ends_command=True)

    def _odd(self, text: str) -> None:
        # Inside double quotes only substitutions are special. They contain commands.
        if self._is_quoted and text not in ("$(", "`"):
            self._add(text, text)
            return
        self.is_plain = False
        self._end_word(ends_command=text[0] not in "<>" or text.endswith("("))

    def _add(self, text: str, as_written: str) -> None:
        self._word = (self._word or "") + text
        self._as_written += as_written

    def _end_word(self, *, ends_command: bool) -> None:
        if self._word is not None:
            if self._word in KEYWORDS and not self.commands[-1]:
                self.is_plain = False
            else:
                self.commands[-1].append(self._word)
                self.written[-1].append(self._as_written)
        self._word, self._as_written = None, ""
        if ends_command:
            self.commands.append([])
            self.written.append([])


def _forms(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a command as written, and every command that it wraps."""
    while words:
        yield words
        head = words[0].rpartition("/")[2]
        if head != words[0]:
            yield (head, *words[1:])
        if head in WRAPPERS:
            words = _behind_wrapper(words[1:])
        elif _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        else:
            return


def _behind_wrapper(words: tuple[str, ...]) -> tuple[str, ...]:
    while words and (words[0].startswith("-") or _NUMBER.fullmatch(words[0])):
        words = words[1:]
    return words


def _is_opaque(words: tuple[str, ...]) -> bool:
    for form in _forms(words):
        head = form[0].rpartition("/")[2]
        if head in ("eval", "source", ".") or form[0].startswith("$"):
            return True
        if (head in SHELLS or head == "find") and OPAQUE & set(form):
            return True
    return False
