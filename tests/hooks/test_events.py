from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman import hooks
from steersman._struct import read_leniently, set_source
from steersman.hooks import FileChanged, HookEvent, PreToolUse, Stop
from tests.samples import Frame, alone, frames, traces

EVENTS: dict[str, type[HookEvent]] = {
    each.event_name(): each
    for each in vars(hooks).values()
    if isinstance(each, type) and issubclass(each, HookEvent) and each is not HookEvent
}
NEVER_SEEN = {"Setup", "TeammateIdle", "CwdChanged"}
TRACED = ("hooks_all_events", "hooks_rare_events", "ext_mcp_elicitation", "hook_permission_request")


def recorded_inputs(name: str) -> list[Frame]:
    asked = [*(frame for trace in TRACED for frame in frames(trace)), *alone("recorded", "hooks")]
    return [
        frame["request"]["input"]
        for frame in asked
        if frame["type"] == "control_request"
        and frame["request"].get("input", {}).get("hook_event_name") == name
    ]


def test_there_is_a_class_for_each_event_under_its_own_name() -> None:
    assert len(EVENTS) == 33
    assert all(each.__name__ == name for name, each in EVENTS.items())
    assert set(TRACED) <= set(traces())


@pytest.mark.parametrize("name", sorted(EVENTS.keys() - NEVER_SEEN))
def test_an_event_reads_its_recorded_inputs(name: str) -> None:
    event, found = EVENTS[name], recorded_inputs(name)

    events = [set_source(msgspec.convert(each, event), each) for each in found]

    assert events
    assert [each.raw for each in events] == found
    names = [field for field in event.__struct_fields__ if field in found[0]]
    assert {field: getattr(events[0], field) for field in names} == {
        field: found[0][field] for field in names
    }
    unread = [each.keys() - {*event.__struct_fields__, "hook_event_name"} for each in found]
    assert set().union(*unread) == set()


@pytest.mark.parametrize("name", sorted(NEVER_SEEN))
def test_what_was_never_seen_has_no_sample(name: str) -> None:
    assert recorded_inputs(name) == []


def test_inside_a_subagent_an_event_has_the_id_of_the_subagent() -> None:
    inside = [each for each in recorded_inputs("PreToolUse") if "agent_id" in each]

    events = [read_leniently(PreToolUse, each) for each in inside]

    assert [(each.agent_id, each.agent_type) for each in events] == [
        (each["agent_id"], each["agent_type"]) for each in inside
    ]
    assert inside


@pytest.mark.parametrize(
    ("event", "matched"),
    [
        (PreToolUse(tool_name="Bash"), "Bash"),
        (FileChanged(file_path="/a/b/c.txt"), "c.txt"),
        (hooks.SessionStart(source="clear"), "clear"),
        (hooks.PreModelSwitch(from_model="a", to_model="b"), "b"),
        (Stop(), ""),
    ],
)
def test_an_event_has_the_value_that_matchers_look_at(event: HookEvent, matched: str) -> None:
    assert event.matched == matched


def test_the_output_of_an_event_has_its_name() -> None:
    tags: dict[str, Any] = {
        name: event.OUTPUT.__struct_config__.tag
        for name, event in EVENTS.items()
        if event.OUTPUT is not None
    }

    assert len(tags) == 22
    assert all(name == tag for name, tag in tags.items())


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_a_field_that_the_cli_leaves_out_is_empty(name: str) -> None:
    event = msgspec.convert({"hook_event_name": name}, EVENTS[name])

    assert not any(msgspec.structs.asdict(event).values())


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_what_a_matcher_looks_at_is_a_field_of_the_event(name: str) -> None:
    event = EVENTS[name]

    # A file is compared by its name, without its directory.
    assert event.MATCHED in ("", "file_name", *event.__struct_fields__)
