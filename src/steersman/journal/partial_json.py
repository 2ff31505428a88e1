"""JSON that is still being written, read as far as it has come.

Pieces of text in, a value out at any time. Each character is looked at once, however small the
pieces; a library that parses the whole prefix anew for each piece would take minutes for the input
of a tool that writes a large file. Total: what is no JSON ends the reading, it does not raise.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeAlias

from steersman import _json
from steersman._json import Json, JsonDict

__all__ = ["NOTHING", "GrowingText", "PartialJson"]


class Nothing(Enum):
    """The type of `NOTHING`."""

    NOTHING = auto()


NOTHING: Final = Nothing.NOTHING
"""The value of a text that has said nothing yet."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]+')
_SCALAR = re.compile(r"[-+.0-9A-Za-z]+")
_ESCAPE = re.compile(r"\\(?:[^u]|u[0-9a-fA-F]{4})")
_LONGEST_ESCAPE = len("\\u0000")
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_LOW_SURROGATES = range(0xDC00, 0xE000)


class GrowingText:
    """A text that grows at its end and may be read after every part.

    Each part is joined once. Reading the text again copies nothing as long as no earlier reading
    of it is still in use; otherwise it copies the text, since a `str` cannot change.
    """

    __slots__ = ("_parts", "_text", "joined")

    def __init__(self) -> None:
        self._text = ""
        self._parts: list[str] = []
        self.joined = 0
        """How many characters were joined so far; each counts once, however often it is read."""

    def append(self, part: str) -> None:
        """Add `part` at the end."""
        self._parts.append(part)

    @property
    def text(self) -> str:
        """The whole text."""
        if self._parts:
            new = "".join(self._parts)
            self._parts.clear()
            self.joined += len(new)
            # The local name is the only reference now, so CPython extends the text in place.
            text, self._text = self._text, ""
            text += new
            self._text = text
        return self._text


class _Expects(Enum):
    """What may come next."""

    VALUE = auto()
    FIRST = auto()
    """A value, or the end of an array that has none."""
    KEY = auto()
    FIRST_KEY = auto()
    COLON = auto()
    MORE = auto()
    """A comma, or the end of what is open."""
    STRING = auto()
    """The rest of a text."""
    SCALAR = auto()
    """The rest of a number or a word."""
    END = auto()


_Container: TypeAlias = JsonDict | list[Json]


@dataclass(slots=True)
class _Open:
    """An object or array that is not closed yet."""

    value: _Container
    key: str = ""

    def put(self, value: Json) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)

    def copy_with(self, inner: Json) -> Json:
        """What it holds so far and `inner`, in a container of its own."""
        copied = _Open(self.value.copy(), self.key)
        if inner is not NOTHING:
            copied.put(inner)
        return copied.value


