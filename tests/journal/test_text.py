from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._protocol.events import MessageArrived
from steersman.journal import Entry, Kind
from steersman.journal.results import TurnResultBuilder
from steersman.journal.text import AssistantText, TextStream
from steersman.messages import Assistant, TextBlock, UnknownBlock, parse_message
from tests._protocol.conversations import as_older_cli, heard
from tests.samples import Frame, frames, lines, sample, traces

WITH_PARTIALS = [
    trace for trace in traces() if any(frame["type"] == "stream_event" for frame in frames(trace))
]


def entry(frame: Frame) -> Entry:
    kinds = {"stream_event": Kind.PARTIAL, "restarted": Kind.RESTARTED}
    kind = kinds.get(frame["type"], Kind.MESSAGE)
    return Entry(1, 0.0, kind, json.dumps(frame).encode())


def started(message_id: str) -> Frame:
    event = {"type": "message_start", "message": {"id": message_id}}
    return {"type": "stream_event", "event": event}


def delta(text: str) -> Frame:
    event = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }
    return {"type": "stream_event", "event": event}


def stopped(**more: Any) -> Frame:
    return {"type": "stream_event", "event": {"type": "message_stop"}, **more}


def complete(message_id: str, text: str) -> Frame:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message_id, "content": content}}


def read(said: list[Frame]) -> tuple[list[str], str]:
    """The chunks of the stream, and the text of the complete messages."""
    stream, builder, chunks = TextStream(), TurnResultBuilder("u", 0.0), []
    for each in map(entry, said):
        chunks.append(stream.feed(each))
        if isinstance(each.message, Assistant):
            builder.record(each.message, 0.0)
    return [chunk for chunk in chunks if chunk], builder.build(0.0, "completed").text


def turns_of(trace: str) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for _frame, events in heard(as_older_cli(trace)):
        for event in events:
            if isinstance(event, MessageArrived):
                for uuid in event.turns:
                    found.setdefault(uuid, []).append(Entry(1, 0.0, event.kind, event.line))
    return found


@pytest.mark.parametrize("trace", traces())
def test_the_chunks_of_every_recorded_turn_are_its_text(trace: str) -> None:
    for entries in turns_of(trace).values():
        stream, builder = TextStream(), TurnResultBuilder("u", 0.0)
        told = "".join(map(stream.feed, entries))
        for each in entries:
            if each.kind is Kind.MESSAGE and isinstance(each.message, Assistant):
                builder.record(each.message, 0.0)
        # A turn whose process was killed has only what was streamed.
        was_cut_off = not any(b'"type":"result"' in each.line for each in entries)

        assert told == builder.build(0.0, "completed").text or was_cut_off


def test_there_are_recordings_with_partials_and_they_come_in_pieces() -> None:
    chunks = [
        chunk
        for trace in WITH_PARTIALS
        for entries in turns_of(trace).values()
        for chunk in map(TextStream().feed, entries)
        if chunk
    ]

    assert len(WITH_PARTIALS) >= 5
    assert len(chunks) > 2 * len(WITH_PARTIALS)


def test_a_streamed_message_is_not_told_again_when_it_is_complete() -> None:
    chunks, text = read(
        [started("1"), delta("Hel"), delta("lo"), complete("1", "Hello"), stopped()]
    )

    assert chunks == ["Hel", "lo"]
    assert text == "Hello"


def test_what_was_never_streamed_is_told_by_the_complete_message() -> None:
    assert read([complete("1", "Hello")]) == (["Hello"], "Hello")


def test_the_rest_of_a_message_is_filled_in() -> None:
    assert read([started("1"), delta("Hel"), complete("1", "Hello")])[0] == ["Hel", "lo"]


def test_a_second_message_begins_a_paragraph() -> None:
    chunks, text = read(
        [started("1"), delta("One"), complete("1", "One"), stopped(), started("2"), delta("Two")]
    )

    assert chunks == ["One", "\n\nTwo"]
    assert text == "One"


def test_two_blocks_of_one_message_are_one_paragraph() -> None:
    said = [
        started("1"),
        delta("One "),
        complete("1", "One "),
        delta("two"),
        complete("1", "two"),
        stopped(),
    ]

    assert read(said) == (["One ", "two"], "One two")


def test_a_stream_that_broke_off_and_began_anew_is_not_told_twice() -> None:
    said = [
        started("1"),
        delta("Hello wo"),
        stopped(abandoned_blocks={"api_message_id": "1", "from_block_index": 0}),
        started("2"),
        delta("Hello"),
        delta(" world"),
        complete("2", "Hello world"),
        stopped(),
    ]

    assert read(said) == (["Hello wo", "rld"], "Hello world")


def test_a_stream_that_began_anew_with_other_words_tells_them_as_a_paragraph() -> None:
    said = [
        started("1"),
        delta("Hello wo"),
        stopped(abandoned_blocks={"api_message_id": "1", "from_block_index": 0}),
        started("2"),
        delta("Good day"),
        complete("2", "Good day"),
    ]

    assert "".join(read(said)[0]) == "Hello wo\n\nGood day"


RESTARTED: Frame = {"type": "restarted"}
TOOL_RESULT: Frame = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
}


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        # A complete message that the lost CLI had not saved is written again.
        (
            [started("m1"), delta("All."), complete("m1", "All.")],
            [started("m2"), delta("All."), complete("m2", "All.")],
            "All.",
        ),
        ([complete("m1", "All.")], [started("m2"), delta("Al"), delta("l.")], "All."),
        ([complete("m1", "All.")], [complete("m2", "All. And more.")], "All. And more."),
        ([started("m1"), delta("Al")], [complete("m2", "All.")], "All."),
        ([complete("m1", "All.")], [complete("m2", "Other.")], "All.\n\nOther."),
        # One whose tool has run was saved, so this is what the model says next.
        ([complete("m1", "Look."), TOOL_RESULT], [complete("m2", "Look.")], "Look.\n\nLook."),
    ],
)
def test_what_the_next_cli_writes_again_is_not_told_twice(
    before: list[Frame], after: list[Frame], text: str
) -> None:
    chunks, _ = read([*before, RESTARTED, *after])

    assert "".join(chunks) == text


