"""What a tool returned, as the result that goes on the wire.

Takes any Python value; gives MCP's `content`, `structuredContent` and `isError`.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec

from steersman._json import is_array, is_object
from steersman.ports import JsonObject

__all__ = ["ToolError", "ToolResult", "error_result", "image_result", "text_result", "wire_result"]

BLOCK_KEYS = {
    "text": "text",
    "image": "data",
    "audio": "data",
    "resource": "resource",
    "resource_link": "uri",
}
"""The types of content block, each with the key that it cannot be without."""

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


def text_result(text: str) -> ToolResult:
    """Give text back."""
    return ToolResult((_text_block(text),))


def error_result(text: str) -> ToolResult:
    """Tell the model that it did not work, and why."""
    return ToolResult((_text_block(text),), is_error=True)


def image_result(data: bytes, media_type: str = "image/png") -> ToolResult:
    """Show the model an image."""
    encoded = base64.b64encode(data).decode()
    return ToolResult(({"type": "image", "data": encoded, "mimeType": media_type},))


def wire_result(value: object) -> JsonObject:
    """Spell what a tool returned as the wire does; raises `TypeError` if JSON cannot carry it."""
    if type(value) is str:
        return {"content": [_text_block(value)]}
    if value is None:
        return {"content": []}
    if isinstance(value, ToolResult):
        return _spell(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("bytes are not a result; return image_result(data, media_type) or text")
    return _result_of_plain(_to_plain(value))


def _result_of_plain(plain: Any) -> JsonObject:
    if isinstance(plain, str):
        return {"content": [_text_block(plain)]}
    if is_object(plain):
        return _result_of_object(plain)
    if plain and _are_blocks(plain):
        return {"content": plain}
    return {"content": [_text_block(_json_text(plain))]}


def _result_of_object(plain: dict[str, Any]) -> JsonObject:
    if plain.keys() <= RESULT_KEYS and _are_blocks(plain.get("content")):
        is_error = plain.pop("is_error", False) or plain.get("isError", False)
        return {**plain, "isError": True} if is_error else plain
    if _is_block(plain):
        return {"content": [plain]}
    return {"content": [_text_block(_json_text(plain))], "structuredContent": plain}


def _are_blocks(plain: Any) -> bool:
    return is_array(plain) and all(map(_is_block, plain))


def _is_block(plain: Any) -> bool:
    if not is_object(plain):
        return False
    kind = plain.get("type")
    return isinstance(kind, str) and BLOCK_KEYS.get(kind) in plain


def _spell(result: ToolResult) -> JsonObject:
    spelled: dict[str, Any] = {"content": [_to_plain(block) for block in result.content]}
    if result.structured is not None:
        spelled["structuredContent"] = _to_plain(result.structured)
    if result.is_error:
        spelled["isError"] = True
    if result.meta is not None:
        spelled["_meta"] = _to_plain(result.meta)
    return spelled


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


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
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} is not a result that JSON can carry")
