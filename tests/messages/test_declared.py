"""Every message, block, event and tool that the official SDKs declare has its class and fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from steersman._struct import WireStruct
from steersman.messages.builtin import INPUTS, OUTPUTS
from steersman.messages.content import KnownBlock
from steersman.messages.parsing import KnownMessage
from steersman.messages.streaming import KnownDelta, KnownEvent
from tests.samples import TRACES

FIELDS: dict[str, Any] = json.loads(
    (TRACES.parent / "declared" / "fields.json").read_text(encoding="utf-8")
)
WITHOUT_FIELDS = {
    *("EndConversation", "LSP", "SendUserFile", "ShareOnboardingGuide"),
    *("SubagentHandback", "WaitForMcpServers"),
}
"""Tools that are named and no more; the CLI could not be brought to offer them."""


def by_kind(union: Any) -> dict[str, type[WireStruct]]:
    return {kind_of(cls): cls for cls in get_args(union)}


def kind_of(cls: type[WireStruct]) -> str:
    config = cls.__struct_config__
    return f"system/{config.tag}" if config.tag_field == "subtype" else str(config.tag)


MESSAGES = by_kind(KnownMessage)


@pytest.mark.parametrize("kind", FIELDS["messages"])
def test_every_declared_message_has_a_class_with_every_declared_field(kind: str) -> None:
    cls = MESSAGES[kind]

    missing = set(FIELDS["messages"][kind]) - set(cls.__struct_encode_fields__)

    assert missing == set()


@pytest.mark.parametrize(
    ("what", "union"), [("blocks", KnownBlock), ("events", KnownEvent), ("deltas", KnownDelta)]
)
def test_every_declared_block_event_and_delta_has_a_class(what: str, union: Any) -> None:
    assert set(FIELDS[what]) - set(by_kind(union)) == set()


def test_every_declared_tool_has_a_class_for_its_input() -> None:
    assert set(INPUTS) == set(FIELDS["tools"])


@pytest.mark.parametrize("tool", FIELDS["tools"])
def test_every_declared_field_of_a_tool_is_one_of_its_class(tool: str) -> None:
    declared: Mapping[str, list[str]] = FIELDS["tools"][tool]

    assert set(declared["input"]) - set(INPUTS[tool].__struct_encode_fields__) == set()
    if declared["output"]:
        assert set(declared["output"]) - set(OUTPUTS[tool].__struct_encode_fields__) == set()


def test_no_tool_is_without_fields_but_those_that_take_none_or_are_only_named() -> None:
    bare = {tool for tool, cls in INPUTS.items() if not cls.__struct_fields__}

    assert bare - WITHOUT_FIELDS == {
        *("CronList", "EnterPlanMode", "ReadNotifications", "ShowOnboardingRolePicker", "TaskList")
    }
