"""JSON that is still being written, parsed as far as it has arrived.

Parts of a text in, a value out at any time. Each character is parsed once and each text is joined
once, so reading the value after every part is linear in the length of the text. (Arrays that are
still open are copied at each reading.) Text that is not JSON stops the parser and does not raise.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeAlias

from steersman import _json
from steersman._json import Json, JsonDict


class Nothing(Enum):
    """The type of `NOTHING`."""

    NOTHING = auto()


NOTHING: Final = Nothing.NOTHING
"""The value before the first character of one has arrived."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]+')
_SCALAR = re.compile(r"[-+.0-9A-Za-z]+")
_ESCAPE = re.compile(r"\\(?:[^u]|u[0-9a-fA-F]{4})")
_LONGEST_ESCAPE = len("\\u0000")
_HIGH_SURROGATES = range(0xD800, 0xDC00)
_LOW_SURROGATES = range(0xDC00, 0xE000)


class GrowingText:
    """A text that grows at its end and may be read after every part.

    Each part is joined once. If the caller has kept no earlier reading, the text grows in place;
    otherwise a reading copies it, since a `str` that is in use cannot change.
    """

    __slots__ = ("_parts", "_text", "joined")

    def __init__(self) -> None:
        self._text = ""
        self._parts: list[str] = []
        self.joined = 0
        """How many characters were joined so far. Reading the text again adds nothing."""

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
    """What the next character may begin."""

    VALUE = auto()
    FIRST = auto()
    """The first value of an array, or its end."""
    KEY = auto()
    FIRST_KEY = auto()
    COLON = auto()
    MORE = auto()
    """A comma, or the end of the innermost open container."""
    STRING = auto()
    """The rest of a string."""
    SCALAR = auto()
    """The rest of a number or of `true`, `false` or `null`."""
    END = auto()


_Container: TypeAlias = JsonDict | list[Json]


@dataclass(slots=True)
class _Open:
    """An object or array that is not closed yet, and the key of the value being read."""

    value: _Container
    key: str = ""

    def put(self, value: Json) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)

    def copy_with(self, inner: Json) -> Json:
        """Return a copy of the container that also holds `inner`."""
        copied = _Open(self.value.copy(), self.key)
        if inner is not NOTHING:
            copied.put(inner)
        return copied.value


@dataclass(slots=True)
class PartialJson:
    """One JSON value that grows with each part of its text.

    A string shows as far as it has arrived, an object with the fields whose value has begun. A
    number, `true`, `false` or `null` shows once it is whole: half a number is another number.
    """

    is_whole: bool = field(default=False, init=False)
    """Whether the value is complete."""
    is_broken: bool = field(default=False, init=False)
    """Whether the text is not JSON; the value is what came before the error."""
    _expects: _Expects = field(default=_Expects.VALUE, init=False)
    _stack: list[_Open] = field(default_factory=list[_Open], init=False)
    reading: GrowingText = field(default_factory=GrowingText, init=False)
    """The string, number or literal that is being read."""
    _is_key: bool = field(default=False, init=False)
    _kept: str = field(default="", init=False)
    """The beginning of an escape sequence whose end has not arrived."""
    _root: Json = field(default=NOTHING, init=False)

    def feed(self, part: str) -> None:
        """Parse the next part of the text."""
        text, self._kept = self._kept + part, ""
        at = 0
        while at < len(text) and not self.is_broken:
            at = self._step(text, at)

    def finish(self) -> None:
        """End the text. A number at the very end is whole now."""
        if self._expects is _Expects.SCALAR:
            self._end_scalar()

    @property
    def value(self) -> Json:
        """The value so far. Open containers are copied: a value that was read does not change."""
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

    # Punctuation

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
        """Put a whole value into the container that holds it."""
        if self._stack:
            self._stack[-1].put(value)
            self._expects = _Expects.MORE
        else:
            self._root = value
            self.is_whole = True
            self._expects = _Expects.END

    # Strings

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
            # A high surrogate and the low one after it are two escapes that make one character.
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
        """Keep the beginning of an escape for the next part, unless it is already too long."""
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

    # Numbers and literals

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
