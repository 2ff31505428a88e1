"""Names as databases can hold them: without NUL, which PostgreSQL has not, and lone surrogates.

Such a character, and the backslash, is written as an escape; all other texts stay as they are.
"""

from __future__ import annotations

import re

_ODD = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def to_plain(text: str) -> str:
    """Return `text` as one that every database holds, and that no other text becomes."""
    if not _ODD.search(text):
        return text
    return _ODD.sub(lambda odd: "\\\\" if odd[0] == "\\" else f"\\u{ord(odd[0]):04x}", text)


def from_plain(plain: str) -> str:
    """Return the text that `to_plain` was given."""
    if "\\" not in plain:
        return plain
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", plain)
