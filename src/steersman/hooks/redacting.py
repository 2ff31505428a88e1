"""Texts and patterns to one function that hides them."""

from __future__ import annotations

import re
from collections.abc import Callable

from steersman.errors import UsageError

__all__ = ["Masked", "Pattern", "masker"]

Pattern = re.Pattern[str]
Masked = Callable[[str], str]


def masker(patterns: tuple[str | Pattern, ...], replacement: str) -> Masked:
    """A function that puts `replacement` wherever one of the patterns fits."""
    if not patterns:
        raise UsageError("patterns", "none", "at least one text or compiled pattern")
    for each in patterns:
        if not (isinstance(each, re.Pattern) or (isinstance(each, str) and each)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("patterns", each, "texts that are not empty, or compiled patterns")
    if not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("replacement", replacement, "a text")
    found = [re.compile(re.escape(each)) if isinstance(each, str) else each for each in patterns]

    def mask(text: str) -> str:
        for pattern in found:
            text = pattern.sub(lambda _: replacement, text)
        return text

    return mask
