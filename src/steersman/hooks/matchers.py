"""Matchers of hooks, read exactly as the CLI reads them.

A matcher of letters, digits, `_`, `-`, spaces, `|` and `,` is a list of whole names. Any other
matcher is a regular expression that may match anywhere in the name. The CLI's expressions are
JavaScript's; those that Python reads differently are refused.
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
"""Flags, comments, conditions and anchors that JavaScript does not have or writes differently."""

FORMER_NAMES = {"Agent": "Task"}
"""Tools that were renamed, with the old name that matchers may still use."""


def matches(matcher: str | None, name: str) -> bool:
    """Return whether the CLI calls a hook with this matcher for `name`, such as a tool."""
    fits = _compiled(matcher)
    former = FORMER_NAMES.get(name)
    return fits(name) or (former is not None and fits(former))


def check_matcher(matcher: object) -> None:
    """Refuse a matcher that can never match. The CLI accepts it without an error.

    Raises `UsageError`.
    """
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
