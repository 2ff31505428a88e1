"""A command line split into commands, for denials: in doubt into too many rather than too few.

Quotes, substitutions, redirections and separators are read as bash reads them. What is not read
with certainty (comments, here-documents, arithmetic, unbalanced quotes) is noted in the result.
The work is linear in the length of the line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field

MOST = 3000
"""The most tokens of a line that are read."""
MOST_NESTED = 100
"""The most substitutions and subshells within each other that are read."""


@dataclass(slots=True)
class Word:
    """A word of a command."""

    text: str = ""
    """The word without its quotes."""
    written: str = ""
    is_dynamic: bool = False
    """True if an expansion, a substitution or a pattern decides about its text."""


@dataclass(slots=True)
class Command:
    """A simple command: its words, and the files of its redirections."""

    words: list[Word] = field(default_factory=list[Word])
    targets: list[Word] = field(default_factory=list[Word])
    is_sure: bool = True
    """False if it was read behind a construct that is not read with certainty."""


@dataclass(slots=True)
class Reading:
    """The commands of a line."""

    commands: list[Command] = field(default_factory=list[Command])
    is_certain: bool = True
    is_whole: bool = True
    """False if the line has more than `MOST` tokens: the rest was not read."""
    has_flow: bool = False
    """True if text goes from one command or file to another: pipes, redirections."""
    mentions: frozenset[str] = frozenset()
    """Every name in the line that could be the name of a program, also in quotes."""
    tokens: int = 0
    """The number of tokens that were read."""


@functools.lru_cache(maxsize=64)
def read(line: str) -> Reading:
    """Split a line into commands."""
    return read_anew(line)


def read_anew(line: str, most: int = MOST) -> Reading:
    """Split a line into commands; at most this many tokens of it."""
    reader = _Reader(line, most)
    reader.read()
    if reader.reading.is_whole:
        reader.reading.mentions = words_of_text(line)
    return reader.reading


MOST_LETTERS = 6
"""Letters of options in one word that may stand before the name of a program."""

_NAME = re.compile(r"[\w.+-]+")
_QUOTES = re.compile(r"\\\r?\n|['\"\\]")


def words_of_text(text: str) -> frozenset[str]:
    """Return every name in a text, with quotes removed and with quotes as spaces."""
    found = set(_names(text))
    if _QUOTES.search(text):
        found.update(_names(_QUOTES.sub("", text)))
        found.update(_names(text.replace("\\n", " ").replace("\\t", " ")))
    if "${" in text:
        # `${x-rm}` and `${x:+rm}` have a name behind a sign.
        found.update(_names(text.replace("-", " ").replace("+", " ")))
    return frozenset(found)


def _names(text: str) -> list[str]:
    # A name before a slash is that of a directory.
    names: list[str] = []
    for match in _NAME.finditer(text):
        if text[match.end() : match.end() + 1] != "/":
            name = match.group()
            is_short = name[0] == "-" and name[1:2] != "-"
            # `-Oless`, and `-lOless`.
            names.append(name)
            if is_short:
                names += [name[at:] for at in range(2, min(len(name), MOST_LETTERS))]
    return names


_TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<newline>\r?\n)|\\(?P<joined>\r?\n)|\\(?P<escaped>.)"
    r"|'(?P<single>[^']*)'|(?P<ansi>\$'(?:[^'\\]|\\.)*')|(?P<quote>\$?\")"
    r"|(?P<arithmetic>\$?\(\()|(?P<open>\$\(|[<>=]?\()|(?P<close>\))|(?P<tick>`)"
    r"|(?P<variable>\$(?:\w+|\{\w+\}|[?$!#@*-]))"
    r"|(?P<redirect>&>>?|<<<|<<-?|[<>]&|>>|>\||<>|[<>])|(?P<joint>&&|\|\||\|&|;;&?|;&|[;|&])"
    r"|(?P<plain>[^\s'\"\\`$()&|;<>#=]+|=)|(?P<hash>\#)|(?P<other>.)",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"(?P<plain>[^\"\\`$]+)|\\(?P<joined>\r?\n)|\\(?P<escaped>.)|(?P<arithmetic>\$\(\()"
    r"|(?P<open>\$\()|(?P<tick>`)|(?P<variable>\$(?:\w+|\{\w+\}|[?$!#@*-]))|(?P<quote>\")"
    r"|(?P<other>.)",
    re.DOTALL,
)
_TEXT = dict.fromkeys(map(ord, "\n\t"))
_PATTERN = re.compile(r"[*?\[]")
_RESERVED = frozenset({"case", "esac", "function", "select", "[[", "coproc", "foreach", "repeat"})


@dataclass(slots=True)
class _Frame:
    """A line within the line: a substitution, a subshell, or the line itself."""

    closes: str = ""
    command: Command = field(default_factory=Command)
    word: Word | None = None
    is_quoted: bool = False
    is_target: bool = False
    """True if the next word is the file of a redirection."""


class _Reader:
    def __init__(self, line: str, most: int) -> None:
        self.reading = Reading()
        self._line = line
        self._most = most
        self._at = 0
        self._frames = [_Frame()]

    @property
    def _frame(self) -> _Frame:
        return self._frames[-1]

    def read(self) -> None:
        if not self._line.translate(_TEXT).isprintable():
            self._doubt()
        while self._at < len(self._line):
            self.reading.tokens += 1
            if self.reading.tokens > self._most or len(self._frames) > MOST_NESTED:
                self.reading.is_whole = False
                return
            pattern = _QUOTED if self._frame.is_quoted else _TOKEN
            token = pattern.match(self._line, self._at)
            assert token is not None
            self._at = token.end()
            _HANDLERS[token.lastgroup or "other"](self, token)
        if len(self._frames) > 1 or self._frame.is_quoted:
            self._doubt()
        while self._frames:
            self._end_command()
            self._frames.pop()

    # Words

    def _add(self, text: str, written: str, *, is_dynamic: bool = False) -> None:
        frame = self._frame
        if frame.word is None:
            frame.word = Word()
        frame.word.text += text
        frame.word.written += written
        frame.word.is_dynamic = frame.word.is_dynamic or is_dynamic

    def on_plain(self, token: re.Match[str]) -> None:
        text = token.group()
        is_pattern = not self._frame.is_quoted and text not in ("[", "[[", "{}", "?")
        self._add(text, text, is_dynamic=is_pattern and _is_pattern(text))

    def on_single(self, token: re.Match[str]) -> None:
        self._add(token["single"], token.group())

    def on_escaped(self, token: re.Match[str]) -> None:
        text = token["escaped"]
        is_kept = self._frame.is_quoted and text not in '$`"\\'
        self._add("\\" + text if is_kept else text, token.group())

    def on_joined(self, _token: re.Match[str]) -> None:
        """A newline behind a backslash is no character at all."""

    def on_ansi(self, token: re.Match[str]) -> None:
        self._add(_ANSI.sub(_unescaped, token.group()[2:-1]).partition("\0")[0], token.group())
        self._doubt()

    def on_variable(self, token: re.Match[str]) -> None:
        self._add(token.group(), token.group(), is_dynamic=True)

    def on_quote(self, token: re.Match[str]) -> None:
        self._add("", token.group())
        self._frame.is_quoted = not self._frame.is_quoted

    def on_hash(self, token: re.Match[str]) -> None:
        if self._frame.word is not None:
            self._add("#", "#")
            return
        self._doubt()
        end = self._line.find("\n", token.start())
        self._at = len(self._line) if end < 0 else end

    def on_other(self, token: re.Match[str]) -> None:
        text = token.group()
        if text == "$" and self._line[self._at : self._at + 1] in (" ", '"', ""):
            self._add(text, text)
            return
        self._doubt()
        if text.isspace():
            # Some shells end a command here, and others take it as a part of a word.
            self._end_command()
        else:
            self._add(text, text, is_dynamic=True)

    # Lines within the line

    def on_open(self, token: re.Match[str]) -> None:
        text = token.group()
        frame = self._frame
        if text == "(":
            if frame.word is not None:
                self._doubt()
            self._end_command()
        else:
            self._add(text, text, is_dynamic=True)
        self._frames.append(_Frame(")"))

    def on_arithmetic(self, token: re.Match[str]) -> None:
        self._doubt()
        self._add("$", token.group(), is_dynamic=True)
        self._frames += [_Frame(")"), _Frame(")")]

    def on_close(self, _token: re.Match[str]) -> None:
        self._end_command()
        if self._frame.closes == ")":
            self._frames.pop()
        else:
            self._doubt()

    def on_tick(self, _token: re.Match[str]) -> None:
        if self._frame.closes == "`" and not self._frame.is_quoted:
            self._end_command()
            self._frames.pop()
            return
        if any(frame.closes == "`" for frame in self._frames):
            self._doubt()
        self._add("`", "`", is_dynamic=True)
        self._frames.append(_Frame("`"))

    # Ends

    def on_space(self, _token: re.Match[str]) -> None:
        self._end_word()

    def on_newline(self, token: re.Match[str]) -> None:
        if len(token.group()) > 1:
            self._doubt()
        self._end_command()

    def on_joint(self, token: re.Match[str]) -> None:
        self.reading.has_flow = self.reading.has_flow or token.group() in ("|", "|&")
        self._end_command()

    def on_redirect(self, token: re.Match[str]) -> None:
        frame = self._frame
        word = frame.word
        if word is not None and (word.written.isdigit() or word.written.startswith("{")):
            # The number of a file, or a variable for it, is no word of the command.
            frame.word = None
        self._end_word()
        frame.is_target = True
        self.reading.has_flow = True
        if token.group() in ("<<", "<<-"):
            self._doubt()

    def _end_word(self) -> None:
        frame = self._frame
        word, frame.word = frame.word, None
        if word is None:
            return
        if frame.is_target:
            frame.is_target = False
            frame.command.targets.append(word)
            return
        if word.written in _RESERVED:
            self._doubt()
        frame.command.words.append(word)

    def _end_command(self) -> None:
        self._end_word()
        frame = self._frame
        command, frame.command, frame.is_target = frame.command, Command(), False
        if command.words or command.targets:
            command.is_sure = self.reading.is_certain
            self.reading.commands.append(command)

    def _doubt(self) -> None:
        self.reading.is_certain = False


_ANSI = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})"
    r"|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>.)|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_LAST = 0x10FFFF


def _unescaped(found: re.Match[str]) -> str:
    """Return what an escape in `$'...'` stands for."""
    code = found["hex"] or found["short"] or found["long"]
    if found["octal"]:
        return chr(int(found["octal"], 8) & 0xFF)
    if code:
        return chr(min(int(code, 16), _LAST))
    if found["control"]:
        return chr(ord(found["control"]) & 0x1F)
    letter = found["letter"] or ""
    if letter in "xuU":
        return found.group()
    return _LETTERS.get(letter, letter)


def _is_pattern(text: str) -> bool:
    """Return whether the shell may replace a word without quotes: by names, or `{a,b}` by words."""
    if _PATTERN.search(text):
        return True
    inside = text[text.find("{") + 1 : max(text.rfind("}"), 0)] if "{" in text else ""
    return "," in inside or "." in inside


_HANDLERS: dict[str, Callable[[_Reader, re.Match[str]], None]] = {
    "space": _Reader.on_space,
    "newline": _Reader.on_newline,
    "joined": _Reader.on_joined,
    "escaped": _Reader.on_escaped,
    "single": _Reader.on_single,
    "ansi": _Reader.on_ansi,
    "quote": _Reader.on_quote,
    "arithmetic": _Reader.on_arithmetic,
    "open": _Reader.on_open,
    "close": _Reader.on_close,
    "tick": _Reader.on_tick,
    "variable": _Reader.on_variable,
    "redirect": _Reader.on_redirect,
    "joint": _Reader.on_joint,
    "plain": _Reader.on_plain,
    "hash": _Reader.on_hash,
    "other": _Reader.on_other,
}
