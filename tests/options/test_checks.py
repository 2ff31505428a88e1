from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from steersman.errors import UsageError
from steersman.options import checks
from tests.samples.strategies import ANY_JSON


@given(value=ANY_JSON)
def test_plain_json_is_copied_as_it_is(value: Any) -> None:
    assert checks.plain("value", value) == value


def test_what_stands_for_json_becomes_it() -> None:
    given_value = MappingProxyType({"a": (1, MappingProxyType({"b": None}))})

    assert checks.plain("value", given_value) == {"a": [1, {"b": None}]}


def test_a_copy_shares_nothing_with_the_callers_value() -> None:
    given_value: dict[str, Any] = {"a": [1]}

    checks.plain("value", given_value)["a"].append(2)

    assert given_value == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (Path("/x"), "value"),
        ({"a": [1, Path("/x")]}, "value['a'][1]"),
        ({"a": {"b": {1, 2}}}, "value['a']['b']"),
        ({"a": b"x"}, "value['a']"),
        ({5: "x"}, "a key of value"),
    ],
    ids=str,
)
def test_what_is_no_json_is_refused_by_its_place(value: Any, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        checks.plain("value", value)

    assert caught.value.argument == place


def test_a_list_may_come_in_any_form_but_a_text() -> None:
    assert checks.as_tuple("x", (n for n in (1, 2))) == (1, 2)
    assert checks.as_tuple("x", [1]) == (1,)
    for wrong in ("text", b"bytes", {"a": 1}, 5, None):
        with pytest.raises(UsageError, match=r"x: got .*, allowed: a list or tuple"):
            checks.as_tuple("x", wrong)


@pytest.mark.parametrize(
    "rule",
    ["Read", "Bash(git log:*)", "mcp__calc__*", "Bash(echo (a), b)", "Read(//etc/**)", "Bash()"],
)
def test_a_rule_is_a_name_or_a_name_and_its_content(rule: str) -> None:
    checks.rule("rules[0]", rule)
