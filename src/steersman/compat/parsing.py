"""Lines of the CLI to messages of the official shapes. Knows lines and shapes, no session.

A further type of message is a function here and a row in `BUILDERS`, a further system message one
in `SYSTEM_BUILDERS`, a further content block one in `BLOCK_BUILDERS`. A `KeyError` in a builder is
a field that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Struct

from steersman._json import Json, JsonDict, is_array, is_object, loads
from steersman.compat._errors import CLIJSONDecodeError, MessageParseError
from steersman.compat._shapes.messages import (
    RAW,
    AssistantMessage,
    ContentBlock,
    ConversationResetMessage,
    DeferredToolUse,
    HookEventMessage,
    Message,
    MessageOrigin,
    MirrorErrorMessage,
    RateLimitEvent,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from steersman.compat._shapes.usage import RateLimitInfo

PARTIAL = b'{"type":"stream_event",'
"""How the CLI begins the lines that are by far the most."""


class _Partial(Struct, gc=False):
    """The fields of a `stream_event` line that its message has."""

    uuid: str
    session_id: str
    event: Json
    parent_tool_use_id: str | None = None


_decode_partial = msgspec.json.Decoder(_Partial).decode


def message_from_line(line: bytes) -> Message | None:
    """Return the message on `line`, or None if the official SDK gives none for it.

    Lines that do not begin with `{` are no messages. Raises `CLIJSONDecodeError` for broken JSON
    and `MessageParseError` for a message without a field that it must have.
    """
    if line.startswith(PARTIAL) and parse_message is _parse_message:
        try:
            found = _decode_partial(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # Read in full, for the official text about what is wrong.
        else:
            # Half the time of decoding the whole line; `raw_of` does that when it is asked.
            message = StreamEvent(
                found.uuid, found.session_id, found.event, found.parent_tool_use_id
            )
            setattr(message, RAW, line)
            return message
    elif not line.lstrip().startswith(b"{"):
        return None
    try:
        data = loads(line)
    except ValueError as error:
        raise CLIJSONDecodeError(line.decode("utf-8", "replace"), error) from error
    return None if _is_for_the_host(data) else parse_message(data)


def parse_message(data: JsonDict) -> Message | None:
    """Return the message that `data` is, or None for a type that has no shape.

    Raises `MessageParseError` for a message without a field that it must have.
    """
    # A custom transport may give anything.
    if not is_object(data):
        found = type(data).__name__
        raise MessageParseError(f"Invalid message data type (expected dict, got {found})", data)
    kind = data.get("type")
    if not kind:
        raise MessageParseError("Message missing 'type' field", data)
    build = BUILDERS.get(kind) if isinstance(kind, str) else None
    if build is None:
        return None
    try:
        message = build(data)
    except KeyError as error:
        raise MessageParseError(
            f"Missing required field in {kind} message: {error}", data
        ) from error
    except TypeError as error:
        raise MessageParseError(f"Invalid {kind} message: {error}", data) from error
    setattr(message, RAW, data)
    return message


_parse_message = parse_message
"""What programs and instrumentation may replace; then it gets every message."""


def _is_for_the_host(data: JsonDict) -> bool:
    """Return whether the CLI sent `data` for the SDK alone: programs never see it."""
    is_state = data.get("subtype") == "session_state_changed" and data.get("type") == "system"
    return is_state and data.get("sdk_host_only") is True


def raw_of(message: Message) -> JsonDict:
    """Return the JSON object that the CLI sent for `message`, with every field.

    Raises `ValueError` for a message that a program made itself.
    """
    kept: bytes | JsonDict | None = getattr(message, RAW, None)
    if kept is None:
        raise ValueError("raw_of(): this message was made by the program; the CLI did not send it")
    if not isinstance(kept, bytes):
        return kept
    found: JsonDict = loads(kept)
    setattr(message, RAW, found)
    return found


BlockBuilder: TypeAlias = Callable[[JsonDict], ContentBlock]


def without_costs(message: ResultMessage) -> ResultMessage:
    """Return a result without what programs add up: costs, tokens, times, denials."""
    again = replace(
        message,
        duration_ms=0,
        duration_api_ms=0,
        num_turns=0,
        total_cost_usd=None if message.total_cost_usd is None else 0.0,
        usage=None if message.usage is None else _zeroed(message.usage),
        model_usage=None if message.model_usage is None else {},
        permission_denials=None if message.permission_denials is None else [],
    )
    setattr(again, RAW, getattr(message, RAW))
    return again


def _zeroed(value: Any) -> Any:
    """Return a JSON value with 0 for each number."""
    if is_object(value):
        return {name: _zeroed(each) for name, each in value.items()}
    if is_array(value):
        return [_zeroed(each) for each in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return 0 if is_number else value


# Content blocks


def _text(block: JsonDict) -> TextBlock:
    return TextBlock(block["text"])


def _thinking(block: JsonDict) -> ThinkingBlock:
    return ThinkingBlock(block["thinking"], block["signature"])


def _tool_use(block: JsonDict) -> ToolUseBlock:
    return ToolUseBlock(block["id"], block["name"], block["input"])


def _tool_result(block: JsonDict) -> ToolResultBlock:
    return ToolResultBlock(block["tool_use_id"], block.get("content"), block.get("is_error"))


def _server_tool_use(block: JsonDict) -> ServerToolUseBlock:
    return ServerToolUseBlock(block["id"], block["name"], block["input"])


def _server_tool_result(block: JsonDict) -> ServerToolResultBlock:
    return ServerToolResultBlock(block["tool_use_id"], block["content"])


USER_BLOCK_BUILDERS: Final[Mapping[Json, BlockBuilder]] = {
    "text": _text,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
"""The blocks of user messages that have a shape; `raw_of(message)` has the others."""

BLOCK_BUILDERS: Final[Mapping[Json, BlockBuilder]] = {
    **USER_BLOCK_BUILDERS,
    "thinking": _thinking,
    "server_tool_use": _server_tool_use,
    "advisor_tool_result": _server_tool_result,
}
"""The blocks of assistant messages that have a shape; `raw_of(message)` has the others."""


def _blocks(
    content: list[Json], builders: Mapping[Json, BlockBuilder], data: JsonDict
) -> list[ContentBlock]:
    found: list[ContentBlock] = []
    for block in content:
        if not is_object(block):
            name = type(block).__name__
            raise MessageParseError(f"Invalid content block (expected dict, got {name})", data)
        kind = block["type"]
        build = builders.get(kind) if isinstance(kind, str) else None
        if build is not None:
            found.append(build(block))
    return found


# Messages of a conversation


def _user(data: JsonDict) -> UserMessage:
    content = data["message"]["content"]
    return UserMessage(
        _blocks(content, USER_BLOCK_BUILDERS, data) if is_array(content) else content,
        data.get("uuid"),
        data.get("parent_tool_use_id"),
        data.get("tool_use_result"),
        _origin(data),
    )


def _assistant(data: JsonDict) -> AssistantMessage:
    body = data["message"]
    content = body["content"]
    if not is_array(content):
        name = type(content).__name__
        raise MessageParseError(f"Invalid assistant content (expected list, got {name})", data)
    return AssistantMessage(
        _blocks(content, BLOCK_BUILDERS, data),
        body["model"],
        data.get("parent_tool_use_id"),
        data.get("error"),
        body.get("usage"),
        body.get("id"),
        body.get("stop_reason"),
        data.get("session_id"),
        data.get("uuid"),
    )


def _result(data: JsonDict) -> ResultMessage:
    deferred = data.get("deferred_tool_use")
    return ResultMessage(
        subtype=data["subtype"],
        duration_ms=data["duration_ms"],
        duration_api_ms=data["duration_api_ms"],
        is_error=data["is_error"],
        num_turns=data["num_turns"],
        session_id=data["session_id"],
        stop_reason=data.get("stop_reason"),
        total_cost_usd=data.get("total_cost_usd"),
        usage=data.get("usage"),
        result=data.get("result"),
        structured_output=data.get("structured_output"),
        model_usage=data.get("modelUsage"),
        permission_denials=data.get("permission_denials"),
        deferred_tool_use=_deferred(deferred) if deferred else None,
        errors=data.get("errors"),
        api_error_status=data.get("api_error_status"),
        uuid=data.get("uuid"),
        terminal_reason=data.get("terminal_reason"),
        origin=_origin(data),
    )


def _deferred(call: JsonDict) -> DeferredToolUse:
    return DeferredToolUse(call["id"], call["name"], call["input"])


def _stream_event(data: JsonDict) -> StreamEvent:
    return StreamEvent(
        data["uuid"], data["session_id"], data["event"], data.get("parent_tool_use_id")
    )


def _rate_limit(data: JsonDict) -> RateLimitEvent:
    info = data["rate_limit_info"]
    return RateLimitEvent(
        RateLimitInfo(
            status=info["status"],
            resets_at=info.get("resetsAt"),
            rate_limit_type=info.get("rateLimitType"),
            utilization=info.get("utilization"),
            overage_status=info.get("overageStatus"),
            overage_resets_at=info.get("overageResetsAt"),
            overage_disabled_reason=info.get("overageDisabledReason"),
            raw=info,
        ),
        data["uuid"],
        data["session_id"],
    )


def _conversation_reset(data: JsonDict) -> ConversationResetMessage:
    return ConversationResetMessage(data["new_conversation_id"], data["uuid"], data["session_id"])


def _origin(data: JsonDict) -> MessageOrigin | None:
    origin = data.get("origin")
    if is_object(origin) and isinstance(origin.get("kind"), str):
        return cast("MessageOrigin", origin)
    return None


# System messages


def _system(data: JsonDict) -> SystemMessage:
    subtype = data["subtype"]
    build = SYSTEM_BUILDERS.get(subtype) if isinstance(subtype, str) else None
    return SystemMessage(subtype, data) if build is None else build(data)


def _task_started(data: JsonDict) -> TaskStartedMessage:
    return TaskStartedMessage(
        data["subtype"],
        data,
        data["task_id"],
        data["description"],
        data["uuid"],
        data["session_id"],
        data.get("tool_use_id"),
        data.get("task_type"),
    )


def _task_progress(data: JsonDict) -> TaskProgressMessage:
    return TaskProgressMessage(
        data["subtype"],
        data,
        data["task_id"],
        data["description"],
        data["usage"],
        data["uuid"],
        data["session_id"],
        data.get("tool_use_id"),
        data.get("last_tool_name"),
    )


def _task_notification(data: JsonDict) -> TaskNotificationMessage:
    return TaskNotificationMessage(
        data["subtype"],
        data,
        data["task_id"],
        data["status"],
        data["output_file"],
        data["summary"],
        data["uuid"],
        data["session_id"],
        data.get("tool_use_id"),
        data.get("usage"),
    )


def _task_updated(data: JsonDict) -> TaskUpdatedMessage:
    given = data.get("patch")
    patch = given if is_object(given) else {}
    return TaskUpdatedMessage(
        data["subtype"],
        data,
        data.get("task_id", ""),
        patch,
        patch.get("status"),
        data.get("session_id"),
        data.get("uuid"),
    )


def _mirror_error(data: JsonDict) -> MirrorErrorMessage:
    return MirrorErrorMessage(data["subtype"], data, data.get("key"), data.get("error", ""))


def _hook_event(data: JsonDict) -> HookEventMessage:
    name = data.get("hook_event") or data.get("hook_name") or data.get("hook_event_name") or ""
    return HookEventMessage(data["subtype"], data, name, data.get("session_id"), data.get("uuid"))


SYSTEM_BUILDERS: Final[Mapping[str, Callable[[JsonDict], SystemMessage]]] = {
    "task_started": _task_started,
    "task_progress": _task_progress,
    "task_notification": _task_notification,
    "task_updated": _task_updated,
    "mirror_error": _mirror_error,
    "hook_started": _hook_event,
    "hook_response": _hook_event,
}
"""System messages with fields of their own; every other one is a plain `SystemMessage`."""

BUILDERS: Final[Mapping[str, Callable[[JsonDict], Message]]] = {
    "stream_event": _stream_event,
    "assistant": _assistant,
    "user": _user,
    "system": _system,
    "result": _result,
    "rate_limit_event": _rate_limit,
    "conversation_reset": _conversation_reset,
}
"""What makes the message of each type; lines of other types are no messages."""
