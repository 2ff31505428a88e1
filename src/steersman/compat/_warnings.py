"""Warnings about options that run, but not as they are written."""

from __future__ import annotations

import inspect
import warnings

PACKAGE = "steersman."


class TranslationWarning(UserWarning):
    """An option has a value that steersman runs in another form, or without."""


def warn(text: str, category: type[Warning] = TranslationWarning) -> None:
    """Warn at the line of the program that called into this package.

    The filter of `warnings` shows a text once for each such line.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
