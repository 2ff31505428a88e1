"""A tool's return value → the result of `tools/call`.

Takes any Python value and returns MCP's `content`, `structuredContent` and `isError`.
"""

from __future__ import annotations

import base64
import inspect
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol, TypeGuard, cast

import msgspec

from steersman._json import Json, JsonDict, is_array, is_object
from steersman.ports import JsonObject

BLOCK_KEYS = {
    "text": "text",
    "image": "data",
    "audio": "data",
    "resource": "resource",
    "resource_link": "uri",
}
"""The types of content blocks, each with its required key."""

IMAGE_HEADS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""The first bytes of the image formats that the API accepts."""

NUMBERS = frozenset({int, float})

RESULT_KEYS = frozenset({"content", "isError", "is_error", "structuredContent", "_meta"})

# Types that msgspec does not convert by itself: subclasses, other mappings, paths.
PLAIN_TYPES: dict[type[Any], Callable[[Any], Any]] = {
    str: str.__str__,
    int: int,
    float: float,
    Mapping: dict,
    PurePath: str,
}


class ToolError(Exception):
    """Raise this in a tool: the model reads the text as it is, and no failure is logged."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, for results that a plain return value cannot express."""

    content: Sequence[JsonObject] = ()
    """MCP content blocks."""
    structured: JsonObject | None = None
    """The result as an object; the CLI shows this to the model in place of `content`."""
    is_error: bool = False
    meta: JsonObject | None = None
    """Arrives in `tool_use_result._meta`; the model does not see it."""


class Picture(Protocol):
    """An image of Pillow, or of another package, that can be saved in the same way."""

    def save(self, fp: Any, /, format: str) -> Any:  # noqa: A002 - Pillow's own name
        """Write the image into an open file."""
        ...


def text_result(text: str) -> ToolResult:
    """Return a result that is a text."""
    return ToolResult((text_block(text),))


def error_result(text: str) -> ToolResult:
    """Return a result that is an error, with a text for the model."""
    return ToolResult((text_block(text),), is_error=True)


def image_result(image: bytes | Picture, media_type: str | None = None) -> ToolResult:
    """Return a result that is an image: the bytes of a file, or an image of Pillow.

    Without `media_type`, the type of the file is detected from its first bytes.
    """
    if is_bytes(image):
        return ToolResult((_image_block(image, media_type or _media_type(image) or "image/png"),))
    return ToolResult((_saved(cast("Picture", image)),))


def wire_result(value: object) -> JsonObject:
    """Convert a return value to the result of `tools/call`. Raises `TypeError` if JSON cannot."""
    if type(value) is str:
        return {"content": [text_block(value)]}
    if type(value) in NUMBERS:
        return {"content": [text_block(repr(value))]}
    if value is None:
        return {"content": []}
    if isinstance(value, ToolResult):
        return _encode(value)
    if is_bytes(value):
        return {"content": [_image_of(value)]}
    return _result_of_plain(_to_plain(value))


def _result_of_plain(plain: Json) -> JsonObject:
    if isinstance(plain, str):
        return {"content": [text_block(plain)]}
    if is_object(plain):
        return _result_of_object(plain)
    if is_array(plain) and any(map(_is_block, plain)):
        return {"content": [_as_block(each) for each in plain]}
    return {"content": [text_block(_json_text(plain))]}


def _result_of_object(plain: JsonDict) -> JsonObject:
    if plain.keys() <= RESULT_KEYS and _are_blocks(plain.get("content")):
        is_error = plain.pop("is_error", False) or plain.get("isError", False)
        return {**plain, "isError": True} if is_error else plain
    if _is_block(plain):
        return {"content": [plain]}
    return {"content": [text_block(_json_text(plain))], "structuredContent": plain}


def _are_blocks(plain: Json) -> bool:
    return is_array(plain) and all(map(_is_block, plain))


def _is_block(plain: Json) -> bool:
    if not is_object(plain):
        return False
    kind = plain.get("type")
    return isinstance(kind, str) and BLOCK_KEYS.get(kind) in plain


def _as_block(plain: Json) -> JsonDict:
    """Return a block as it is, and any other value as a text block."""
    return plain if _is_block(plain) else text_block(plain_text(plain))


def _encode(result: ToolResult) -> JsonObject:
    encoded: JsonDict = {"content": [_to_plain(block) for block in result.content]}
    if result.structured is not None:
        encoded["structuredContent"] = _to_plain(result.structured)
    if result.is_error:
        encoded["isError"] = True
    if result.meta is not None:
        encoded["_meta"] = _to_plain(result.meta)
    return encoded


def text_block(text: str) -> JsonDict:
    """Return a text block."""
    return {"type": "text", "text": text}


def is_bytes(value: object) -> TypeGuard[bytes]:
    """Return whether `value` is bytes or another buffer of bytes."""
    return isinstance(value, (bytes, bytearray, memoryview))


def plain_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    plain = _to_plain(value)
    return plain if isinstance(plain, str) else _json_text(plain)


def _json_text(plain: Json) -> str:
    # msgspec writes null for inf and nan; the model should see which it is.
    if isinstance(plain, float):
        return repr(plain)
    return msgspec.json.encode(plain).decode()


def _to_plain(value: object) -> Json:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_unknown_to_plain)


def _unknown_to_plain(value: Any) -> Json:
    for kind, make_plain in PLAIN_TYPES.items():
        if isinstance(value, kind):
            return make_plain(value)
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        # Content blocks of the `mcp` package: their optional fields must be absent, not null.
        is_block = getattr(value, "type", None) in BLOCK_KEYS
        return value.model_dump(mode="json", by_alias=is_block, exclude_none=is_block)
    if _is_picture(value):
        return _saved(value)
    raise TypeError(f"a {type(value).__name__} is not a result that JSON can carry")


def _is_picture(value: object) -> TypeGuard[Picture]:
    """Return whether `value` has a `save` method that takes a format."""
    save = getattr(value.__class__, "save", None)
    try:
        return callable(save) and "format" in inspect.signature(save).parameters
    except ValueError:
        return False


def _saved(picture: Picture) -> JsonDict:
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return _image_block(file.getvalue(), "image/png")


def _image_of(data: bytes) -> JsonDict:
    media_type = _media_type(data)
    if media_type is None:
        raise TypeError("bytes are not a result; return image_result(data, media_type) or text")
    return _image_block(data, media_type)


def _image_block(data: bytes, media_type: str) -> JsonDict:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}


def _media_type(data: bytes) -> str | None:
    head = bytes(data[:12])
    for beginning, media_type in IMAGE_HEADS.items():
        if head.startswith(beginning) and (beginning != b"RIFF" or head.endswith(b"WEBP")):
            return media_type
    return None
