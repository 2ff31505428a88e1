"""Texts compared with patterns in which `*` matches any text, in time linear in the text."""

from __future__ import annotations


def fits_parts(parts: tuple[str, ...], text: str) -> bool:
    """Return whether a text is these parts, in order, with anything between them."""
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
