"""What a tool returned, as the result that goes on the wire.

Takes any Python value; gives MCP's `content`, `structuredContent` and `isError`.
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

from steersman._json import is_array, is_object
from steersman.ports import JsonObject

__all__ = [
    "Picture",
    "ToolError",
    "ToolResult",
    "error_result",
    "image_result",
    "is_bytes",
    "plain_text",
    "text_block",
    "text_result",
    "wire_result",
]

BLOCK_KEYS = {
    "text": "text",
    "image": "data",
    "audio": "data",
    "resource": "resource",
    "resource_link": "uri",
}
"""The types of content block, each with the key that it cannot be without."""

IMAGE_HEADS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How the files begin that the API takes for images."""

NUMBERS = frozenset({int, float})

RESULT_KEYS = frozenset({"content", "isError", "is_error", "structuredContent", "_meta"})

# What msgspec does not take for its base: subclasses, other mappings, paths.
PLAIN_TYPES: dict[type[Any], Callable[[Any], Any]] = {
    str: str.__str__,
    int: int,
    float: float,
    Mapping: dict,
    PurePath: str,
}


class ToolError(Exception):
    """Raise it in a tool: the model reads its text as it is, and nothing is logged as a failure."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives back, when a plain value does not say enough."""

    content: Sequence[JsonObject] = ()
    """MCP content blocks."""
    structured: JsonObject | None = None
    """The same as an object; the CLI shows the model this in place of the content."""
    is_error: bool = False
    meta: JsonObject | None = None
    """Passed on in `tool_use_result._meta`; the model does not see it."""


class Picture(Protocol):
    """An image as Pillow has them, and others that can be saved likewise."""

    def save(self, fp: Any, /, format: str) -> Any:  # noqa: A002 - Pillow's own word
        """Write it into an open file."""
        ...


def text_result(text: str) -> ToolResult:
    """Give text back."""
    return ToolResult((text_block(text),))


def error_result(text: str) -> ToolResult:
    """Tell the model that it did not work, and why."""
    return ToolResult((text_block(text),), is_error=True)


def image_result(image: bytes | Picture, media_type: str | None = None) -> ToolResult:
    """Show the model an image: the bytes of a file, or a picture such as Pillow's.

    The type of bytes is read from their beginning unless it is given.
    """
    if is_bytes(image):
        return ToolResult((_image_block(image, media_type or _media_type(image) or "image/png"),))
    return ToolResult((_saved(cast("Picture", image)),))


def wire_result(value: object) -> JsonObject:
    """Spell what a tool returned as the wire does; raises `TypeError` if JSON cannot carry it."""
    if type(value) is str:
        return {"content": [text_block(value)]}
    if type(value) in NUMBERS:
        return {"content": [text_block(repr(value))]}
    if value is None:
        return {"content": []}
    if isinstance(value, ToolResult):
        return _spell(value)
    if is_bytes(value):
        return {"content": [_shown(value)]}
    return _result_of_plain(_to_plain(value))


def _result_of_plain(plain: Any) -> JsonObject:
    if isinstance(plain, str):
        return {"content": [text_block(plain)]}
    if is_object(plain):
        return _result_of_object(plain)
    if is_array(plain) and any(map(_is_block, plain)):
        return {"content": [_as_block(each) for each in plain]}
    return {"content": [text_block(_json_text(plain))]}


def _result_of_object(plain: dict[str, Any]) -> JsonObject:
    if plain.keys() <= RESULT_KEYS and _are_blocks(plain.get("content")):
        is_error = plain.pop("is_error", False) or plain.get("isError", False)
        return {**plain, "isError": True} if is_error else plain
    if _is_block(plain):
        return {"content": [plain]}
    return {"content": [text_block(_json_text(plain))], "structuredContent": plain}


def _are_blocks(plain: Any) -> bool:
    return is_array(plain) and all(map(_is_block, plain))


def _is_block(plain: Any) -> bool:
    if not is_object(plain):
        return False
    kind = plain.get("type")
    return isinstance(kind, str) and BLOCK_KEYS.get(kind) in plain


def _as_block(plain: Any) -> dict[str, Any]:
    """Text and values beside blocks are blocks of text."""
    return plain if _is_block(plain) else text_block(plain_text(plain))


def _spell(result: ToolResult) -> JsonObject:
    spelled: dict[str, Any] = {"content": [_to_plain(block) for block in result.content]}
    if result.structured is not None:
        spelled["structuredContent"] = _to_plain(result.structured)
    if result.is_error:
        spelled["isError"] = True
    if result.meta is not None:
        spelled["_meta"] = _to_plain(result.meta)
    return spelled


def text_block(text: str) -> dict[str, Any]:
    """One block of content that is text."""
    return {"type": "text", "text": text}


def is_bytes(value: object) -> TypeGuard[bytes]:
    """Tell bytes, in whatever buffer, from everything else."""
    return isinstance(value, (bytes, bytearray, memoryview))


def plain_text(value: object) -> str:
    """Spell any value as text: as it is, or as JSON."""
    plain = _to_plain(value)
    return plain if isinstance(plain, str) else _json_text(plain)


def _json_text(plain: Any) -> str:
    # msgspec writes null for numbers that JSON does not have; the model should see which.
    if isinstance(plain, float):
        return repr(plain)
    return msgspec.json.encode(plain).decode()


def _to_plain(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_foreign_to_plain)


def _foreign_to_plain(value: Any) -> Any:
    for kind, make_plain in PLAIN_TYPES.items():
        if isinstance(value, kind):
            return make_plain(value)
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        # The blocks of the `mcp` package: MCP has no word for what is left out.
        is_block = getattr(value, "type", None) in BLOCK_KEYS
        return value.model_dump(mode="json", by_alias=is_block, exclude_none=is_block)
    if _is_picture(value):
        return _saved(value)
    raise TypeError(f"a {type(value).__name__} is not a result that JSON can carry")


def _is_picture(value: Any) -> TypeGuard[Picture]:
    """Tell a picture from things that save themselves elsewhere: it takes a format."""
    save = getattr(value.__class__, "save", None)
    try:
        return callable(save) and "format" in inspect.signature(save).parameters
    except ValueError:
        return False


def _saved(picture: Picture) -> dict[str, Any]:
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return _image_block(file.getvalue(), "image/png")


def _shown(data: bytes) -> dict[str, Any]:
    media_type = _media_type(data)
    if media_type is None:
        raise TypeError("bytes are not a result; return image_result(data, media_type) or text")
    return _image_block(data, media_type)


def _image_block(data: bytes, media_type: str) -> dict[str, Any]:
    return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": media_type}


def _media_type(data: bytes) -> str | None:
    head = bytes(data[:12])
    for beginning, media_type in IMAGE_HEADS.items():
        if head.startswith(beginning) and (beginning != b"RIFF" or head.endswith(b"WEBP")):
            return media_type
    return None
