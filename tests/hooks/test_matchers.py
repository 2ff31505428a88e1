from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.hooks import check_matcher, matches

NAMES = ("Write", "Bash", "Agent", "mcp__lab__work", "mcp__lab__do-it")

TABLE: dict[str | None, tuple[str, ...]] = {
    None: NAMES,
    "": NAMES,
    "*": NAMES,
    ".*": NAMES,
    "Write": ("Write",),
    "Wri": (),
    "write": (),
    "Write|Bash": ("Write", "Bash"),
    "Write, Bash": ("Write", "Bash"),
    "Write,Bash": ("Write", "Bash"),
    "Write | Bash": ("Write", "Bash"),
    " Write ": ("Write",),
    "Write|": ("Write",),
    "|Write": ("Write",),
    "Write||Bash": ("Write", "Bash"),
    ", Write": ("Write",),
    "Write Bash": (),
    "Edit|Wri": (),
    "Task": ("Agent",),
    "^Task$": ("Agent",),
    "Task|Bash": ("Bash", "Agent"),
    "^Write$": ("Write",),
    "Wri.*": ("Write",),
    "^Wri": ("Write",),
    "rite$": ("Write",),
    "ri.e": ("Write",),
    "Write|Wri.*": ("Write",),
    "Write:*": ("Write",),
    "Write()": ("Write",),
    "Write(x)": (),
    "Write.": (),
    "Write;Bash": (),
    "^(?!Bash)": ("Write", "Agent", "mcp__lab__work", "mcp__lab__do-it"),
    "mcp__lab": (),
    "mcp__lab__work": ("mcp__lab__work",),
    "mcp__lab__do-it": ("mcp__lab__do-it",),
    "mcp__lab__do-": (),
    "mcp__*": ("mcp__lab__work", "mcp__lab__do-it"),
    "mcp__.*": ("mcp__lab__work", "mcp__lab__do-it"),
    "zz:|lab__wor": ("mcp__lab__work",),
    "zz-|lab__wor": (),
    "\nWrite": (),
}
"""Matchers and the tools they fit; `tests/live/test_hook_matchers.py` holds the CLI to it."""


@pytest.mark.parametrize("matcher", TABLE, ids=repr)
def test_a_matcher_fits_these_tools_and_no_others(matcher: str | None) -> None:
    check_matcher(matcher)

    assert tuple(name for name in NAMES if matches(matcher, name)) == TABLE[matcher]


@pytest.mark.parametrize("matcher", ["(Write", "[", "*rite", "Write(*", "\\"])
def test_a_broken_pattern_is_refused_and_fits_nothing(matcher: str) -> None:
    with pytest.raises(UsageError, match="matcher"):
        check_matcher(matcher)

    assert not any(matches(matcher, name) for name in NAMES)


@pytest.mark.parametrize("matcher", ["(?i)write", "(?P<a>W)rite", r"\AWrite", "Write(?#x)"])
def test_a_pattern_that_javascript_reads_otherwise_is_refused(matcher: str) -> None:
    with pytest.raises(UsageError, match="JavaScript"):
        check_matcher(matcher)


@pytest.mark.parametrize("matcher", [5, ["Bash"], b"Bash"])
def test_a_matcher_is_a_text(matcher: Any) -> None:
    with pytest.raises(UsageError, match=r"matcher: got .* allowed: a tool name"):
        check_matcher(matcher)