def test_the_words_of_a_subagent_are_not_the_agents() -> None:
    inside = {**delta("inside"), "parent_tool_use_id": "toolu_1"}
    whole = {**complete("9", "inside"), "parent_tool_use_id": "toolu_1"}

    assert read([started("1"), delta("a"), inside, whole, delta("b")])[0] == ["a", "b"]


@given(event=st.dictionaries(st.sampled_from(["type", "delta", "message", "index"]), st.none()))
def test_a_strange_event_says_nothing(event: dict[str, None]) -> None:
    assert read([{"type": "stream_event", "event": event}])[0] == []


@st.composite
def speeches(draw: st.DrawFn) -> list[Frame]:
    """Messages of some blocks, each streamed in several deltas, in part, or not at all."""
    said: list[Frame] = []
    for number in range(draw(st.integers(1, 4))):
        message_id = f"msg_{number}"
        is_streamed = draw(st.booleans())
        if is_streamed:
            said.append(started(message_id))
        for _block in range(draw(st.integers(1, 3))):
            text = draw(st.text(min_size=1, max_size=8))
            if is_streamed:
                cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
                edges = [0, *cuts, len(text)]
                said += [delta(text[a:b]) for a, b in itertools.pairwise(edges)]
            said.append(complete(message_id, text))
        if is_streamed:
            said.append(stopped())
    return said


@given(said=speeches())
def test_joined_chunks_are_the_text_of_any_turn(said: list[Frame]) -> None:
    chunks, text = read(said)

    assert "".join(chunks) == text


def line_of(*blocks: object, **fields: object) -> bytes:
    body = {"id": "m1", "content": list(blocks)}
    return json.dumps({"type": "assistant", "message": body, **fields}).encode()


def test_every_recorded_line_says_what_its_message_says() -> None:
    recorded = [line for trace in traces() for line in lines(trace)]
    compared = 0

    for line in recorded:
        message = parse_message(line)
        if isinstance(message, Assistant):
            compared += 1
            assert AssistantText((line,)).text == message.text
            assert AssistantText((line,)).blocks == tuple(message.content)

    assert compared


@pytest.mark.parametrize(
    "line",
    [
        line_of(message={"id": 1, "content": [{"type": "text", "text": "a"}]}),
        line_of({"type": "text", "text": "a"}, {"type": "text", "text": 1}),
        line_of({"type": "text", "text": "a"}, "no block"),
    ],
)
def test_a_line_of_another_shape_says_what_can_be_read_of_it(line: bytes) -> None:
    assert AssistantText((line,)).text == "a"


def test_a_line_that_is_no_message_says_nothing() -> None:
    assert AssistantText((b'{"type":"new","message":1}',)).text == ""


def test_only_prose_is_text() -> None:
    said = AssistantText(
        (line_of({"type": "thinking", "thinking": "hm"}, {"type": "new", "text": "no"}),)
    )

    assert (said.text, said.answer) == ("", "")


def test_blocks_are_decoded_once_and_those_that_are_new_are_kept() -> None:
    said = AssistantText((line_of({"type": "text", "text": "a"}), line_of({"type": "new", "b": 1})))

    blocks = said.blocks

    assert blocks == (TextBlock(text="a"), UnknownBlock(type="new"))
    assert blocks[1].raw == {"type": "new", "b": 1}
    assert said.blocks is blocks


def test_what_was_said_is_equal_when_its_blocks_are() -> None:
    line = json.dumps(sample("assistant")).encode()

    assert AssistantText((line,)) == AssistantText((line,))
    assert AssistantText((line,)) != AssistantText()
    assert repr(AssistantText((line,))) == "AssistantText(1 lines)"


def test_a_message_of_several_texts_is_told_without_a_break() -> None:
    body = {"id": "1", "content": [{"type": "text", "text": each} for each in ("One ", "two")]}

    assert read([{"type": "assistant", "message": body}]) == (["One two"], "One two")


ODD: list[Any] = [None, 5, "text", [], {}, {"type": 5}, {"type": "text_delta"}]
"""Values that the CLI does not send in these places."""


def odd_events() -> list[Any]:
    """Events with an odd value in each place, and some that are no objects."""
    started = [{"type": "message_start", "message": each} for each in ODD]
    named: list[Any] = [{"type": "message_start", "message": {"id": each}} for each in ODD]
    deltas = [{"type": "content_block_delta", "delta": each} for each in ODD]
    texts = [
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": each}}
        for each in ODD
        if not isinstance(each, str)
    ]
    return [
        *ODD,
        *started,
        *(each for each in named if each["message"]["id"] != "text"),
        *deltas,
        *texts,
    ]


@pytest.mark.parametrize("odd", odd_events(), ids=repr)
def test_an_event_with_odd_values_adds_nothing_and_loses_nothing(odd: Any) -> None:
    said = [started("a"), delta("one"), {"type": "stream_event", "event": odd}, delta(" two")]

    chunks, _ = read([*said, complete("a", "one two")])

    assert chunks == ["one", " two"]


@pytest.mark.parametrize("parent", [5, [], {}])
def test_a_line_with_an_odd_parent_is_read_as_one_of_the_main_agent(parent: Any) -> None:
    chunks, _ = read([started("a"), {**delta("one"), "parent_tool_use_id": parent}])

    assert chunks == ["one"]
