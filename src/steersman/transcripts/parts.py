"""A stored message as parts that can be shown: texts, thinking, tool calls and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._terminal import one_line, printable
from steersman.transcripts.stored import StoredMessage

Kind = Literal["text", "thinking", "call", "result", "other"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message. Its texts have no control or direction characters, but escapes."""

    kind: Kind
    text: str
    label: str = ""
    """The line under which the part is folded; empty for a text."""
    is_json: bool = False


def role_of(message: StoredMessage) -> str:
    """Return who wrote the message, as a heading."""
    if message.is_compact_summary:
        return "Summary of the conversation so far"
    return {"user": "User", "assistant": "Assistant"}.get(message.type, "System")


def parts_of(message: StoredMessage) -> Iterator[Part]:
    """Yield the parts of a message, in order."""
    if message.type == "system":
        content = message.entry.data.get("content")
    else:
        content = message.message.get("content")
    if isinstance(content, str):
        yield Part("text", _shown(content))
    elif _json.is_array(content):
        for block in content:
            yield _part(block) if _json.is_object(block) else _other("content", block)
    elif content is not None:
        yield _other("content", content)


def _part(block: JsonObject) -> Part:
    kind = block.get("type")
    if kind == "text":
        return Part("text", _shown(block.get("text")))
    if kind == "thinking":
        return Part("thinking", _shown(block.get("thinking")), "Thinking")
    if kind == "tool_use":
        label = f"Tool call: {one_line(str(block.get('name', '')))}"
        return Part("call", _pretty(block.get("input")), label, is_json=True)
    if kind == "tool_result":
        label = "Tool result: error" if block.get("is_error") is True else "Tool result"
        return Part("result", _result_text(block.get("content")), label)
    return _other(str(kind), block)


def _result_text(content: Json) -> str:
    if isinstance(content, str):
        return _shown(content)
    if not _json.is_array(content):
        return "" if content is None else _pretty(content)
    texts: list[str] = []
    for block in content:
        is_text = _json.is_object(block) and block.get("type") == "text"
        texts.append(_shown(block.get("text")) if is_text else _other("", block).text)
    return "\n".join(texts)


def _other(kind: str, block: Json) -> Part:
    """Return a part for what has no form of its own; images and documents without their bytes."""
    source = block.get("source") if _json.is_object(block) else None
    if _json.is_object(source) and isinstance(source.get("data"), str):
        about = f"{block.get('type')}, {source.get('media_type')}"
        text = f"[{one_line(about)}, {len(source['data'])} characters]"
        return Part("other", text, one_line(kind))
    return Part("other", _pretty(block), one_line(kind), is_json=True)


def _pretty(value: Json) -> str:
    # Not msgspec: that refuses lone surrogates, which the CLI writes.
    import json  # noqa: PLC0415 - only for exports

    try:
        return _shown(json.dumps(value, indent=2, ensure_ascii=False))
    except RecursionError:
        return "[nested too deeply]"


def _shown(text: Json) -> str:
    # Lines that end as on Windows are common in results of tools, and are no escape.
    return printable(text.replace("\r\n", "\n")) if isinstance(text, str) else ""
