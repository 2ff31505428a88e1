"""Turns script steps into what the Messages API sends.

A `Step` becomes the events of a stream or one whole message. Pure: ids come in as arguments, and
a stall, a cut or a failure, which is not an event, is yielded for the caller to carry out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from steersman._json import JsonDict, JsonObject
from steersman.testing.script import (
    Cut,
    Fail,
    Part,
    Stall,
    Step,
    Text,
    Thinking,
    ToolUse,
    Usage,
    chunked,
)

__all__ = [
    "Event",
    "error_body",
    "estimated_tokens",
    "stream_of",
    "whole_message",
    "with_ids",
]

Event = JsonObject

ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}

CHARACTERS_PER_TOKEN = 4


def stream_of(step: Step, model: str, message_id: str) -> Iterator[Event | Stall | Cut | Fail]:
    """Yield the events of a step's stream, and its stalls, cuts and failures between them.

    No event comes before the first content, so that a failure can still be an HTTP status.
    Consecutive text parts are one block, which stays open until another block begins.
    """
    opening: list[Event] = [
        {"type": "message_start", "message": empty_message(step, model, message_id)},
        {"type": "ping"},
    ]
    for happening in content_of(step.parts):
        if isinstance(happening, Stall | Cut | Fail):
            yield happening
        else:
            yield from opening
            opening = []
            yield happening
        if isinstance(happening, Cut | Fail):
            return
    yield from opening
    yield {"type": "message_delta", "delta": ending_of(step), "usage": usage_of(step)}
    yield {"type": "message_stop"}


def whole_message(step: Step, model: str, message_id: str) -> JsonDict:
    """Return a step as one message, for a client that does not stream."""
    return {
        **empty_message(step, model, message_id),
        **ending_of(step),
        "content": [whole_block(part) for part in joined(step.parts)],
        "usage": usage_of(step),
    }


def error_body(failure: Fail) -> JsonDict:
    """Return a failure as an error body, which is also an event of a stream."""
    error = {"type": ERROR_TYPES.get(failure.status, "api_error"), "message": failure.message}
    return {"type": "error", "error": error}


def with_ids(step: Step, new_id: Callable[[], str]) -> Step:
    """Return the step with an id for every tool call that has none."""
    parts = (
        replace(part, id=new_id()) if isinstance(part, ToolUse) and part.id is None else part
        for part in step.parts
    )
    return replace(step, parts=tuple(parts))


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text; at least one, so that every answer has a cost."""
    return 1 + len(text) // CHARACTERS_PER_TOKEN


def content_of(parts: Iterable[Part]) -> Iterator[Event | Stall | Cut | Fail]:
    index, current = -1, None
    for part in parts:
        if isinstance(part, Stall | Cut | Fail):
            yield part
            continue
        if not (isinstance(part, Text) and isinstance(current, Text)):
            if current:
                yield {"type": "content_block_stop", "index": index}
            index, current = index + 1, part
            yield {"type": "content_block_start", "index": index, "content_block": empty(part)}
        for delta in deltas_of(part):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
    if current:
        yield {"type": "content_block_stop", "index": index}


def deltas_of(part: Text | Thinking | ToolUse) -> Iterator[Event]:
    match part:
        case Text(chunks):
            yield from ({"type": "text_delta", "text": chunk} for chunk in chunks)
        case Thinking(text, signature):
            yield {"type": "thinking_delta", "thinking": text}
            yield {"type": "signature_delta", "signature": signature}
        case ToolUse():
            chunks = ("", *chunked(input_text(part), 2))
            yield from ({"type": "input_json_delta", "partial_json": chunk} for chunk in chunks)


def empty(part: Text | Thinking | ToolUse) -> Event:
    match part:
        case Text():
            return {"type": "text", "text": ""}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse(name, id=id_):
            return {"type": "tool_use", "id": id_, "name": name, "input": {}}


def whole_block(part: Text | Thinking | ToolUse) -> Event:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolUse():
            return {**empty(part), "input": part.input}


def joined(parts: Iterable[Part]) -> Iterator[Text | Thinking | ToolUse]:
    """Yield the content among the parts, with consecutive text parts joined."""
    waiting: Text | None = None
    for part in parts:
        if isinstance(part, Text):
            waiting = Text((*waiting.chunks, *part.chunks)) if waiting else part
        elif isinstance(part, Thinking | ToolUse):
            if waiting:
                yield waiting
            waiting = None
            yield part
    if waiting:
        yield waiting


def empty_message(step: Step, model: str, message_id: str) -> JsonDict:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage_of(step), "output_tokens": 1},
    }


def ending_of(step: Step) -> JsonDict:
    calls_a_tool = any(isinstance(part, ToolUse) for part in step.parts)
    usual = "tool_use" if calls_a_tool else "end_turn"
    return {"stop_reason": step.stop_reason or usual, "stop_sequence": None}


def usage_of(step: Step) -> dict[str, int]:
    usage = step.usage or Usage()
    written = "".join(text_in(part) for part in step.parts)
    estimate = estimated_tokens(written)
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": estimate if usage.output_tokens is None else usage.output_tokens,
    }


def text_in(part: Part) -> str:
    if isinstance(part, ToolUse):
        return input_text(part)
    return part.text if isinstance(part, Text | Thinking) else ""


def input_text(tool_use: ToolUse) -> str:
    return tool_use.input if isinstance(tool_use.input, str) else json.dumps(tool_use.input)
