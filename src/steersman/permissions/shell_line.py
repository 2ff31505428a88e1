"""What a command line may start, whatever the rule: worked out once for each line.

Every command is listed in all its forms: as it is written, and behind its wrappers. Texts for a
shell (`bash -c`, `eval`) and the commands of `find -exec` are read too. What the text does not
decide is noted: names that may be started in a way that is not the name of a command, and whether
any program at all may be started.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from steersman.permissions.shell_programs import (
    COPYING,
    EVALUATORS,
    HEADS,
    KEYWORDS,
    SHELLS,
    WRAPPERS,
    before_subcommand,
    behind_wrapper,
    is_quiet,
    runs_input,
)
from steersman.permissions.shell_reader import (
    MOST,
    Command,
    Reading,
    Word,
    read,
    read_anew,
    words_of_text,
)

DEEPEST = 4
"""The most wrappers before a command, and texts for a shell within each other, that are read."""
LONGEST_STEM = 6
"""The most words of a command that are compared with a rule before an expansion."""
HEAD = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:+@%,-]*")
"""A name of a command without any expansion."""

OPENING = (["do"], ["{"])
"""What may follow the name behind `for` and `select`, and be followed by a command."""
READING_WORDS = frozenset({"xargs"})
"""Wrappers that add words which they read to the command."""

_REPLACES = re.compile(r"-\w*[IiS]|--(?:rep|sp)")
"""Options of wrappers that make a command of text: `xargs -I`, `env -S`."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")

Stem = tuple[str, ...]
"""A command without its arguments, in lower case."""


@dataclass(slots=True)
class Line:
    """What one line may start."""

    is_whole: bool = True
    """False if the line is too long or too intricate: it may start anything."""
    starts_any: bool = False
    """True if the name of a program is not in the text: `$x`, `eval "$x"`, `source f`."""
    removes: bool = False
    """True if `find -delete` removes files."""
    has_expansion: bool = False
    """True if an expansion decides about a word of a command."""
    sure: dict[str, None] = field(default_factory=dict[str, None])
    """The commands that the line surely starts, in every spelling."""
    unsure: dict[str, None] = field(default_factory=dict[str, None])
    """The commands that it may start."""
    texts: str = ""
    """All commands, to search in."""
    names: set[str] = field(default_factory=set[str])
    """Names that may be started in a way that is not the name of a command."""
    mentions: set[str] = field(default_factory=set[str])
    """Every name in the line."""
    heads: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """The names of commands by their lower case."""
    stems: set[Stem] = field(default_factory=set[Stem])
    """The words of commands before their first expansion."""
    before_stems: set[Stem] = field(default_factory=set[Stem])
    """What these begin with."""
    commands: list[Command] = field(default_factory=list[Command])
    """The commands of the line, and of the texts for a shell within it."""
    given: list[Word] = field(default_factory=list[Word])
    """Words that may be or contain commands, such as the arguments of `python3 -c`."""


@functools.lru_cache(maxsize=64)
def line_of(text: str) -> Line:
    """Work out what a line may start."""
    collector = _Collector()
    collector.add(read(text), DEEPEST, is_sure=True)
    line = collector.line
    line.texts = "\n".join(itertools.chain(line.sure, line.unsure))
    return line


def base_name(word: str) -> str:
    """Return a word without the directories before it."""
    return word.rpartition("/")[2]


