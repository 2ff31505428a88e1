from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.journal.partial_json import NOTHING, PartialJson
from tests.samples.strategies import ANY_JSON, ANY_TEXT

OBJECTS = st.dictionaries(ANY_TEXT, ANY_JSON, max_size=4)


def read(*pieces: str) -> PartialJson:
    parser = PartialJson()
    for piece in pieces:
        parser.feed(piece)
    return parser


def begins(prefix: Any, whole: Any) -> bool:
    """Whether `prefix` is `whole` as far as it was written."""
    if isinstance(whole, str):
        return isinstance(prefix, str) and whole.startswith(prefix)
    if isinstance(whole, list):
        return isinstance(prefix, list) and all_but_last(prefix, whole[: len(prefix)])
    if isinstance(whole, dict):
        names = list(whole)[: len(prefix)]
        return list(prefix) == names and all_but_last(
            list(prefix.values()), [whole[name] for name in names]
        )
    return type(prefix) is type(whole) and prefix == whole


def all_but_last(prefix: list[Any], whole: list[Any]) -> bool:
    if not prefix:
        return True
    return (
        len(prefix) == len(whole)
        and prefix[:-1] == whole[:-1]
        and (begins(prefix[-1], whole[-1]) or prefix[-1] == whole[-1])
    )


@given(whole=OBJECTS, is_ascii=st.booleans(), indent=st.sampled_from([None, 2]))
def test_every_prefix_of_an_object_reads_as_its_beginning(
    *, whole: dict[str, Any], is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(whole, ensure_ascii=is_ascii, indent=indent)
    parser = PartialJson()

    for character in text:
        parser.feed(character)
        value = parser.value
        assert not parser.is_broken
        assert value is NOTHING or begins(value, whole)

    assert parser.is_whole
    assert parser.value == whole


@given(ANY_JSON, st.data())
def test_it_does_not_matter_where_the_pieces_are_cut(whole: Any, data: st.DataObject) -> None:
    text = json.dumps(whole)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    parser = read(*pieces)
    parser.finish()

    assert parser.value == whole
    assert parser.is_whole


@given(
    st.lists(st.text(max_size=5) | st.sampled_from(["{", '"', "\\u", "\\", "1e", "tru", ",", "]"]))
)
def test_no_text_makes_it_raise(pieces: list[str]) -> None:
    parser = read(*pieces)
    parser.finish()

    try:
        whole = json.loads("".join(pieces))
    except ValueError:
        return
    assert parser.value == whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"command": "echo ', {"command": "echo "}),
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": tru', {}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ('{"a": "x\\ud83d', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude00', {"a": "x😀"}),
        ('{"a": "x\\ud83dy', {"a": "x\ud83dy"}),
        ('{"a', {}),
        ('{"a":', {}),
        ("", NOTHING),
    ],
)
def test_what_is_not_certain_is_left_out(text: str, value: Any) -> None:
    assert read(text).value == value


@pytest.mark.parametrize("text", ['{"a": 1]', '{"a" 1', '{"a": nope,', '{"a": "\\uzzzzzz', "{} {}"])
def test_what_is_no_json_is_told(text: str) -> None:
    assert read(text).is_broken


def test_a_value_once_given_does_not_change() -> None:
    parser = read('{"a": [1, ')
    before = parser.value

    parser.feed('2], "b": 3}')

    assert before == {"a": [1]}
    assert parser.value == {"a": [1, 2], "b": 3}


def test_depth_is_no_danger() -> None:
    parser = read("[" * 100_000)

    value = parser.value

    assert isinstance(value, list)
    while value:
        [value] = value


def seconds_for(characters: int) -> float:
    text = json.dumps({"file_path": "a.txt", "content": "line of text\n" * (characters // 14)})
    parser = PartialJson()
    began = time.process_time()
    for at in range(0, len(text), 8):
        parser.feed(text[at : at + 8])
    took = time.process_time() - began
    assert parser.value == json.loads(text)
    return took


def test_a_megabyte_in_tiny_pieces_takes_as_long_per_piece_as_a_little() -> None:
    small = min(seconds_for(50_000) for _ in range(3))

    large = seconds_for(1_000_000)

    assert large < 20 * small * 5, "twenty times as much may take some twenty times as long"
