from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman._struct import WireStruct, fields_of
from steersman.errors import UsageError
from steersman.messages import (
    Assistant,
    AssistantBody,
    Init,
    Message,
    TextBlock,
    UnknownBlock,
    UnknownMessage,
    User,
    from_json,
    parse_message,
    to_json,
)
from steersman.messages.content import KnownBlock
from steersman.messages.parsing import KnownMessage
from tests.samples import Frame, alone, encoded, frames, kind_of, lines, sample, traces
from tests.samples.strategies import (
    ANY_JSON,
    ANY_TEXT,
    Path,
    broken_frames,
    every_break,
    shapes,
)

RARE = [
    *alone("recorded", "messages"),
    *alone("recorded", "blocks"),
    *alone("recorded", "events"),
    *alone("declared", "messages"),
]
SHAPES = shapes() + RARE
CLASSES: list[type[WireStruct]] = list(get_args(KnownMessage))


def tag_of(cls: type[WireStruct]) -> str:
    config = cls.__struct_config__
    return f"system/{config.tag}" if config.tag_field == "subtype" else str(config.tag)


def line_of(frame: Frame) -> bytes:
    return json.dumps(frame).encode()


def values_in(value: Any) -> Iterator[WireStruct]:
    """`value` and every wire value inside it."""
    if isinstance(value, WireStruct):
        yield value
        for name in value.__struct_fields__:
            yield from values_in(getattr(value, name))
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from values_in(each)


@pytest.mark.parametrize("cls", CLASSES, ids=tag_of)
def test_every_class_reads_its_frame(cls: type[WireStruct]) -> None:
    frame = sample(tag_of(cls))

    message = parse_message(line_of(frame))

    assert type(message) is cls
    assert message.raw == frame


@pytest.mark.parametrize("cls", CLASSES, ids=tag_of)
def test_every_field_of_a_class_is_read_under_the_name_it_has_on_the_wire(
    cls: type[WireStruct],
) -> None:
    frame = sample(tag_of(cls))
    message = parse_message(line_of(frame))

    # Fields that hold values of ours are compared in the tests of those values.
    plain = {
        name: getattr(message, name)
        for name in cls.__struct_fields__
        if not list(values_in(getattr(message, name)))
    }

    wire_names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
    defaults = {name: getattr(cls(), name) for name in plain}
    assert plain == {name: frame.get(wire_names[name], defaults[name]) for name in plain}


@pytest.mark.parametrize("trace", traces())
def test_every_recorded_message_is_known(trace: str) -> None:
    for line in lines(trace):
        frame = json.loads(line)

        message = parse_message(line)

        assert isinstance(message, UnknownMessage) == frame["type"].startswith("control_")
        assert message.raw == frame


@pytest.mark.parametrize("frame", RARE, ids=kind_of)
def test_values_inside_a_message_know_what_they_were_read_from(frame: Frame) -> None:
    message = parse_message(frame)

    inside = [each.raw for each in values_in(message)]

    assert all(raw and found_in(frame, raw) for raw in inside)


def found_in(frame: Any, raw: Frame) -> bool:
    inner = frame.values() if isinstance(frame, dict) else frame if isinstance(frame, list) else ()
    return bool(frame == raw) or any(found_in(each, raw) for each in inner)


def test_an_unknown_message_keeps_its_words_and_all_the_rest() -> None:
    frame = {"type": "brand_new", "subtype": "soon", "info": {"a": [1, None]}}

    message = parse_message(line_of(frame))

    assert message == UnknownMessage(type="brand_new", subtype="soon")
    assert message.raw == frame


def test_an_unknown_system_message_keeps_its_words_and_all_the_rest() -> None:
    frame = {"type": "system", "subtype": "brand_new", "info": 1}

    message = parse_message(line_of(frame))

    assert message == UnknownMessage(type="system", subtype="brand_new")
    assert message.raw == frame


def test_an_object_already_decoded_is_read_the_same_way() -> None:
    frame = sample("assistant")

    message = parse_message(frame)

    assert message == parse_message(line_of(frame))
    assert message.raw == frame


@pytest.mark.parametrize("line", [b"", b"words", b"[]", b"null", b"3", b'"{}"', b'{"type":'])
def test_what_is_no_object_is_a_mistake_of_the_caller(line: bytes) -> None:
    with pytest.raises(UsageError, match=r"line: got .*, allowed: one JSON object"):
        parse_message(line)


