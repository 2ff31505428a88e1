"""Text of others on a terminal: what cannot be seen is shown as an escape, and not obeyed.

The console has the same ranges and escapes, in `console/src/visible.ts`.
"""

from __future__ import annotations

import re

# Control characters but newline and tab, and lone surrogates.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
# What orders text anew, what has no width, and what is drawn as nothing.
_MARKS = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
# What looks like a space, and separates no words of a command.
_SPACES = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
# What emoji are made of; between these, a joiner and a selector are seen by what they change.
_PICTURES = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_IN_EMOJI = (
    f"(?<=[{_PICTURES}])\ufe0f|\ufe0f(?=\u20e3)|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
)

_UNSEEN = re.compile(f"({_IN_EMOJI})|[{_CONTROLS}{_MARKS}]")
_UNSEEN_OR_SPACE = re.compile(f"[{_CONTROLS}{_MARKS}{_SPACES}]")
_BREAKS = re.compile("[\t\n]")


def printable(text: str) -> str:
    """Return `text` with characters that cannot be seen as escapes, except newlines and tabs."""
    return _UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """Return `text` with characters that cannot be seen as escapes, also newlines and tabs."""
    return _BREAKS.sub(_escape, printable(text))


def exact(text: str) -> str:
    """Return text that will be run: `printable`, with spaces that are none as escapes too."""
    return _UNSEEN_OR_SPACE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    if found.lastindex:
        return found[0]
    return found[0].encode("unicode_escape").decode("ascii")
