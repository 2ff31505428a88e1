"""One answer of the model: streams it to the host, and retries failed requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from steersman._json import JsonDict, JsonObject
from steersman.testing.api_stream import ERROR_TYPES, stream_of, usage_of, whole_message
from steersman.testing.request import ModelRequest
from steersman.testing.script import Cut, Fail, Stall, Step
from steersman.testing.scripted.host import Frame, Output, new_id
from steersman.testing.scripted.stage import Stage
from steersman.testing.scripted.usage import UsageTracker, whole_usage

Block = JsonDict

FINAL_STATUSES = frozenset({400, 403, 404, 413, 422})
"""Statuses after which the CLI does not retry."""
RETRY_NAMES: Mapping[int, str] = {
    401: "authentication_failed",
    403: "authentication_failed",
    404: "model_not_found",
    429: "rate_limit",
    529: "overloaded",
}
OVERLOADED = 529
NOT_FOUND = 404
MANY_TRIES = 3
NO_SUCH_MODEL = (
    "There's an issue with the selected model ({})."
    " It may not exist or you may not have access to it."
)
THEIR_FAULT = "This is a server-side issue, usually temporary \u2014 try again in a moment."
UNAUTHORIZED = 401
SERVER_ERRORS = 500
NEVER_USED = ("fallback_credit", "iterations", "output_tokens_details", "server_tool_use")
BROKEN_STREAMS = 2
"""After this many broken streams, the CLI requests a message without streaming."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A complete answer of the model."""

    blocks: list[Block]
    stop_reason: str | None
    message_id: str

    @property
    def text(self) -> str:
        """The last text of the answer."""
        return next((each["text"] for each in reversed(self.blocks) if "text" in each), "")

    @property
    def calls_tools(self) -> bool:
        """True if the answer contains tool calls."""
        return any(each["type"] == "tool_use" for each in self.blocks)


@dataclass(frozen=True, slots=True)
class ApiFailure:
    """A failed request to the API."""

    status: int | None
    message: str
    is_midway: bool = False
    """True if the stream had begun."""
    model: str = ""
    tries: int = 1
    """The total number of requests."""

    @property
    def is_final(self) -> bool:
        """True if a retry would fail as well."""
        return self.status in FINAL_STATUSES

    @property
    def retry_name(self) -> str:
        """The CLI's name for the failure, in `api_retry`."""
        if self.status is None:
            return "unknown"
        usual = "server_error" if self.status >= SERVER_ERRORS else "unknown"
        return RETRY_NAMES.get(self.status, usual)

    @property
    def error(self) -> str:
        """The CLI's name for the failure, in the message after the last retry."""
        return "server_error" if self.status in (None, OVERLOADED) else self.retry_name

    @property
    def text(self) -> str:
        """The text that the CLI shows to the user."""
        if self.status == UNAUTHORIZED:
            return "Invalid API key · Fix external API key"
        if self.status == NOT_FOUND:
            return NO_SUCH_MODEL.format(self.model)
        if self.status == OVERLOADED and self.tries >= MANY_TRIES:
            return "API Error: Repeated 529 Overloaded errors. The API is at capacity."
        shown = "Connection error." if self.status is None else f"{self.status} {self.message}"
        is_theirs = self.status is not None and self.status >= SERVER_ERRORS
        return f"API Error: {shown}" + (f". {THEIR_FAULT}" if is_theirs else "")

    @property
    def fields(self) -> Frame:
        """The fields of messages that describe the failure."""
        if self.status is None:
            return {"api_error_status": None}
        kind = ERROR_TYPES.get(self.status, "api_error")
        return {"api_error_status": self.status, "api_error_type": kind}


