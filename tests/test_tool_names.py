from __future__ import annotations

import pytest

from steersman._tool_names import BUILT_IN, near_miss
from steersman.errors import UsageError
from steersman.hooks import Hooks, PreToolUse, UserPromptExpansion, deny_tools
from steersman.messages.builtin.table import ALIASES, INPUTS, OUTPUTS
from steersman.options import Options
from steersman.permissions.policy import Policy, deny


def test_every_tool_with_a_class_of_its_own_is_known() -> None:
    assert {*INPUTS, *OUTPUTS, *ALIASES} <= BUILT_IN


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("bash", "Bash"), ("BASH", "Bash"), ("Bassh", "Bash"), ("Bahs", "Bash")),
        *(("Basj", "Bash"), ("ReaD", "Read"), ("Webfetch", "WebFetch"), ("WebFech", "WebFetch")),
        *(("ls", "LS"), ("Wirte", "Write"), ("MultEdit", "MultiEdit"), ("Monitr", "Monitor")),
    ],
)
def test_a_misspelt_tool_is_recognized(name: str, meant: str) -> None:
    assert near_miss(name) == meant


@pytest.mark.parametrize(
    "name", [*sorted(BUILT_IN), "mcp__bash", "mcp__box__bash", "Deploy", "lsx", "Shell", "", "T"]
)
def test_tools_and_other_names_are_no_near_misses(name: str) -> None:
    assert near_miss(name) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: deny("bash"),
        lambda: deny("bash(rm *)"),
        lambda: Policy(forbid=["bash"]),
        lambda: Policy(auto_approve=["raed"]),
        lambda: Policy(available=["bash"]),
        lambda: Options(disallowed_tools=("bash",)),
        lambda: Options(disallowed_tools=("bash(rm *)",)),
        lambda: Options(allowed_tools=("Bassh",)),
        lambda: Options(tools=("Bassh",)),
        lambda: Hooks().on(PreToolUse, "bash"),
        lambda: Hooks().on(PreToolUse, "Write|Raed"),
        lambda: deny_tools("bash"),
        lambda: Options(agent="revewer", agents={"reviewer": {"description": "d", "prompt": "p"}}),
    ],
)
def test_a_misspelt_name_is_refused_with_the_right_one(make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=r"did you mean (Bash|Read|reviewer)"):
        make()


def test_matchers_of_other_events_name_no_tools() -> None:
    hooks = Hooks()

    hooks.on(UserPromptExpansion, "bash")(lambda _event: None)

    assert [each.matcher for each in hooks] == ["bash"]
