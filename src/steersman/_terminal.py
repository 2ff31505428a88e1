"""Text of others on a terminal: control characters are shown, not obeyed."""

from __future__ import annotations

import re

__all__ = ["one_line", "printable"]

# Control characters, the marks that reverse the order of text, and lone surrogates.
_MARKS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MARKS}]")
_BREAKS = re.compile(rf"[\x00-\x1f\x7f-\x9f{_MARKS}]")


def printable(text: str) -> str:
    """Return `text` with control characters as escapes, except newlines and tabs."""
    return _CONTROLS.sub(_escape, text)


def one_line(text: str) -> str:
    """Return `text` with control characters as escapes, also newlines and tabs."""
    return _BREAKS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
