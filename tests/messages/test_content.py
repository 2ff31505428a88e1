from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import steersman
from steersman._struct import WireStruct
from steersman.messages import (
    Assistant,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    User,
    parse_message,
)
from steersman.messages.builtin import BashInput
from steersman.messages.content import KnownBlock
from tests.samples import Frame, alone, frames, traces
from tests.samples.strategies import ANY_JSON

KNOWN: dict[str, type[WireStruct]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(KnownBlock)
}


def assistant(*blocks: Any) -> Assistant:
    frame = {"type": "assistant", "message": {"id": "m", "content": list(blocks)}}
    message = parse_message(json.dumps(frame).encode())
    assert isinstance(message, Assistant)
    return message


def user(block: Any) -> WireStruct:
    """The one block of a message to the model."""
    message = parse_message({"type": "user", "message": {"content": [block]}})
    assert isinstance(message, User)
    assert isinstance(message.content, list)
    (read,) = message.content
    return read


@pytest.mark.parametrize(
    ("found", "block"),
    [
        ({"type": "text", "text": "hi"}, TextBlock(text="hi")),
        (
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            ThinkingBlock(thinking="hm", signature="s"),
        ),
        ({"type": "redacted_thinking", "data": "x"}, RedactedThinkingBlock(data="x")),
        (
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
            ToolUseBlock(id="t", name="Bash", input={"command": "ls"}),
        ),
        (
            {"type": "tool_result", "tool_use_id": "t", "content": "ok", "is_error": True},
            ToolResultBlock(tool_use_id="t", content="ok", is_error=True),
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": "AA=="}},
            ImageBlock(source={"type": "base64", "data": "AA=="}),
        ),
        ({"type": "brand_new", "id": "t"}, UnknownBlock(type="brand_new")),
        ({"type": 5}, UnknownBlock()),
        ({}, UnknownBlock()),
    ],
)
def test_a_block_is_read_by_its_type_and_kept_whole(
    found: dict[str, Any], block: WireStruct
) -> None:
    noted = {**found, "cache_control": {"type": "ephemeral"}}

    read = assistant(noted).content[0]

    assert read == block
    assert read.raw == noted


@given(strange=ANY_JSON)
def test_a_strange_block_keeps_its_neighbours(strange: Any) -> None:
    before = {"type": "text", "text": "before"}
    after = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}

    blocks = assistant(before, strange, after).content

    assert [blocks[0], blocks[2]] == [
        TextBlock(text="before"),
        ToolUseBlock(id="t", name="Bash", input={"command": "ls"}),
    ]
    assert [block.raw for block in blocks] == [
        before,
        json.loads(json.dumps(strange)) if isinstance(strange, dict) else {},
        after,
    ]


@given(kind=st.sampled_from(sorted(KNOWN)), field=ANY_JSON)
def test_a_known_block_with_a_strange_field_is_still_kept_whole(kind: str, field: Any) -> None:
    found = {"type": kind, "text": field, "input": field, "content": field, "data": field}

    block = user(found)

    assert block.raw == json.loads(json.dumps(found))


BLOCKS = alone("recorded", "blocks")


def test_every_kind_of_block_was_recorded() -> None:
    found = [frame for trace in traces() for frame in frames(trace)] + BLOCKS

    kinds = {
        block["type"]
        for frame in found
        if frame["type"] in ("assistant", "user")
        for block in frame["message"]["content"]
        if isinstance(block, dict)
    }

    assert kinds == set(KNOWN)


@pytest.mark.parametrize("recording", [*map(frames, traces()), BLOCKS], ids=[*traces(), "blocks"])
def test_every_recorded_block_is_known_and_keeps_what_it_came_from(recording: list[Frame]) -> None:
    for frame in recording:
        if frame["type"] not in ("assistant", "user"):
            continue
        message = parse_message(frame)
        assert isinstance(message, Assistant | User)

        blocks = message.content

        if isinstance(blocks, str):
            assert blocks == frame["message"]["content"]
            continue
        found = frame["message"]["content"]
        assert [type(block) for block in blocks] == [KNOWN[block["type"]] for block in found]
        assert [block.raw for block in blocks] == found


def test_a_tool_result_may_hold_blocks_of_its_own() -> None:
    inner: list[dict[str, Any]] = [{"type": "text"}, {"type": "image", "source": {}}]

    block = user({"type": "tool_result", "tool_use_id": "t", "content": inner})

    assert block == ToolResultBlock(tool_use_id="t", content=inner)


def test_a_message_without_a_list_of_blocks_has_none() -> None:
    message = parse_message({"type": "assistant", "message": {"content": {"type": "text"}}})

    assert isinstance(message, Assistant)
    assert message.content == []
    assert message.message.raw == {"content": {"type": "text"}}


def test_prose_knows_what_it_cites() -> None:
    cited = [
        block.citations
        for message in map(parse_message, BLOCKS)
        if isinstance(message, Assistant)
        for block in message.content
        if isinstance(block, TextBlock)
    ]

    assert [each and each[0]["cited_text"] for each in cited] == ["hi"]


# --- Tools by their class ----------------------------------------------------------------


def test_the_input_of_a_built_in_tool_has_a_class() -> None:
    found = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls", "new": 1}}
    (block,) = assistant(found).tool_uses

    match block.typed():
        case BashInput(command=command) as given:
            assert (command, given.raw) == ("ls", {"command": "ls", "new": 1})
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("name", ["mcp__functions__add", "BrandNew", ""])
def test_the_input_of_any_other_tool_stays_as_it_is(name: str) -> None:
    block = ToolUseBlock(name=name, input={"a": 1})

    assert block.typed() is block.input


def test_nothing_of_the_tools_is_loaded_before_somebody_asks() -> None:
    program = (
        "import sys, steersman.messages as m; lazy = ('builtin', 'streaming')\n"
        "loaded = lambda: [w for w in lazy if f'steersman.messages.{w}' in sys.modules]\n"
        "before = loaded(); m.ToolUseBlock(name='Bash').typed(); m.StreamEvent().typed()\n"
        "print(before, loaded())"
    )

    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(Path(steersman.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert run.stdout == "[] ['builtin', 'streaming']\n"