@dataclass(slots=True)
class PartialJson:
    """One JSON value that grows with each piece.

    A text shows as far as it was written, an object with the fields whose value has begun. A number
    or a word shows once it is whole: half a number is another number.
    """

    is_whole: bool = field(default=False, init=False)
    """Whether the value is complete."""
    is_broken: bool = field(default=False, init=False)
    """Whether something came that is no JSON; the value is what came before it."""
    _expects: _Expects = field(default=_Expects.VALUE, init=False)
    _stack: list[_Open] = field(default_factory=list[_Open], init=False)
    reading: GrowingText = field(default_factory=GrowingText, init=False)
    """The text, number or word that is being read."""
    _is_key: bool = field(default=False, init=False)
    _kept: str = field(default="", init=False)
    """The beginning of an escape whose end has not come."""
    _root: Json = field(default=NOTHING, init=False)

    def feed(self, piece: str) -> None:
        """Read on."""
        text, self._kept = self._kept + piece, ""
        at = 0
        while at < len(text) and not self.is_broken:
            at = self._step(text, at)

    def finish(self) -> None:
        """Nothing more will come: a number at the very end is whole."""
        if self._expects is _Expects.SCALAR:
            self._end_scalar()

    @property
    def value(self) -> Json:
        """What is known so far; containers that still grow are copied, so it does not change."""
        found = self._root
        if self._expects is _Expects.STRING and not self._is_key:
            found = self.reading.text
        for level in reversed(self._stack):
            found = level.copy_with(found)
        return found

    def _step(self, text: str, at: int) -> int:
        if self._expects is _Expects.STRING:
            return self._read_string(text, at)
        if self._expects is _Expects.SCALAR:
            return self._read_scalar(text, at)
        at = _end_of(_SPACE, text, at)
        return self._read_mark(text, at) if at < len(text) else at

    # Marks

    def _read_mark(self, text: str, at: int) -> int:
        mark = text[at]
        match self._expects, mark:
            case ((_Expects.KEY | _Expects.FIRST_KEY), '"'):
                self._begin_string(is_key=True)
            case ((_Expects.VALUE | _Expects.FIRST), '"'):
                self._begin_string(is_key=False)
            case ((_Expects.VALUE | _Expects.FIRST), "{"):
                self._push({}, _Expects.FIRST_KEY)
            case ((_Expects.VALUE | _Expects.FIRST), "["):
                self._push([], _Expects.FIRST)
            case ((_Expects.FIRST | _Expects.MORE), "]"):
                self._pop(list)
            case ((_Expects.FIRST_KEY | _Expects.MORE), "}"):
                self._pop(dict)
            case _Expects.COLON, ":":
                self._expects = _Expects.VALUE
            case _Expects.MORE, ",":
                is_object = isinstance(self._stack[-1].value, dict)
                self._expects = _Expects.KEY if is_object else _Expects.VALUE
            case ((_Expects.VALUE | _Expects.FIRST), _) if _SCALAR.match(mark):
                self._expects = _Expects.SCALAR
                return at
            case _:
                self.is_broken = True
        return at + 1

    def _push(self, value: _Container, expects: _Expects) -> None:
        self._stack.append(_Open(value))
        self._expects = expects

    def _pop(self, kind: type) -> None:
        if not isinstance(self._stack[-1].value, kind):
            self.is_broken = True
            return
        self._put(self._stack.pop().value)

    def _put(self, value: Json) -> None:
        """A value is whole: it goes into what holds it."""
        if self._stack:
            self._stack[-1].put(value)
            self._expects = _Expects.MORE
        else:
            self._root = value
            self.is_whole = True
            self._expects = _Expects.END

    # Texts

    def _begin_string(self, *, is_key: bool) -> None:
        self.reading = GrowingText()
        self._is_key = is_key
        self._expects = _Expects.STRING

    def _read_string(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._end_string()
            return at + 1
        if text[at] != "\\":
            end = _end_of(_PLAIN, text, at)
            self.reading.append(text[at:end])
            return end
        return self._read_escape(text, at)

    def _read_escape(self, text: str, at: int) -> int:
        found = _ESCAPE.match(text, at)
        if found is None:
            return self._keep(text, at, _LONGEST_ESCAPE)
        end = found.end()
        if _is_surrogate(found.group(), _HIGH_SURROGATES):
            # Two escapes make one character, if the second one is its other half.
            if len(text) < end + _LONGEST_ESCAPE and text[end : end + 2] in ("", "\\", "\\u"):
                return self._keep(text, at, 2 * _LONGEST_ESCAPE)
            second = _ESCAPE.match(text, end)
            if second is not None and _is_surrogate(second.group(), _LOW_SURROGATES):
                end = second.end()
        try:
            self.reading.append(json.loads(f'"{text[at:end]}"'))
        except ValueError:
            self.is_broken = True
        return end

    def _keep(self, text: str, at: int, most: int) -> int:
        """Wait for the rest of an escape, unless it is none."""
        if len(text) - at >= most:
            self.is_broken = True
        else:
            self._kept = text[at:]
        return len(text)

    def _end_string(self) -> None:
        found, self.reading = self.reading.text, GrowingText()
        if self._is_key:
            self._stack[-1].key = found
            self._expects = _Expects.COLON
        else:
            self._put(found)

    # Numbers and words

    def _read_scalar(self, text: str, at: int) -> int:
        end = _end_of(_SCALAR, text, at)
        self.reading.append(text[at:end])
        if end < len(text):
            self._end_scalar()
        return end

    def _end_scalar(self) -> None:
        found, self.reading = self.reading.text, GrowingText()
        try:
            value = _json.loads(found.encode())
        except ValueError:
            self.is_broken = True
        else:
            self._put(value)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _is_surrogate(escape: str, half: range) -> bool:
    return len(escape) == _LONGEST_ESCAPE and int(escape.removeprefix("\\u"), 16) in half
