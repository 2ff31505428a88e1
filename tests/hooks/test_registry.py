from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.hooks import (
    HookEvent,
    Hooks,
    PostToolUse,
    PreToolUse,
    Registered,
    Stop,
    UserPromptSubmit,
)


def look(_event: Any) -> None:
    """Observe and say nothing."""


def test_callbacks_are_kept_in_the_order_they_were_registered() -> None:
    hooks = Hooks()

    hooks.on(PreToolUse, "Bash|Write", timeout=5)(look)
    hooks.on(Stop)(look)

    assert list(hooks) == [
        Registered(PreToolUse, look, "Bash|Write", 5),
        Registered(Stop, look),
    ]
    assert len(hooks) == 2


def test_a_decorated_callback_is_still_itself() -> None:
    assert Hooks().on(PreToolUse)(look) is look


@pytest.mark.parametrize(
    ("event", "name", "is_guard"),
    [
        (PreToolUse, "PreToolUse", True),
        (UserPromptSubmit, "UserPromptSubmit", True),
        (PostToolUse, "PostToolUse", False),
        (Stop, "Stop", False),
    ],
)
def test_an_event_has_the_name_the_cli_gives_it_and_guards_fail_closed(
    event: type[HookEvent], name: str, *, is_guard: bool
) -> None:
    registered = Registered(event, look)

    assert (registered.event_name, registered.is_guard) == (name, is_guard)


@pytest.mark.parametrize("event", ["PreToolUse", HookEvent, int, None, PreToolUse()])
def test_what_is_no_event_is_refused(event: Any) -> None:
    with pytest.raises(UsageError, match=r"event: got .* allowed: a class of steersman.hooks"):
        Hooks().on(event)


@pytest.mark.parametrize("matcher", [5, ["Bash"], b"Bash"])
def test_a_matcher_is_a_text(matcher: Any) -> None:
    with pytest.raises(UsageError, match=r"matcher: got .* allowed: a tool name"):
        Hooks().on(PreToolUse, matcher)


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("nan")])
def test_a_timeout_is_a_time(timeout: Any) -> None:
    with pytest.raises(UsageError, match=r"timeout: got .* allowed: seconds above 0"):
        Hooks().on(PreToolUse, timeout=timeout)


def test_a_callback_must_be_callable() -> None:
    not_a_function: Any = "look"

    with pytest.raises(UsageError, match="callback: got 'look', allowed: a function of the event"):
        Hooks().on(PreToolUse)(not_a_function)
