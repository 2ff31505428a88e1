from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._struct import WireStruct, read, read_leniently
from tests.samples.strategies import ANY_JSON, ANY_TEXT


class Inner(WireStruct, frozen=True, kw_only=True):
    name: str = ""
    number: int = 0


class Outer(WireStruct, frozen=True, kw_only=True, tag="outer", rename="camel"):
    inner: Inner = Inner()
    some_names: list[str] = []
    number: int = 0
    anything: Any = None


def line_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_value_that_fits_is_read_with_the_object_it_came_from() -> None:
    found = {"type": "outer", "inner": {"name": "x", "more": 1}, "someNames": ["a"], "other": None}

    value = read(Outer, line_of(found))

    assert value == Outer(inner=Inner(name="x"), some_names=["a"])
    assert value.raw == found
    assert value.inner.raw == {"name": "x", "more": 1}


def test_a_field_that_does_not_fit_takes_its_default_and_its_neighbours_stay() -> None:
    found = {
        "type": "outer",
        "number": "seven",
        "someNames": ["a"],
        "inner": {"name": 5, "number": 2},
    }

    value = read(Outer, line_of(found))

    assert value == Outer(some_names=["a"], inner=Inner(number=2))
    assert value.raw == found
    assert value.inner.raw == {"name": 5, "number": 2}


def test_an_inner_object_that_is_none_has_defaults_and_an_empty_raw() -> None:
    value = read(Outer, line_of({"type": "outer", "inner": "text"}))

    assert value.inner == Inner()
    assert value.inner.raw == {}


@given(
    found=st.dictionaries(
        st.sampled_from(["type", "inner", "someNames", "number", "anything"]) | ANY_TEXT, ANY_JSON
    )
)
def test_any_object_can_be_read_and_is_kept_whole(found: dict[str, Any]) -> None:
    line = line_of(found)

    value = read(Outer, line)

    assert isinstance(value, Outer)
    assert repr(value.raw) == repr(json.loads(line))


@pytest.mark.parametrize("line", [b"[]", b"7", b'"x"', b"null", b"no json", b""])
def test_what_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - that it is one is all that is promised
        read(Outer, line)


def test_a_value_of_ours_shows_itself_as_it_would_be_sent() -> None:
    assert Outer(number=2).raw == {
        "type": "outer",
        "inner": {"name": "", "number": 0},
        "someNames": [],
        "number": 2,
        "anything": None,
    }


def test_two_values_are_equal_by_what_they_say_not_by_what_they_leave_unread() -> None:
    one = read(Inner, b'{"name":"x","more":1}')
    other = read_leniently(Inner, {"name": "x"})

    assert one == other
