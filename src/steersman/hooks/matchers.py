"""Which names a matcher means, exactly as the CLI reads it.

Letters, digits, `_`, `-`, spaces, `|` and `,` make a list of whole names; anything else makes a
pattern that may fit anywhere in the name. The CLI's patterns are JavaScript's; those that Python
reads otherwise are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from steersman.errors import UsageError

__all__ = ["check_matcher", "matches"]

LIST = re.compile(r"[A-Za-z0-9_\-|, ]*")
SEPARATOR = re.compile(r"[|,]")
ONLY_PYTHON = re.compile(r"\(\?(?![:=!<])|\(\?<(?![=!A-Za-z_$])|\(\?P|\\[AZ]")
"""Flags, comments, conditions and anchors that JavaScript does not know, or spells otherwise."""

FORMER_NAMES = {"Agent": "Task"}
"""A tool that was renamed also answers to its old name."""


def matches(matcher: str | None, name: str) -> bool:
    """Whether the CLI calls a hook with this matcher for a tool, a source, a trigger … `name`."""
    fits = _compiled(matcher)
    former = FORMER_NAMES.get(name)
    return fits(name) or (former is not None and fits(former))


def check_matcher(matcher: object) -> None:
    """Refuse a matcher that could never fit: the CLI takes it and says nothing."""
    if not (matcher is None or isinstance(matcher, str)):
        raise UsageError("matcher", matcher, "a tool name, `A|B`, a pattern, or None for all")
    if matcher is None or LIST.fullmatch(matcher) or matcher == "*":
        return
    if ONLY_PYTHON.search(matcher):
        raise UsageError("matcher", matcher, "a pattern that JavaScript reads as Python does")
    try:
        re.compile(matcher)
    except re.error as error:
        raise UsageError(
            "matcher", matcher, "a tool name, `A|B`, a pattern, or None for all", hint=str(error)
        ) from None


@functools.lru_cache(maxsize=512)
def _compiled(matcher: str | None) -> Callable[[str], bool]:
    if matcher is None or matcher in ("", "*"):
        return lambda _name: True
    if LIST.fullmatch(matcher):
        names = frozenset(filter(None, (part.strip(" ") for part in SEPARATOR.split(matcher))))
        return names.__contains__
    try:
        pattern = re.compile(matcher)
    except re.error:
        return lambda _name: False
    return lambda name: pattern.search(name) is not None