class _Collector:
    def __init__(self) -> None:
        self.line = Line()
        self._tokens = MOST
        self._is_mentioned: dict[int, Reading] = {}

    def add(self, reading: Reading, depth: int, *, is_sure: bool) -> None:
        """Add the commands of a line, or of a text for a shell within it."""
        # All texts within a line share one limit, so that the work is linear.
        self._tokens -= reading.tokens
        if not reading.is_whole or self._tokens < 0:
            self.line.is_whole = False
            return
        self.line.mentions |= reading.mentions
        if not reading.is_certain:
            self._may_start_mentions(reading)
        self.line.commands += reading.commands
        for command in reading.commands:
            self._add_command(command, reading, depth, is_sure=is_sure and command.is_sure)

    def _may_start_mentions(self, reading: Reading) -> None:
        if id(reading) not in self._is_mentioned:
            self._is_mentioned[id(reading)] = reading
            self.line.names |= reading.mentions
            for command in reading.commands:
                self.line.given += command.words + command.targets

    def _may_start_words(self, words: tuple[Word, ...]) -> None:
        self.line.names |= _names(words)
        self.line.given += words

    def _add_command(
        self, command: Command, reading: Reading, depth: int, *, is_sure: bool
    ) -> None:
        words = tuple(command.words)
        for form, is_known in _forms(words):
            is_sure = is_sure and is_known
            words = form
            if form:
                self._add_form(form, is_sure=is_sure)
        for form, is_known in _behind_global_options(words):
            self._add_form(form, is_sure=is_sure and is_known)
        skipped = tuple(command.words[: len(command.words) - len(words)])
        if not words or any("=" in word.text for word in skipped):
            # A variable may name a program (GIT_PAGER, EDITOR), and options of a wrapper may be a
            # command: `env -S "rm x"`.
            self._may_start_words(skipped)
        reads_words = any(base_name(word.text) in READING_WORDS for word in skipped)
        is_open = not words or not is_quiet(base_name(words[0].text), _texts(words[1:]))
        if (any(word.is_dynamic for word in skipped) and _replaces(skipped)) or (
            reads_words and is_open
        ):
            # What `xargs` reads may be the name of a program, or an option that names one.
            self.line.starts_any = True
        if not words:
            return
        self._add_started(words, skipped, reading, depth)
        if not is_sure:
            self._may_start_mentions(reading)

    def _add_form(self, words: tuple[Word, ...], *, is_sure: bool) -> None:
        """Add a command in its spellings: as it is written, without quotes, without directories."""
        line, first = self.line, words[0]
        rest = " ".join(word.text for word in words[1:])
        head = base_name(first.text)
        texts = line.sure if is_sure else line.unsure
        for text in (first.text, head):
            texts[f"{text} {rest}" if len(words) > 1 else text] = None
            line.heads.setdefault(text.casefold(), set()).add(text)
        texts[" ".join(word.written for word in words)] = None
        at = next((at for at, word in enumerate(words) if word.is_dynamic), None)
        if at is None:
            return
        line.has_expansion = True
        for text in {first.text, head}:
            stem = tuple(word.text.casefold() for word in words[1:at][: LONGEST_STEM - 1])
            stem = (text.casefold(), *stem) if at else ()
            line.stems.add(stem)
            line.before_stems.update(stem[:end] for end in range(len(stem) + 1))

    def _add_started(
        self, words: tuple[Word, ...], skipped: tuple[Word, ...], reading: Reading, depth: int
    ) -> None:
        """Add what a command may start in a way that is not its name."""
        line = self.line
        head, texts = base_name(words[0].text), _texts(words[1:])
        is_name = HEAD.fullmatch(head) is not None or head in ("[", "[[", ":", "")
        if words[0].is_dynamic or not is_name or (head in WRAPPERS and len(words) > 1):
            line.starts_any = True
            line.given += (*skipped, *words)
            return
        if head == "find":
            self._add_found(words, reading, depth)
        if head in SHELLS or head in EVALUATORS:
            self._add_evaluated(head, words[1:], reading, depth)
            return
        replaces = _replaces(skipped)
        if runs_input(head, texts):
            line.starts_any = True
        if head in COPYING:
            line.names |= {base_name(text) for text in texts if "bin/" in text}
        if is_quiet(head, texts) and not replaces:
            return
        self._may_start_words((*skipped, *words[1:]))
        if head == "git" and any(text[:2] == "-c" or text[:8] == "--config" for text in texts):
            # It may define an alias, which runs another subcommand.
            line.names.add(head)
        # What comes out of one command may be the program of another.
        if (reading.has_flow and head not in ("awk", "sed")) or replaces:
            self._may_start_mentions(reading)

    def _add_found(self, words: tuple[Word, ...], reading: Reading, depth: int) -> None:
        if any(word.text == "-delete" for word in words):
            self.line.removes = True
        starts = [at for at, word in enumerate(words) if re.match("-(?:exec|ok)", word.text)]
        if len(starts) > DEEPEST or (starts and depth == 0):
            self.line.starts_any = True
            return
        for at in starts:
            command = Command(list(words[at + 1 :]))
            self._add_command(command, reading, depth - 1, is_sure=False)

    def _add_evaluated(
        self, head: str, words: tuple[Word, ...], reading: Reading, depth: int
    ) -> None:
        """Add what a shell, or `eval`, may start."""
        line = self.line
        if head in (".", "source") or depth == 0 or any(word.is_dynamic for word in words):
            line.starts_any = True
            return
        texts = [word.text for word in words]
        if reading.has_flow:
            self._may_start_mentions(reading)
        self._may_start_words(words)
        given = [text for text in texts if not text.startswith(("-", "+"))]
        lines = [" ".join(given)]
        if head in SHELLS:
            if not any(re.fullmatch(r"[-+]\w*c\w*", text) for text in texts):
                # Without a script, it runs what it reads.
                reads_commands = not given and (reading.has_flow or "-s" in texts)
                line.starts_any = line.starts_any or reads_commands
                return
            lines = given
        elif (head == "parallel" and not any(text.startswith(":::") for text in texts)) or (
            head not in ("eval", "trap") and any("$" in text or "`" in text for text in given)
        ):
            line.starts_any = True
        for text in lines:
            if line.is_whole:
                self.add(read_anew(text, self._tokens), depth - 1, is_sure=False)


