from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.journal import Entry, Kind
from steersman.journal.blocks import BlockStream, BlockUpdate
from steersman.messages import Assistant, TextBlock, ThinkingBlock, ToolUseBlock
from tests.samples import Frame, frames, traces

WITH_PARTIALS = [
    trace for trace in traces() if any(frame["type"] == "stream_event" for frame in frames(trace))
]


def entry(frame: Frame) -> Entry:
    kind = Kind.PARTIAL if frame["type"] == "stream_event" else Kind.MESSAGE
    return Entry(1, 0.0, kind, json.dumps(frame).encode())


def event(kind: str, **fields: Any) -> Frame:
    return {"type": "stream_event", "event": {"type": kind, **fields}}


def message(message_id: str) -> Frame:
    return event("message_start", message={"id": message_id})


def begun(index: int, **block: Any) -> Frame:
    return event("content_block_start", index=index, content_block=block)


def text(index: int, piece: str) -> Frame:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})


def tool_input(index: int, piece: str) -> Frame:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return event("content_block_delta", index=index, delta=delta)


def stopped(**abandoned: Any) -> Frame:
    return {**event("message_stop"), **({"abandoned_blocks": abandoned} if abandoned else {})}


def complete(message_id: str, *blocks: Frame, **fields: Any) -> Frame:
    return {"type": "assistant", "message": {"id": message_id, "content": list(blocks)}, **fields}


def updates(*said: Frame) -> list[BlockUpdate]:
    stream = BlockStream()
    return [update for frame in said for update in stream.feed(entry(frame))]


def told(found: list[BlockUpdate]) -> list[tuple[int, str, str]]:
    return [(each.number, each.state, each.delta) for each in found]


def test_prose_grows_and_is_complete_once() -> None:
    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "Hel"),
        text(0, "lo"),
        complete("m1", {"type": "text", "text": "Hello"}),
        event("content_block_stop", index=0),
        stopped(),
    )

    assert told(found) == [(0, "growing", "Hel"), (0, "growing", "lo"), (0, "complete", "")]
    assert [update.block for update in found] == [
        TextBlock(text="Hel"),
        TextBlock(text="Hello"),
        TextBlock(text="Hello"),
    ]


def test_the_input_of_a_tool_is_parsed_as_it_streams() -> None:
    stream = BlockStream()
    seen: list[Any] = []
    said = [
        message("m1"),
        begun(0, type="tool_use", id="t1", name="Bash", input={}),
        tool_input(0, ""),
        tool_input(0, '{"command": "ec'),
        tool_input(0, 'ho hi", "timeout": 1'),
        tool_input(0, "0}"),
    ]
    for frame in said:
        for update in stream.feed(entry(frame)):
            assert isinstance(update.block, ToolUseBlock)
            seen.append(update.block)

    assert [block.input for block in seen] == [
        {"command": "ec"},
        {"command": "echo hi"},
        {"command": "echo hi", "timeout": 10},
    ]
    assert {(block.id, block.name) for block in seen} == {("t1", "Bash")}


def test_blocks_side_by_side_keep_their_numbers() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    other = {**use, "id": "t2"}

    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "I look"),
        begun(1, type="tool_use", id="t1", name="Bash", input={}),
        begun(2, type="tool_use", id="t2", name="Bash", input={}),
        tool_input(2, '{"command":'),
        complete("m1", {"type": "text", "text": "I look"}),
        complete("m1", other),
        complete("m1", use),
    )

    assert [(each.number, each.state) for each in found] == [
        (0, "growing"),
        (2, "growing"),
        (0, "complete"),
        (2, "complete"),
        (1, "complete"),
    ]


def test_what_was_never_streamed_comes_whole() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}

    found = updates(
        complete("m1", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        complete("m1", use),
    )

    assert told(found) == [(0, "complete", "hm"), (1, "complete", '{"command":"ls"}')]
    assert found[0].block == ThinkingBlock(thinking="hm", signature="s")


def test_the_end_that_was_not_streamed_comes_with_the_complete_block() -> None:
    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "slow wo"),
        complete("m1", {"type": "text", "text": "slow words"}),
    )

    assert told(found) == [(0, "growing", "slow wo"), (0, "complete", "rds")]


