from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from steersman import Options
from steersman.errors import UsageError
from steersman.hooks import (
    HookMatcher,
    Hooks,
    PreModelSwitch,
    PreToolUse,
    Registered,
    Stop,
    hooks_from,
)


def look(_event: Any) -> None:
    """Return no opinion."""


def other(_event: Any) -> None:
    """Return no opinion either."""


GUARD = Registered(PreToolUse, look, "Bash", 30, "guard")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, []),
        ({"PreToolUse": [HookMatcher(matcher="Bash", hooks=[look], timeout=30)]}, [GUARD]),
        ({PreToolUse: HookMatcher(matcher="Bash", hooks=[look], timeout=30)}, [GUARD]),
        ({"PreToolUse": [{"matcher": "Bash", "hooks": [look], "timeout": 30}]}, [GUARD]),
        (
            {"PreToolUse": [SimpleNamespace(matcher="Bash", hooks=[look], timeout=30)]},
            [GUARD],
        ),
        ({PreToolUse: look}, [Registered(PreToolUse, look, kind="guard")]),
        (
            {"Stop": [look, other], PreToolUse: [look]},
            [
                Registered(Stop, look),
                Registered(Stop, other),
                Registered(PreToolUse, look, kind="guard"),
            ],
        ),
        (
            {"PreToolUse": HookMatcher(hooks=[look], on_failure="continue")},
            [Registered(PreToolUse, look)],
        ),
        (
            {"PreModelSwitch": {"hooks": [look], "onFailure": "block"}},
            [Registered(PreModelSwitch, look, kind="guard")],
        ),
        ({"Stop": HookMatcher(hooks=[look], on_failure="block")}, [Registered(Stop, look)]),
    ],
)
def test_a_mapping_means_these_hooks(given: Any, meant: list[Registered]) -> None:
    assert list(hooks_from("hooks", given)) == meant


def test_hooks_stay_the_same_object() -> None:
    hooks = Hooks()

    assert hooks_from("hooks", hooks) is hooks


def test_the_option_takes_every_form() -> None:
    options = Options(hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[look])]})

    assert [each.matcher for each in options.hooks] == ["Bash"]


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        (None, "hooks"),
        ([look], "hooks"),
        ({"PreToolUs": look}, "hooks"),
        ({int: look}, "event"),
        ({"PreToolUse": 5}, "hooks['PreToolUse']"),
        ({"PreToolUse": [{"hook": look}]}, "hooks['PreToolUse'].hook"),
        ({"PreToolUse": [{"hooks": look}]}, "hooks['PreToolUse'].hooks"),
        ({"PreToolUse": [{"hooks": ["look"]}]}, "hooks['PreToolUse']"),
        ({"PreToolUse": [HookMatcher(hooks=[look], timeout=-1)]}, "timeout"),
        (
            {"PreToolUse": [{"hooks": [look], "on_failure": "stop"}]},
            "hooks['PreToolUse'].on_failure",
        ),
        ({"Setup": look}, "event"),
    ],
)
def test_what_means_no_hooks_is_refused_by_name(given: Any, argument: str) -> None:
    with pytest.raises(UsageError) as refused:
        hooks_from("hooks", given)

    assert refused.value.argument == argument