def _texts(words: tuple[Word, ...]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _replaces(words: tuple[Word, ...]) -> bool:
    return any(_REPLACES.match(word.text) for word in words)


def _names(words: tuple[Word, ...]) -> frozenset[str]:
    return words_of_text(" ".join(word.text for word in words))


def _forms(words: tuple[Word, ...]) -> Iterator[tuple[tuple[Word, ...], bool]]:
    """Yield a command, and every command that it wraps, with whether it surely does."""
    for _ in range(DEEPEST):
        words = _behind_keywords(words)
        yield words, True
        head, texts = base_name(words[0].text) if words else "", _texts(words[1:])
        if head not in WRAPPERS or words[0].is_dynamic:
            return
        if head == "command" and texts[:1] in (("-v",), ("-V",)):
            yield (Word("type", "type"), *words[2:]), True
            return
        skipped, is_sure = behind_wrapper(head, texts)
        words = words[1 + skipped :]
        yield words, is_sure
        if not is_sure:
            return


def _behind_keywords(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return what follows the words that only come before a command: `do`, `A=1`, `for i do`."""
    at = 0
    while at < len(words):
        written = words[at].written
        if written in HEADS and [each.written for each in words[at + 2 : at + 3]] in OPENING:
            at += 3
        elif written in KEYWORDS or _ASSIGNMENT.match(written):
            at += 1
        else:
            break
    return words[at:]


def _behind_global_options(words: tuple[Word, ...]) -> Iterator[tuple[tuple[Word, ...], bool]]:
    """Yield a command without the options before its subcommand, with whether that is sure."""
    if not words:
        return
    skipped, is_sure = before_subcommand(base_name(words[0].text), _texts(words[1:]))
    if skipped:
        yield (words[0], *words[1 + skipped :]), is_sure
    if not is_sure:
        # An option that is not known may be followed by a value.
        yield (words[0], *words[2 + skipped :]), False