def test_a_stream_that_broke_off_takes_its_blocks_back() -> None:
    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "this text wi"),
        stopped(api_message_id="m1", from_block_index=0),
        complete("m2", {"type": "text", "text": "this text will do"}),
    )

    assert told(found) == [
        (0, "growing", "this text wi"),
        (0, "dropped", ""),
        (1, "complete", "this text will do"),
    ]


def test_a_complete_block_stays_when_later_ones_are_abandoned() -> None:
    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "a"),
        complete("m1", {"type": "text", "text": "a"}),
        begun(1, type="tool_use", id="t", name="Bash", input={}),
        tool_input(1, "{"),
        stopped(api_message_id="m1", from_block_index=1),
    )

    assert [(each.number, each.state) for each in found][-2:] == [(1, "growing"), (1, "dropped")]


def test_a_block_that_the_end_of_the_turn_cut_off_is_dropped() -> None:
    stream = BlockStream()
    for frame in (message("m1"), begun(0, type="text", text=""), text(0, "half")):
        stream.feed(entry(frame))

    found = stream.feed(Entry(9, 0.0, Kind.SETTLED, turns=("u",)))

    assert told(found) == [(0, "dropped", "")]


def test_a_subagents_blocks_and_api_errors_are_not_the_turns() -> None:
    said = {"type": "text", "text": "x"}

    assert updates(complete("m1", said, parent_tool_use_id="t")) == []
    assert updates(complete("m1", said, is_api_error_message=True)) == []
    assert updates({**text(0, "x"), "parent_tool_use_id": "t"}) == []


@pytest.mark.parametrize("trace", traces())
def test_complete_blocks_are_those_of_the_messages(trace: str) -> None:
    said = [frame for frame in frames(trace) if frame["type"] in ("assistant", "stream_event")]
    messages = [entry(frame).message for frame in said if frame["type"] == "assistant"]

    found = updates(*said)

    assert [each.block for each in found if each.is_complete] == [
        block
        for each in messages
        if isinstance(each, Assistant)
        and each.parent_tool_use_id is None
        and not each.is_api_error_message
        for block in each.content
    ]
    numbers = [each.number for each in found if each.state != "growing"]
    assert len(numbers) == len(set(numbers)), "no block ends twice"


@pytest.mark.parametrize("trace", WITH_PARTIALS)
def test_the_pieces_of_prose_make_the_block(trace: str) -> None:
    found = updates(
        *(frame for frame in frames(trace) if frame["type"] in ("assistant", "stream_event"))
    )

    pieces: dict[int, str] = {}
    for each in found:
        pieces[each.number] = pieces.get(each.number, "") + each.delta
        if each.is_complete and isinstance(each.block, TextBlock):
            assert pieces[each.number] == each.block.text


def test_every_update_of_a_long_text_shows_what_was_written_by_then() -> None:
    stream = BlockStream()
    stream.feed(entry(message("m1")))
    stream.feed(entry(begun(0, type="text", text="")))
    found = [update for n in range(50) for update in stream.feed(entry(text(0, f"{n},")))]

    late = [each.block for each in reversed(found)]

    whole = "".join(f"{n}," for n in range(50))
    assert late[0] == TextBlock(text=whole)
    assert [each.text for each in reversed(late) if isinstance(each, TextBlock)] == [
        "".join(f"{n}," for n in range(count)) for count in range(1, 51)
    ]


def test_what_is_not_abandoned_goes_on() -> None:
    found = updates(
        message("m1"),
        begun(0, type="text", text=""),
        text(0, "kept"),
        begun(1, type="text", text=""),
        text(1, "lost"),
        stopped(api_message_id="m1", from_block_index=1),
        complete("m1", {"type": "text", "text": "kept"}),
    )

    assert told(found)[2:] == [(1, "dropped", ""), (0, "complete", "")]


@pytest.mark.parametrize("block", [None, "text", 5])
def test_a_block_of_a_strange_shape_is_text(block: object) -> None:
    found = updates(
        message("m1"), event("content_block_start", index=0, content_block=block), text(0, "x")
    )

    assert [each.block for each in found] == [TextBlock(text="x")]
