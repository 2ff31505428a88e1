from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.journal.partial_json import NOTHING, GrowingText, PartialJson
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


def test_a_text_is_joined_once_however_often_it_is_looked_at() -> None:
    text = json.dumps({"file_path": "a.txt", "content": "line of text\n" * 5_000})
    growing = GrowingText()

    for at in range(0, len(text), 8):
        growing.append(text[at : at + 8])
        assert growing.text == text[: at + 8]
        assert growing.joined == len(growing.text), "no character is joined twice"


def test_a_text_that_was_read_does_not_change_when_it_grows() -> None:
    growing = GrowingText()
    read_texts: list[str] = []

    for part in ["a", "b", "", "c"] * 20:
        growing.append(part)
        read_texts.append(growing.text)

    assert read_texts == ["".join((["a", "b", "", "c"] * 20)[: n + 1]) for n in range(80)]


def joined_while_looking(characters: int) -> tuple[int, int]:
    """How many characters are joined when the value is looked at after every part."""
    content = "line of text\n" * (characters // 13)
    parser, joined = PartialJson(), 0
    for at in range(0, len(text := json.dumps({"path": "a", "content": content})), 40):
        parser.feed(text[at : at + 40])
        before = parser.reading.joined
        value = parser.value
        joined += parser.reading.joined - before
        assert begins(value, {"path": "a", "content": content})
    assert value["content"] == content
    return joined, len(content)


@pytest.mark.parametrize("characters", [1_300, 13_000, 130_000])
def test_looking_after_every_part_joins_no_character_twice(characters: int) -> None:
    joined, written = joined_while_looking(characters)

    assert joined <= written
