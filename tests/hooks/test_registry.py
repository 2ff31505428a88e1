from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.hooks import (
    CwdChanged,
    Elicitation,
    HookEvent,
    Hooks,
    PermissionRequest,
    PostToolUse,
    PreModelSwitch,
    PreToolUse,
    Registered,
    Setup,
    Stop,
    TeammateIdle,
    UserPromptExpansion,
    UserPromptSubmit,
    WorktreeCreate,
    log,
    official,
)


def look(_event: Any) -> None:
    """Return no opinion."""


def of_three(_input: Any, _tool_use_id: Any, _context: Any) -> dict[str, Any]:
    return {}


def test_callbacks_are_kept_in_the_order_they_were_registered() -> None:
    hooks = Hooks()

    hooks.on(PreToolUse, "Bash|Write", timeout=5)(look)
    hooks.on(Stop)(look)
    hooks.on(PostToolUse, run_async=True)(look)

    assert list(hooks) == [
        Registered(PreToolUse, look, "Bash|Write", 5, "guard"),
        Registered(Stop, look, None, None, "advise"),
        Registered(PostToolUse, look, None, None, "observe", run_async=True),
    ]
    assert len(hooks) == 3


def test_a_decorated_callback_is_still_itself() -> None:
    assert Hooks().on(PreToolUse)(look) is look


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (PreToolUse, "guard"),
        (PermissionRequest, "guard"),
        (UserPromptSubmit, "guard"),
        (UserPromptExpansion, "guard"),
        (Elicitation, "guard"),
        (PreModelSwitch, "advise"),
        (PostToolUse, "advise"),
        (Stop, "advise"),
    ],
)
def test_a_hook_is_a_guard_where_there_is_an_action_to_stop(
    event: type[HookEvent], kind: str
) -> None:
    hooks = Hooks()

    hooks.on(event)(look)

    (registered,) = hooks
    assert (registered.kind, registered.is_guard) == (kind, kind == "guard")
    assert registered.event_name == event.__name__


def test_a_kind_may_be_chosen_and_a_ready_made_hook_knows_its_own() -> None:
    hooks = Hooks()

    hooks.on(PreToolUse, kind="observe")(look)
    hooks.on(PreModelSwitch, kind="guard")(look)
    hooks.on(PreToolUse)(log(look))

    assert [each.kind for each in hooks] == ["observe", "guard", "observe"]


def test_two_registries_can_be_joined_and_stay_as_they_are() -> None:
    one, other = Hooks(), Hooks()
    one.on(PreToolUse)(look)
    other.on(Stop)(look)

    joined = one | other

    assert [each.event for each in joined] == [PreToolUse, Stop]
    assert (len(one), len(other)) == (1, 1)


def test_a_registry_is_joined_with_another_one_only() -> None:
    not_hooks: Any = {}

    with pytest.raises(TypeError):
        Hooks() | not_hooks


@pytest.mark.parametrize(
    ("callback", "is_official"),
    [
        (of_three, True),
        (look, False),
        (lambda event, more=1, most=2: None, False),
        (lambda *given: None, False),
        (print, False),
    ],
)
def test_a_callback_with_three_parameters_is_called_as_in_the_official_sdk(
    callback: Any, *, is_official: bool
) -> None:
    hooks = Hooks()

    hooks.on(PreToolUse)(callback)

    assert [each.is_official for each in hooks] == [is_official]


@pytest.mark.parametrize(
    "callback",
    [
        of_three,
        lambda *given: None,
        lambda given, tool_use_id=None, context=None: None,
        lambda given, *more: None,
    ],
)
def test_a_callback_marked_official_gets_three_arguments_whatever_its_parameters(
    callback: Any,
) -> None:
    hooks = Hooks()

    hooks.on(PreToolUse, "Bash")(official(callback))

    (found,) = hooks
    assert (found.is_official, found.callback) == (True, callback)
    assert found == Registered(PreToolUse, callback, "Bash", kind="guard", is_official=True)


@pytest.mark.parametrize("callback", [look, lambda: None, lambda *, given: None, 5])
def test_a_callback_that_cannot_take_three_arguments_is_not_official(callback: Any) -> None:
    allowed = r"^callback: got .* allowed: a function of \(input, tool_use_id, context\)$"
    with pytest.raises(UsageError, match=allowed):
        official(callback)


@pytest.mark.parametrize("event", ["PreToolUse", HookEvent, int, None, PreToolUse()])
def test_what_is_no_event_is_refused(event: Any) -> None:
    with pytest.raises(UsageError, match=r"event: got .* allowed: a class of steersman.hooks"):
        Hooks().on(event)


@pytest.mark.parametrize("event", [Setup, TeammateIdle, CwdChanged])
def test_an_event_that_the_cli_never_calls_back_for_is_refused_with_the_reason(
    event: type[HookEvent],
) -> None:
    with pytest.raises(UsageError, match=f"{event.__name__}.*calls back for") as refused:
        Hooks().on(event)

    assert "use a command hook in a settings file" in str(refused.value)


@pytest.mark.parametrize("matcher", [5, ["Bash"], b"Bash"])
def test_a_matcher_is_a_text(matcher: Any) -> None:
    with pytest.raises(UsageError, match=r"matcher: got .* allowed: a tool name"):
        Hooks().on(PreToolUse, matcher)


def test_a_matcher_is_refused_where_the_cli_would_not_look_at_it() -> None:
    Hooks().on(Stop, "*")

    with pytest.raises(UsageError, match="the CLI has no matchers for Stop"):
        Hooks().on(Stop, "Bash")


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("nan")])
def test_a_timeout_is_a_time(timeout: Any) -> None:
    with pytest.raises(UsageError, match=r"timeout: got .* allowed: seconds above 0"):
        Hooks().on(PreToolUse, timeout=timeout)


@pytest.mark.parametrize(
    ("event", "given", "argument"),
    [
        (PreToolUse, {"kind": "watch"}, "kind"),
        (Stop, {"kind": "guard"}, "kind"),
        (PostToolUse, {"kind": "guard"}, "kind"),
        (PreToolUse, {"run_async": 1}, "run_async"),
        (PreToolUse, {"run_async": True, "kind": "guard"}, "run_async"),
        (WorktreeCreate, {"kind": "observe"}, "kind"),
        (WorktreeCreate, {"run_async": True}, "kind"),
    ],
)
def test_a_kind_that_could_not_hold_is_refused(
    event: type[HookEvent], given: dict[str, Any], argument: str
) -> None:
    with pytest.raises(UsageError) as refused:
        Hooks().on(event, **given)

    assert refused.value.argument == argument


def test_a_callback_must_be_callable() -> None:
    not_a_function: Any = "look"

    with pytest.raises(UsageError, match="callback: got 'look', allowed: a function"):
        Hooks().on(PreToolUse)(not_a_function)
