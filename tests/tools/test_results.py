from __future__ import annotations

import base64
import datetime as dt
import enum
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pydantic
import pytest

from steersman.tools import ToolResult, error_result, image_result, text_result
from steersman.tools.results import plain_text, wire_result


class Color(str, enum.Enum):  # noqa: UP042 - str() of it is not its value, which is the point
    RED = "red"


class Word(str):
    __slots__ = ()


@dataclass
class Point:
    x: int
    y: int = 0


class Span(msgspec.Struct):
    start: int


class Model(pydantic.BaseModel):
    when: dt.date


class Page(pydantic.BaseModel):
    url: pydantic.AnyUrl


class Block(pydantic.BaseModel):
    """As the `mcp` package has them."""

    type: str = "image"
    data: str = "AA=="
    mime_type: str = pydantic.Field(serialization_alias="mimeType")
    annotations: None = None


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


PIXEL = {"type": "image", "data": "AA==", "mimeType": "image/png"}
POINT = {"x": 1, "y": 0}


@pytest.mark.parametrize(
    ("returned", "wire"),
    [
        ("hello", text("hello")),
        ("", text("")),
        (None, {"content": []}),
        (3, text("3")),
        (2.5, text("2.5")),
        (float("inf"), text("inf")),
        (True, text("true")),
        (Decimal("1.50"), text("1.50")),
        (dt.date(2026, 1, 2), text("2026-01-02")),
        (Color.RED, text("red")),
        (Word("hi"), text("hi")),
        (Path("/tmp/a"), text("/tmp/a")),
        ([1, "a", None], text('[1,"a",null]')),
        ((1, 2), text("[1,2]")),
        ([], text("[]")),
        ([Point(1)], text('[{"x":1,"y":0}]')),
        ({"a": 1}, {**text('{"a":1}'), "structuredContent": {"a": 1}}),
        ({1: 2}, {**text('{"1":2}'), "structuredContent": {"1": 2}}),
        (MappingProxyType({"a": 1}), {**text('{"a":1}'), "structuredContent": {"a": 1}}),
        (Point(1), {**text('{"x":1,"y":0}'), "structuredContent": POINT}),
        (Span(1), {**text('{"start":1}'), "structuredContent": {"start": 1}}),
        (
            Model(when=dt.date(2026, 1, 2)),
            {**text('{"when":"2026-01-02"}'), "structuredContent": {"when": "2026-01-02"}},
        ),
        (
            {"models": [Model(when=dt.date(2026, 1, 2))]},
            {
                **text('{"models":[{"when":"2026-01-02"}]}'),
                "structuredContent": {"models": [{"when": "2026-01-02"}]},
            },
        ),
        ({"type": "text", "text": "a"}, text("a")),
        (PIXEL, {"content": [PIXEL]}),
        ([Block(mime_type="image/png")], {"content": [PIXEL]}),
        ([PIXEL, {"type": "text", "text": "a"}], {"content": [PIXEL, *text("a")["content"]]}),
        (
            ["look:", PIXEL, 3],
            {"content": [*text("look:")["content"], PIXEL, *text("3")["content"]]},
        ),
        (text("a"), text("a")),
        ({"content": []}, {"content": []}),
        ({**text("a"), "is_error": True}, {**text("a"), "isError": True}),
        ({**text("a"), "isError": True}, {**text("a"), "isError": True}),
        ({**text("a"), "is_error": False}, text("a")),
        (
            {"content": "plain", "isError": True},
            {
                **text('{"content":"plain","isError":true}'),
                "structuredContent": {"content": "plain", "isError": True},
            },
        ),
        (
            {"type": "text", "words": "a"},
            {
                **text('{"type":"text","words":"a"}'),
                "structuredContent": {"type": "text", "words": "a"},
            },
        ),
        (text_result("a"), text("a")),
        (error_result("a"), {**text("a"), "isError": True}),
        (
            ToolResult((PIXEL,), structured={"at": Path("a")}, meta={"k": 1}),
            {"content": [PIXEL], "structuredContent": {"at": "a"}, "_meta": {"k": 1}},
        ),
    ],
)
def test_a_returned_value_goes_on_the_wire_like_this(
    returned: object, wire: dict[str, Any]
) -> None:
    assert wire_result(returned) == wire


def test_an_image_is_sent_as_base64() -> None:
    assert wire_result(image_result(b"\x89PNG", "image/png")) == {
        "content": [
            {
                "type": "image",
                "data": base64.b64encode(b"\x89PNG").decode(),
                "mimeType": "image/png",
            }
        ]
    }


class Drawing:
    """A picture as Pillow has them."""

    def save(self, fp: Any, format: str | None = None, **params: Any) -> None:  # noqa: A002
        fp.write(f"drawn as {format}".encode())


class Row:
    """Something that saves itself elsewhere."""

    def save(self, commit: bool = True) -> None:  # noqa: FBT001, FBT002 - as others write it
        raise AssertionError("nobody asked for that")


DRAWN = {
    "type": "image",
    "data": base64.b64encode(b"drawn as PNG").decode(),
    "mimeType": "image/png",
}


@pytest.mark.parametrize(
    ("returned", "blocks"),
    [
        (Drawing(), [DRAWN]),
        (image_result(Drawing()), [DRAWN]),
        (["before and after", Drawing()], [*text("before and after")["content"], DRAWN]),
    ],
)
def test_a_picture_is_shown(returned: object, blocks: list[Any]) -> None:
    assert wire_result(returned) == {"content": blocks}


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
    ],
)
def test_the_bytes_of_an_image_say_what_they_are(head: bytes, media_type: str) -> None:
    shown = [wire_result(each) for each in (head, memoryview(head), image_result(head))]

    assert [each["content"][0]["mimeType"] for each in shown] == [media_type] * 3


@pytest.mark.parametrize(
    "returned", [b"RIFF\x00\x00\x00\x00WAVE", Row(), b"\x00", bytearray(b"a"), object(), [object()]]
)
def test_what_json_cannot_carry_is_refused(returned: object) -> None:
    with pytest.raises(TypeError):
        wire_result(returned)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", "a"),
        (float("inf"), "inf"),
        (0.5, "0.5"),
        ([1, float("nan")], "[1,null]"),
        (Page(url=pydantic.AnyUrl("https://a.b/")), '{"url":"https://a.b/"}'),
    ],
)
def test_a_value_is_text_as_it_is_or_as_json(value: object, shown: str) -> None:
    assert plain_text(value) == shown
