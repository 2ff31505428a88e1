from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given

from steersman import _json
from tests.samples import encoded, lines, traces
from tests.samples.strategies import ANY_JSON, ANY_TEXT


@given(value=ANY_JSON)
def test_what_is_written_reads_as_the_standard_library_would_have_it(value: Any) -> None:
    assert json.loads(_json.dumps(value)) == json.loads(json.dumps(value))


@given(value=ANY_JSON)
def test_what_the_standard_library_writes_is_read(value: Any) -> None:
    line = json.dumps(value).encode()

    assert _json.loads(line) == json.loads(line)


@given(value=ANY_JSON)
def test_a_round_trip_gives_the_value_back_with_its_types(value: Any) -> None:
    assert repr(_json.loads(_json.dumps(value))) == repr(json.loads(json.dumps(value)))


@given(text=ANY_TEXT)
def test_a_line_of_json_holds_no_newline(text: str) -> None:
    assert b"\n" not in _json.dumps({text: text})


@pytest.mark.parametrize(
    "text",
    ["\ud800", "a\udfffb", "\ud83d and \ude00", "\udcff"],  # noqa: PT014 - they do differ
)
def test_a_lone_surrogate_goes_both_ways(text: str) -> None:
    line = _json.dumps({"key " + text: [text]})

    assert line.isascii()
    assert _json.loads(line) == {"key " + text: [text]}


def test_a_struct_with_a_lone_surrogate_is_written_under_its_wire_names() -> None:
    class Said(msgspec.Struct, tag="said", rename="camel", omit_defaults=True):
        what_was: str = ""
        left_out: int = 0

    assert _json.loads(_json.dumps(Said("\ud800"))) == {"type": "said", "whatWas": "\ud800"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("beside", ["plain", "\ud800"])
def test_a_number_that_json_has_not_becomes_null_as_in_javascript(
    number: float, beside: str
) -> None:
    line = _json.dumps({"number": number, "beside": [beside, {"deep": number}]})

    assert _json.loads(line) == {"number": None, "beside": [beside, {"deep": None}]}


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400])
def test_a_big_whole_number_keeps_every_digit(number: int) -> None:
    assert _json.loads(_json.dumps([number])) == [number]


@pytest.mark.parametrize("digits", [5_000, 100_000])
def test_a_number_with_more_digits_than_python_reads_does_not_hide_the_rest(digits: int) -> None:
    found = _json.loads(b'{"a":1,"number":' + b"1" * digits + b"}")

    assert found["a"] == 1
    assert math.isinf(found["number"])


def test_a_number_out_of_range_is_infinite_as_in_javascript() -> None:
    assert _json.loads(b"[1e999,-1e999,1e-999]") == [math.inf, -math.inf, 0.0]


def test_of_doubled_keys_the_last_one_counts() -> None:
    assert _json.loads(b'{"a":1,"a":2}') == {"a": 2}
    assert _json.loads(b'{"a":1,"a":2,"s":"\\ud800"}') == {"a": 2, "s": "\ud800"}


def test_bytes_that_are_no_text_are_replaced_and_hide_nothing() -> None:
    assert _json.loads(b'{"a":"x\xffy","b":1}') == {"a": "x\ufffdy", "b": 1}


@pytest.mark.parametrize(
    "line", [b"", b" ", b"{", b'{"a"}', b"[1,]", b"01", b"tru", b'"\\q"', b'"a\x01"', b"{} {}"]
)
def test_what_is_not_json_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - that it is one is all that is promised
        _json.loads(line)


@pytest.mark.parametrize("depth", [1_000, 5_000, 100_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_beyond_reason_is_a_value_error(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"

    with pytest.raises(ValueError, match="nested too deeply"):
        _json.loads(opening * depth + b"1" + closing * depth)


@pytest.mark.parametrize("trace", traces())
def test_recorded_lines_read_as_the_standard_library_reads_them(trace: str) -> None:
    for line in lines(trace):
        assert _json.loads(line) == json.loads(line)
        assert encoded(_json.loads(line)) == line