@pytest.mark.parametrize("kind", sorted({kind_of(frame) for frame in SHAPES}))
def test_no_dropped_or_retyped_key_of_any_recorded_frame_is_too_much(kind: str) -> None:
    seen: set[Path] = set()
    for whole in (frame for frame in SHAPES if kind_of(frame) == kind):
        for frame in every_break(whole, seen):
            message = parse_message(line_of(frame))

            assert message.raw == frame


@given(frame=broken_frames(SHAPES))
def test_any_json_in_any_place_is_read_and_kept_as_it_came(frame: Frame) -> None:
    line = line_of(frame)

    message = parse_message(line)

    assert repr(message.raw) == repr(json.loads(line))
    assert [type(inner.raw) for inner in values_in(message)] == [dict for _ in values_in(message)]


@given(
    frame=st.fixed_dictionaries(
        {"type": st.sampled_from(["system", "user", "assistant", "result"]) | ANY_JSON},
        optional={"subtype": ANY_JSON, "message": ANY_JSON, "usage": ANY_JSON, "event": ANY_JSON},
    )
)
def test_any_object_is_a_message(frame: Frame) -> None:
    line = line_of(frame)

    assert repr(parse_message(line).raw) == repr(json.loads(line))


@given(text=ANY_TEXT)
def test_lone_surrogates_are_read_wherever_they_stand(text: str) -> None:
    frame = sample("assistant")
    frame["message"]["content"] = [{"type": "text", "text": text}, {"type": text}, {text: text}]
    frame["message"][text] = frame[text] = text

    message = parse_message(json.dumps(frame).encode())

    assert isinstance(message, Assistant)
    assert message.text == json.loads(json.dumps(text))
    assert message.raw == json.loads(json.dumps(frame))


@pytest.mark.parametrize("spelling", [b"1e999", b"-1e999", b"9" * 400, b"9" * 5000, b"0.1e-400"])
def test_no_number_is_too_much(spelling: bytes) -> None:
    line = b'{"type":"user","num":' + spelling + b',"message":{"content":"hi"}}'

    message = parse_message(line)

    assert isinstance(message, User)
    assert message.content == "hi"
    assert list(message.raw) == ["type", "num", "message"]


def test_bytes_that_are_no_text_hide_nothing_beside_them() -> None:
    line = b'{"type":"user","strange":"\xff","message":{"content":"a\xfeb"}}'

    message = parse_message(line)

    assert isinstance(message, User)
    assert message.content == "a\ufffdb"
    assert message.raw == {"type": "user", "strange": "\ufffd", "message": {"content": "a\ufffdb"}}


@pytest.mark.parametrize("depth", [900, 1_000, 100_000])
def test_an_object_nested_beyond_reason_is_still_a_message(depth: int) -> None:
    line = b'{"type":"user","deep":' + b"[" * depth + b"]" * depth + b"}"

    message = parse_message(line)

    assert isinstance(message, User | UnknownMessage)
    assert isinstance(message.raw, dict)


def test_of_doubled_keys_the_last_one_counts() -> None:
    message = parse_message(b'{"type":"result","type":"user","type":"unheard"}')

    assert message == UnknownMessage(type="unheard")


def test_key_order_is_of_no_weight() -> None:
    frame = dict(reversed(sample("result/success").items()))

    assert parse_message(line_of(frame)) == parse_message(line_of(sample("result/success")))


def test_frames_are_read_lazily_but_wholly() -> None:
    texts = [
        message.text
        for message in map(parse_message, lines("multi_turn_tools"))
        if isinstance(message, Assistant)
    ]

    assert texts == [
        "".join(block.get("text", "") for block in frame["message"]["content"])
        for frame in frames("multi_turn_tools")
        if frame["type"] == "assistant"
    ]


# --- Back to JSON ------------------------------------------------------------------------


def assert_is_kept(line: bytes) -> None:
    message = parse_message(line)

    again = from_json(to_json(message))

    assert again == message
    assert repr(again.raw) == repr(message.raw)
    assert to_json(message) == to_json(again) == line


@pytest.mark.parametrize("trace", traces())
def test_every_recorded_line_comes_back_byte_for_byte(trace: str) -> None:
    for line in lines(trace):
        assert_is_kept(line)


