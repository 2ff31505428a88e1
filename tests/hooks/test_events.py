from __future__ import annotations

import pytest

from steersman._values import read_leniently
from steersman.hooks import HookEvent, PostToolUse, PreToolUse, Stop, UserPromptSubmit
from tests.samples import Frame, frames


def recorded_inputs(name: str) -> list[Frame]:
    return [
        frame["request"]["input"]
        for frame in frames("hooks_all_events")
        if frame["type"] == "control_request"
        and frame["request"].get("input", {}).get("hook_event_name") == name
    ]


@pytest.mark.parametrize("event", [PreToolUse, PostToolUse, Stop, UserPromptSubmit])
def test_an_event_reads_its_recorded_inputs(event: type[HookEvent]) -> None:
    found = recorded_inputs(event.__name__)

    events = [read_leniently(event, each).came_from(each) for each in found]

    assert events
    assert [each.raw for each in events] == found
    names = [name for name in event.__struct_fields__ if name in found[0]]
    assert {name: getattr(events[0], name) for name in names} == {
        name: found[0][name] for name in names
    }


def test_inside_a_subagent_an_event_says_in_which() -> None:
    inside = [each for each in recorded_inputs("PreToolUse") if "agent_id" in each]

    events = [read_leniently(PreToolUse, each) for each in inside]

    assert [(each.agent_id, each.agent_type) for each in events] == [
        (each["agent_id"], each["agent_type"]) for each in inside
    ]
    assert inside
