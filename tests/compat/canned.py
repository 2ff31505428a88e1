"""A transport of the official form that answers by itself, under asyncio and under trio."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import anyio

from steersman.compat import AssistantMessage, Message, ResultMessage, TextBlock, Transport

Line = dict[str, Any]
Answer = Callable[[Line, int], Iterable[Line | Exception | None]]

ENDS = None
"""In an answer: the transport has no more messages."""


def text_line(text: str) -> Line:
    """Return an assistant message."""
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "model": "canned", "content": content}
    return {"type": "assistant", "message": message, "session_id": "s1"}


def result(text: str, **fields: Any) -> Line:
    """Return a result."""
    line = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s1"}
    counts = {"duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
    return {**line, **counts, "result": text, **fields}


def answer(_prompt: Line, number: int) -> Iterable[Line | Exception | None]:
    """Answer a prompt with a text and a result."""
    yield {"type": "system", "subtype": "init", "session_id": "s1"}
    yield text_line(f"answer {number}")
    yield result(f"answer {number}")


class Canned(Transport):
    """Answers `initialize`, every control request and every prompt; keeps what was written."""

    def __init__(self, answer: Answer = answer, *, ends: bool = True) -> None:
        self.calls: list[str] = []
        """What was called, without `write`."""
        self.prompts: list[Line] = []
        self.requests: list[Line] = []
        self.responses: list[Line] = []
        self.refused: dict[str, str] = {}
        """Control requests that are refused, and the reason."""
        self.raises: dict[str, BaseException] = {}
        """What a method raises."""
        self._answer = answer
        self._ends = ends
        """Whether the messages end with the input."""

    async def connect(self) -> None:
        self.calls.append("connect")
        self._raise("connect")
        self.say, self._heard = anyio.create_memory_object_stream[Any](math.inf)

    async def write(self, data: str) -> None:
        assert data.endswith("\n")
        line = json.loads(data)
        if line["type"] == "control_request":
            self.requests.append(line["request"])
            self.say.send_nowait(self._response(line))
        elif line["type"] == "control_response":
            self.responses.append(line["response"])
        else:
            self._raise("write")
            self.prompts.append(line)
            for each in self._answer(line, len(self.prompts)):
                self.say.send_nowait(each)

    def read_messages(self) -> AsyncIterator[Line]:
        return self._read()

    async def _read(self) -> AsyncIterator[Line]:
        async for line in self._heard:
            if line is ENDS:
                return
            if isinstance(line, BaseException):
                raise line
            yield line

    async def close(self) -> None:
        self.calls.append("close")
        self.say.close()
        self._heard.close()
        self._raise("close")

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        self.calls.append("end_input")
        if self._ends:
            self.say.send_nowait(ENDS)

    def _raise(self, method: str) -> None:
        if method in self.raises:
            raise self.raises[method]

    def _response(self, line: Line) -> Line:
        subtype = line["request"]["subtype"]
        about = {"request_id": line["request_id"]}
        if subtype in self.refused:
            response = {"subtype": "error", "error": self.refused[subtype], **about}
        else:
            response = {"subtype": "success", "response": {"asked": subtype}, **about}
        return {"type": "control_response", "response": response}


def user(text: str, **fields: Any) -> Line:
    """Return a user message, as programs yield them."""
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def texts(messages: Iterable[Message]) -> list[str]:
    """Return the text of each message of the model."""
    return [
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    ]


def is_result(message: Message) -> bool:
    """Whether a message is a result."""
    return isinstance(message, ResultMessage)