@pytest.mark.parametrize("frame", RARE, ids=kind_of)
def test_every_rare_line_comes_back_byte_for_byte(frame: Frame) -> None:
    assert_is_kept(line_of(frame))


@given(frame=broken_frames(SHAPES))
def test_any_line_comes_back_byte_for_byte(frame: Frame) -> None:
    assert_is_kept(line_of(frame))


@given(text=ANY_TEXT)
def test_lone_surrogates_come_back_byte_for_byte(text: str) -> None:
    frame = sample("assistant")
    frame["message"]["content"] = [{"type": "text", "text": text}, {text: text}]

    assert_is_kept(line_of(frame))


@pytest.mark.parametrize("spelling", [b"1e999", b"9" * 5000, b"1.0E2", b'"\\ud83d"', b'"\xff"'])
def test_spellings_that_python_would_change_come_back_as_they_came(spelling: bytes) -> None:
    assert_is_kept(b'{ "type":"user", "num": ' + spelling + b"}")


@pytest.mark.parametrize("depth", [900, 1_000, 100_000])
def test_a_line_nested_beyond_reason_comes_back_as_it_came(depth: int) -> None:
    line = b'{"type":"user","deep":' + b"[" * depth + b"]" * depth + b"}"
    message = parse_message(line)

    assert to_json(message) == line
    assert from_json(to_json(message)) == message


@pytest.mark.parametrize("cls", CLASSES, ids=tag_of)
def test_a_message_made_by_hand_comes_back(cls: type[WireStruct]) -> None:
    message: Any = cls()

    assert from_json(to_json(message)) == message


@pytest.mark.parametrize("cls", CLASSES, ids=tag_of)
def test_a_message_changed_by_hand_keeps_its_other_fields(cls: type[WireStruct]) -> None:
    frame = sample(tag_of(cls))
    read: Any = parse_message(frame)
    changed = msgspec.structs.replace(read)

    again = from_json(to_json(changed))

    assert again == read


def test_a_message_made_by_hand_of_blocks_that_came_keeps_them_whole() -> None:
    noted = {"type": "text", "text": "hi", "noted": "\ud800"}
    strange = {"type": "brand_new", "info": [1]}
    came = parse_message({"type": "assistant", "message": {"content": [noted, strange]}})
    assert isinstance(came, Assistant)
    made: Message = Assistant(message=AssistantBody(content=came.message.content))

    again = from_json(to_json(made))

    assert isinstance(again, Assistant)
    assert again.content == [TextBlock(text="hi"), UnknownBlock(type="brand_new")]
    assert [block.raw for block in again.content] == [noted, strange]


def test_a_system_message_made_by_hand_says_that_it_is_one() -> None:
    line = to_json(Init(cwd="/x"))

    assert json.loads(line).items() >= {"type": "system", "subtype": "init", "cwd": "/x"}.items()


def test_the_parts_of_every_recorded_line_know_where_they_stand_however_it_is_spelt() -> None:
    recorded = [line for trace in traces() for line in lines(trace)]

    for line in recorded:
        usual, other = parse_message(line), parse_message(b"{ " + line[1:])

        assert [each.raw for each in values_in(usual)] == [each.raw for each in values_in(other)]


def test_a_message_told_all_at_once_where_its_parts_stand_has_the_reports_too() -> None:
    frame = {
        "type": "assistant",
        "message": {"content": []},
        "context_usage": {"model": "m", "brand_new": 1},
        "usage_report": {"brand_new": 2},
    }

    message = parse_message(encoded(frame))

    assert isinstance(message, Assistant)
    assert message.context_usage is not None
    assert message.usage_report is not None
    assert message.context_usage.raw == frame["context_usage"]
    assert message.usage_report.raw == frame["usage_report"]


@pytest.mark.parametrize("cls", get_args(KnownBlock), ids=lambda cls: cls.__name__)
def test_no_block_holds_values_that_would_need_a_source(
    cls: type[WireStruct],
) -> None:
    assert not any(can_hold_a_value(field.type) for field in fields_of(cls))


def can_hold_a_value(wanted: Any) -> bool:
    is_value = isinstance(wanted, type) and issubclass(wanted, WireStruct)
    return is_value or any(map(can_hold_a_value, get_args(wanted)))