@dataclass(slots=True)
class _Message:
    """A message that is being streamed."""

    id: str
    model: str
    usage: JsonObject
    """The usage that is known when the message begins."""
    finished: list[Block] = field(default_factory=list[Block])
    request_id: str = field(default_factory=lambda: new_id("req"))
    current: Block | None = None
    written: str = ""
    """The tool input of the current block so far."""

    def start(self, block: JsonObject) -> None:
        self.current, self.written = dict(block), ""

    def grow(self, delta: JsonObject) -> None:
        assert self.current is not None
        match delta:
            case {"partial_json": str(text)}:
                self.written += text
            case {"text": str(text)}:
                self.current["text"] += text
            case {"thinking": str(text)}:
                self.current["thinking"] += text
            case {"signature": str(text)}:
                self.current["signature"] += text
            case _:
                pass

    def finish(self) -> Block:
        assert self.current is not None
        block, self.current = self.current, None
        if block["type"] == "tool_use":
            block["input"] = _parsed(self.written)
        self.finished.append(block)
        return block

    def frame(self, block: Block, stop_reason: str | None = None) -> Frame:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "stop_sequence": None,
            "content": [block],
            "stop_reason": stop_reason,
            "usage": dict(self.usage),
            "context_management": None,
        }


class Reply:
    """Requests an answer of the model, and writes it to the host while it arrives."""

    def __init__(
        self,
        stage: Stage,
        output: Output,
        usage: UsageTracker,
        *,
        on_begin: Callable[[], Frame],
        on_block: Callable[[Block], Frame],
    ) -> None:
        self._stage = stage
        self._output = output
        self._usage = usage
        self._on_begin = on_begin
        """Called before the first message; returns its fields that name the prompts."""
        self._on_block = on_block
        """Called for each finished block; returns additional fields for its message."""
        self._message: _Message | None = None
        self._opening: Frame | None = None
        self._is_opened = False

    async def play(self, request: ModelRequest) -> ModelAnswer | ApiFailure:
        """Return the model's answer, or the failure after all retries of the CLI."""
        tries, broken = 0, 0
        most = self._output.settings.max_retries
        while True:
            step = self._stage.answer(request)
            play = self._stream if broken < BROKEN_STREAMS else self._take_whole
            played = await play(step, request.model)
            if isinstance(played, ModelAnswer):
                return played
            if played.is_midway:
                # After an error event the CLI does not stream again; after a cut it does, once.
                broken += 1 if played.status is None else BROKEN_STREAMS
                if broken < BROKEN_STREAMS:
                    await self._wait(played, 1, most)
                continue
            tries += 1
            if played.is_final or tries > most:
                return replace(played, tries=tries)
            await self._wait(played, tries, most)

    @property
    def is_open(self) -> bool:
        """True while a message is being streamed."""
        return self._message is not None

    def abort(self) -> list[Block]:
        """Abort the answer: write the text so far, and return all finished blocks."""
        message = self._message
        if message is None:
            return []
        current = message.current
        if current is not None and current.get("text"):
            message.finished.append(current)
            fields = {"request_id": message.request_id, **self._begun()}
            self._output.assistant(message.frame(current), aborted=True, **fields)
        return message.finished

    def close(self) -> None:
        """Write the events that end an aborted stream."""
        message, self._message = self._message, None
        if message is None:
            return
        count = len(message.finished)
        if message.current is not None:
            index = count - (
                1 if message.finished and message.finished[-1] is message.current else 0
            )
            self._output.partial({"type": "content_block_stop", "index": index}, message.id)
        reasons = ("container", "stop_details", "stop_reason", "stop_sequence")
        usage = whole_usage(message.usage)
        event = {
            "type": "message_delta",
            "context_management": None,
            "delta": dict.fromkeys(reasons),
            "usage": {name: usage[name] for name in (*message.usage, *NEVER_USED)},
        }
        self._output.partial(event, message.id)
        self._abandon(message, count)

    async def _stream(self, step: Step, model: str) -> ModelAnswer | ApiFailure:
        message = _Message(new_id("msg"), model, {**usage_of(step), "output_tokens": 1})
        stop_reason: str | None = None
        for happening in stream_of(step, model, message.id):
            match happening:
                case Stall():
                    await self._stage.stall(happening)
                case Cut():
                    return self._break(message, ApiFailure(None, "", self.is_open, model))
                case Fail(status, text):
                    return self._break(message, ApiFailure(status, text, self.is_open, model))
                case _:
                    ended = self._pass_on(message, happening)
                    stop_reason = ended or stop_reason
        self._message = None
        return ModelAnswer(message.finished, stop_reason, message.id)

    def _pass_on(self, message: _Message, event: JsonObject) -> str | None:
        """Forward one event of the API; return the stop reason of a `message_delta`."""
        match event:
            case {"type": "ping"}:
                return None
            case {"type": "message_start"}:
                self._message = message
                opening = {} if self._is_opened else self._begun(keep=True)
                self._is_opened = True
                self._output.partial(event, message.id, ttft_ms=1, **opening)
                return None
            case {"type": "content_block_start", "content_block": dict(block)}:  # pyright: ignore[reportUnknownVariableType]
                message.start(cast("Block", block))
            case {"type": "content_block_delta", "delta": dict(delta)}:  # pyright: ignore[reportUnknownVariableType]
                message.grow(cast("Block", delta))
            case {"type": "content_block_stop"}:
                # The CLI writes the assistant message before the event that ends its block.
                self._send_block(message, message.finish())
            case {"type": "message_delta", "delta": delta, "usage": usage}:
                self._usage.add(message.model, usage)
                self._output.partial(event, message.id)
                return str(delta["stop_reason"])
            case _:
                pass
        self._output.partial(event, message.id)
        return None

    async def _take_whole(self, step: Step, model: str) -> ModelAnswer | ApiFailure:
        for part in step.parts:
            match part:
                case Stall():
                    await self._stage.stall(part)
                case Cut():
                    return ApiFailure(None, "", model=model)
                case Fail(status, text):
                    return ApiFailure(status, text, model=model)
                case _:
                    pass
        whole = whole_message(step, model, new_id("msg"))
        message = _Message(whole["id"], model, whole_usage(whole["usage"]))
        for block in whole["content"]:
            message.finished.append(block)
            self._send_block(message, block, whole["stop_reason"])
        self._usage.add(model, whole["usage"])
        return ModelAnswer(message.finished, whole["stop_reason"], message.id)

    def _send_block(self, message: _Message, block: Block, stop_reason: str | None = None) -> None:
        if block.get("text") == "":
            # The CLI writes no message for an empty text.
            return
        fields = {"request_id": message.request_id, **self._begun(), **self._on_block(block)}
        self._output.assistant(message.frame(block, stop_reason), **fields)

    def _begun(self, *, keep: bool = False) -> Frame:
        """Return the fields that name the prompts, for the first message only."""
        if self._opening is None:
            self._opening = self._on_begin()
        opening = self._opening
        if not keep:
            self._opening = {}
        return opening

    def _break(self, message: _Message, failure: ApiFailure) -> ApiFailure:
        if failure.is_midway:
            if failure.status is None:
                self._usage.add(message.model, message.usage)
            else:
                self._usage.add_unpaid(message.usage)
            if message.current is not None:
                index = len(message.finished)
                self._output.partial({"type": "content_block_stop", "index": index}, message.id)
            self._abandon(message, 0)
        self._message = None
        return failure

    def _abandon(self, message: _Message, from_index: int) -> None:
        abandoned = {"api_message_id": message.id, "from_block_index": from_index}
        self._output.partial({"type": "message_stop"}, message.id, abandoned_blocks=abandoned)

    async def _wait(self, failure: ApiFailure, attempt: int, most: int) -> None:
        delay = 0.5 * 2 ** (attempt - 1)
        self._output.system(
            "api_retry",
            attempt=attempt,
            max_retries=most,
            retry_delay_ms=int(delay * 1000),
            error_status=failure.status,
            error=failure.retry_name,
        )
        await asyncio.sleep(delay * self._stage.retry_pace)


def _parsed(written: str) -> JsonDict:
    try:
        found = json.loads(written or "{}")
    except ValueError:
        found = None
    if isinstance(found, dict):
        return cast("JsonDict", found)
    return {"__unparsedToolInput": {"raw": written, "len": len(written)}}
