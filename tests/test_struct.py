from __future__ import annotations

import json
from typing import Any, ClassVar

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


class Holder(WireStruct, frozen=True, kw_only=True, rename="camel"):
    maybe: Inner | None = None
    some_items: list[Inner] = []
    rare_items: list[Inner] | None = None
    by_name: dict[str, Inner] = {}


def test_values_inside_a_value_are_read_by_the_type_of_their_field() -> None:
    found = {
        "maybe": {"name": 1, "number": 2},
        "someItems": [{"name": "a"}, "strange", {"number": "x"}],
        "rareItems": [{"number": 3, "name": None}],
        "byName": {"one": {"name": "b", "number": []}, "two": 5},
    }

    value = read(Holder, line_of(found))

    assert value == Holder(
        maybe=Inner(number=2),
        some_items=[Inner(name="a"), Inner(), Inner()],
        rare_items=[Inner(number=3)],
        by_name={"one": Inner(name="b"), "two": Inner()},
    )
    assert [each.raw for each in value.some_items] == [{"name": "a"}, {}, {"number": "x"}]
    assert value.by_name["one"].raw == {"name": "b", "number": []}


class Dropping(WireStruct, frozen=True, kw_only=True):
    _DROPS_STRANGE_ITEMS: ClassVar[bool] = True

    items: list[Inner] = []


def test_a_class_may_drop_items_that_are_no_objects() -> None:
    found = {"items": [5, {"name": "a"}, None, {"name": 1, "new": 2}]}

    value = read(Dropping, line_of(found))

    assert value == Dropping(items=[Inner(name="a"), Inner()])
    assert [each.raw for each in value.items] == [{"name": "a"}, {"name": 1, "new": 2}]


@pytest.mark.parametrize("strange", [None, 5, "text", [], {}])
def test_a_field_that_holds_no_values_takes_its_default(strange: Any) -> None:
    value = read(Holder, line_of({"maybe": strange or 1, "someItems": 1, "byName": [1]}))

    assert value == Holder()
