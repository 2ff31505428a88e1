"""Matchers of hooks.

A matcher of letters, digits, `_`, `-`, spaces, `|` and `,` is a list of whole names, and the CLI
reads it as we do. Any other matcher is a regular expression of Python that may match anywhere in
the name. The CLI would read it as JavaScript does, so the CLI does not get it: it calls the hook
for every name, and the session compares.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from steersman._json import JsonDict
from steersman._tool_names import BASH, RENAMED, near_miss
from steersman.errors import UsageError

__all__ = ["check_matcher", "matches"]

LIST = re.compile(r"[A-Za-z0-9_\-|, ]*")
SEPARATOR = re.compile(r"[|,]")
LONGEST_NAME = 1000
"""Characters of a name; an expression fits every longer one, so that no guard is skipped."""

RUN_AS = {"Monitor": BASH}
"""Tools whose command the CLI also shows to the hooks of another tool, as a call of that tool."""


def is_list(matcher: str | None) -> bool:
    """Return whether a matcher is a list of names, or matches everything."""
    return matcher is None or matcher == "*" or LIST.fullmatch(matcher) is not None


def matches(matcher: str | None, name: str) -> bool:
    """Return whether a hook with this matcher is called for `name`, such as a tool."""
    return fits_tool(matcher, name) or fits_tool(matcher, RUN_AS.get(name, name))


def shown_to(matcher: str | None, tool: str, given: JsonDict) -> tuple[str, JsonDict] | None:
    """Return tool and input that a hook is shown before a tool runs; None if it is not called.

    A hook that fits `Bash`, and does not fit `Monitor`, is shown the command of a `Monitor` as one
    of `Bash`.
    """
    if fits_tool(matcher, tool):
        return tool, given
    other = RUN_AS.get(tool, tool)
    if "command" not in given or not fits_tool(matcher, other):
        return None
    return other, {key: given[key] for key in ("command", "description") if key in given}


def fits_tool(matcher: str | None, name: str) -> bool:
    """Return whether a matcher fits the name of a tool, or its former name."""
    fits = _compiled(matcher)
    former = RENAMED.get(name)
    return fits(name) or (former is not None and fits(former))


def check_matcher(matcher: object) -> None:
    """Refuse a matcher that is not a text or not an expression.

    Raises `UsageError`.
    """
    if not (matcher is None or isinstance(matcher, str)):
        raise UsageError("matcher", matcher, "a tool name, `A|B`, a pattern, or None for all")
    if matcher is None or is_list(matcher):
        return
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            "matcher", matcher, "a tool name, `A|B`, a pattern, or None for all", hint=str(error)
        ) from None


def check_tool_names(matcher: str | None) -> None:
    """Refuse a list that misspells a tool: the hook would never be called. Raises `UsageError`."""
    for name in names_in(matcher):
        meant = near_miss(name)
        if meant is not None:
            hint = f"did you mean {meant}? For any other spelling write an expression, ^{name}$"
            raise UsageError("matcher", matcher, "names of tools", hint=hint)


def names_in(matcher: str | None) -> frozenset[str]:
    """Return the names that a matcher lists; none for an expression."""
    if matcher is None or matcher == "*" or not is_list(matcher):
        return frozenset()
    return frozenset(filter(None, (part.strip(" ") for part in SEPARATOR.split(matcher))))


@functools.lru_cache(maxsize=512)
def _compiled(matcher: str | None) -> Callable[[str], bool]:
    if matcher is None or matcher in ("", "*"):
        return lambda _name: True
    if LIST.fullmatch(matcher):
        return names_in(matcher).__contains__
    try:
        pattern = re.compile(matcher)
    except re.error:
        return lambda _name: False
    return lambda name: len(name) > LONGEST_NAME or pattern.search(name) is not None
