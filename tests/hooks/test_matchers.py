from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.hooks import check_matcher, matches
from steersman.hooks.matchers import is_list

NAMES = ("Write", "Bash", "Monitor", "Agent", "mcp__lab__work", "mcp__lab__do-it")

TABLE: dict[str | None, tuple[str, ...]] = {
    None: NAMES,
    "": NAMES,
    "*": NAMES,
    ".*": NAMES,
    "Write": ("Write",),
    "Wri": (),
    "write": (),
    "Write|Bash": ("Write", "Bash", "Monitor"),
    "Bash": ("Bash", "Monitor"),
    "Monitor": ("Monitor",),
    "^Bash$": ("Bash", "Monitor"),
    "Bash.*": ("Bash", "Monitor"),
    "(Bash|Write)": ("Write", "Bash", "Monitor"),
    "Mon.*": ("Monitor",),
    "Write, Bash": ("Write", "Bash", "Monitor"),
    "Write,Bash": ("Write", "Bash", "Monitor"),
    "Write | Bash": ("Write", "Bash", "Monitor"),
    " Write ": ("Write",),
    "Write|": ("Write",),
    "|Write": ("Write",),
    "Write||Bash": ("Write", "Bash", "Monitor"),
    ", Write": ("Write",),
    "Write Bash": (),
    "Edit|Wri": (),
    "Task": ("Agent",),
    "^Task$": ("Agent",),
    "Task|Bash": ("Bash", "Monitor", "Agent"),
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
    "^(?!Bash)": ("Write", "Monitor", "Agent", "mcp__lab__work", "mcp__lab__do-it"),
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


ONLY_PYTHON = {
    "(?i)write": ("Write",),
    "(?P<a>W)rite": ("Write",),
    r"\AWrite": ("Write",),
    "Write(?#x)": ("Write",),
    r"^\w{,4}$": ("Bash", "Monitor", "Agent"),
    "Ba(?:s)*+h": ("Bash", "Monitor"),
    "B(?>as)h": ("Bash", "Monitor"),
}
"""Expressions that JavaScript refuses or reads otherwise, and the tools they fit."""


@pytest.mark.parametrize("matcher", ONLY_PYTHON, ids=repr)
def test_a_pattern_means_what_it_means_in_python(matcher: str) -> None:
    check_matcher(matcher)

    assert tuple(name for name in NAMES if matches(matcher, name)) == ONLY_PYTHON[matcher]


@pytest.mark.parametrize("matcher", [None, "", "*", "Bash", "Write|Bash", "Write, Bash", "do-it"])
def test_a_list_of_names_is_left_to_the_cli(matcher: str | None) -> None:
    assert is_list(matcher)


@pytest.mark.parametrize("matcher", [*ONLY_PYTHON, ".*", "^Write$", "mcp__.*", "Write;Bash"])
def test_an_expression_is_not_left_to_the_cli(matcher: str) -> None:
    assert not is_list(matcher)


def test_an_expression_fits_a_name_that_is_too_long_to_compare() -> None:
    assert matches("^(a|b|ab)*c$", "ab" * 100_000)
    assert not matches("Bash", "x" * 100_000)


@pytest.mark.parametrize("matcher", [5, ["Bash"], b"Bash"])
def test_a_matcher_is_a_text(matcher: Any) -> None:
    with pytest.raises(UsageError, match=r"matcher: got .* allowed: a tool name"):
        check_matcher(matcher)
