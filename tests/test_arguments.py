"""A callback that cannot be called is refused by name; one that can be, never."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from steersman._arguments import check_callback, did_you_mean, name_of, shown
from steersman.errors import UsageError
from steersman.hooks import Hooks, PreToolUse


def one(_event: object) -> None: ...


def two(_first: object, _second: object) -> None: ...


def three(_input: object, _tool_use_id: object, _context: object) -> None: ...


def strict(_event: object, *, is_strict: bool) -> None: ...


def anything(*_: object) -> None: ...


def at_least_one(_event: object, _more: int = 1, **_rest: object) -> None: ...


def perhaps(_event: object = None) -> None: ...


def by_name(*, event: object) -> None: ...


def none() -> None: ...


def many(a: object, b: object, c: int = 1, *d: object, **e: object) -> None: ...


class Box:
    """A class with all kinds of callables."""

    def one(self, _event: object) -> None: ...

    def none(self) -> None: ...

    @staticmethod
    def still(_event: object) -> None: ...

    @classmethod
    def of(cls, _event: object) -> None: ...

    def __call__(self, _event: object) -> None: ...


class Bare:
    """A callable without parameters."""

    def __call__(self) -> None: ...


FIT: list[Callable[..., Any]] = [
    one,
    anything,
    at_least_one,
    perhaps,
    Box().one,
    Box.still,
    Box.of,
    Box(),
    functools.partial(two, 1),
    functools.partial(strict, is_strict=True),
    print,
    len,
    dict,
    min,
    list[object]().append,
]

DO_NOT: list[tuple[Callable[..., Any], str]] = [
    (two, "two(_first, _second)"),
    (strict, "strict(_event, *, is_strict)"),
    (none, "none()"),
    (by_name, "by_name(*, event)"),
    (many, "many(a, b, c=..., *d, **e)"),
    (lambda: None, "<lambda>()"),
    (Box().none, "Box.none()"),
    (Box.one, "Box.one(self, _event)"),
    (Bare(), "Bare()"),
    (functools.partial(one, 1), "one()"),
]


@pytest.mark.parametrize("function", FIT, ids=name_of)
def test_what_can_be_called_is_accepted(function: Callable[..., Any]) -> None:
    check_callback("listener", function, "the event")

    Hooks().on(PreToolUse)(function)


@pytest.mark.parametrize(("function", "name"), DO_NOT, ids=[name for _, name in DO_NOT])
def test_what_cannot_be_called_is_refused_with_its_name_and_parameters(
    function: Callable[..., Any], name: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_callback("listener", function, "the event")

    assert str(caught.value) == f"listener: got {name}, allowed: a function of the event"


class Unread:
    """A callable whose signature cannot be read, as those with unknown annotations in 3.14."""

    @property
    def __signature__(self) -> object:
        raise NameError("Missing")

    def __call__(self, _event: object) -> None: ...


def test_a_callback_whose_signature_cannot_be_read_is_accepted() -> None:
    check_callback("listener", Unread(), "the event")
    hooks = Hooks()
    hooks.on(PreToolUse)(Unread())

    assert [(each.name, each.is_official) for each in hooks] == [("Unread", False)]
    assert shown(Unread()) == "Unread"


def test_a_hook_takes_the_event_or_the_three_arguments_of_the_official_sdks() -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(three)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        hooks.on(PreToolUse)(two)  # type: ignore[arg-type]

    assert [each.is_official for each in hooks] == [True]
    assert str(caught.value) == (
        "callback: got two(_first, _second), allowed: a function of the event, or of"
        " (input, tool_use_id, context)"
    )


def test_several_arguments_are_listed() -> None:
    with pytest.raises(UsageError, match=r"allowed: a function of \(tool_name, tool_input\)"):
        check_callback("check", one, "tool_name", "tool_input")


def test_a_function_in_a_function_has_its_short_name() -> None:
    def inner() -> None: ...

    assert (name_of(inner), shown(inner)) == ("inner", "inner()")


def test_a_similar_name_is_a_hint_and_another_is_none() -> None:
    assert did_you_mean("modle", ["model", "mode", "tools"]) == "did you mean mode or model?"
    assert did_you_mean("x", ["model"]) == ""
