"""Messages to and from one CLI, without a session.

A scene sends messages and waits for messages. A wait that times out returns an empty message and
does not raise, so that one missing message does not hide other observations.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._protocol.framing import LineFramer, Oversize
from steersman.ports import Channel
from steersman.testing.model import ScriptedModel
from steersman.testing.script import Script
from steersman_conformance.frames import (
    Fits,
    Frame,
    asks,
    blocks_of,
    is_result,
    is_type,
    part,
)
from steersman_conformance.hosting import HOLD, Answers, Refusal, standard_answers

__all__ = ["RawCli"]


class RawCli:
    """One running CLI, with its messages and its exit status. Opened by `Stage.cli`."""

    def __init__(
        self, model: ScriptedModel, project: Path, patience: float, answers: Answers | None = None
    ) -> None:
        self.model = model
        self.project = project
        self.frames: list[Frame] = []
        """All messages from the CLI, in order."""
        self.lines: list[bytes] = []
        """The lines of these messages, as bytes."""
        self.noise: list[str] = []
        """Lines on stdout that are not JSON objects."""
        self.stderr = ""
        self.status: int | None = None
        """The exit status; None while the CLI runs, or if it was killed."""
        self._patience = patience
        self._answers: Answers = {**standard_answers(), **(answers or {})}
        self._framer = LineFramer()
        self._numbers = itertools.count(1)
        self._waiting: list[tuple[Fits, asyncio.Future[Frame]]] = []
        self._exited = asyncio.Event()
        self._channel: Channel | None = None

    # The receiver of the transport

    def data_received(self, data: bytes) -> None:
        """Read a chunk of stdout and answer its control requests."""
        for line in self._framer.feed(data):
            self._take(b"" if isinstance(line, Oversize) else line)

    def stderr_received(self, data: bytes) -> None:
        """Read a chunk of stderr."""
        self.stderr += data.decode(errors="replace")

    def exited(self, status: int) -> None:
        """Record the exit status, and end all waits."""
        for line in self._framer.finish():
            self._take(b"" if isinstance(line, Oversize) else line)
        self.status = status
        self._exited.set()
        for _, future in self._waiting:
            if not future.done():
                future.set_result({})

    def _take(self, line: bytes) -> None:
        try:
            frame = _json.loads(line)
        except ValueError:
            frame = None
        if not _json.is_object(frame):
            self.noise.append(line.decode(errors="replace"))
            return
        self.frames.append(frame)
        self.lines.append(line)
        for fits, future in self._waiting:
            if not future.done() and fits(frame):
                future.set_result(frame)
        if frame.get("type") == "control_request":
            self._serve(frame)

    def _serve(self, asked: Frame) -> None:
        request = part(asked, "request")
        answer = self._answers.get(str(request.get("subtype")), _unknown)(request)
        if answer is not HOLD:
            self.answer(asked, answer)

    # Sending

    def connect(self, channel: Channel) -> None:
        """Set the channel of the CLI, which has just started."""
        self._channel = channel

    @property
    def pid(self) -> int:
        """The CLI's process id."""
        return 0 if self._channel is None else self._channel.pid or 0

    def write(self, data: bytes) -> None:
        """Send bytes unchanged."""
        if self._channel is not None:
            self._channel.write(data)

    def send(self, frame: JsonObject) -> None:
        """Send one message."""
        self.write(_json.dumps(frame) + b"\n")

    def post(self, content: Json, **fields: Json) -> None:
        """Send a prompt."""
        self.send({"type": "user", "message": {"role": "user", "content": content}, **fields})

    def answer(self, asked: Frame, response: Json) -> None:
        """Answer a control request of the CLI."""
        body: Frame = {"subtype": "success", "response": response}
        if isinstance(response, Refusal):
            body = {"subtype": "error", "error": response.reason}
        body["request_id"] = asked.get("request_id", "")
        self.send({"type": "control_response", "response": body})

    def request(self, subtype: str, **fields: Json) -> str:
        """Send a control request and return its id."""
        request_id = f"conform_{next(self._numbers)}"
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return request_id

    # Waiting

    @property
    def here(self) -> int:
        """The number of messages so far, as a start for later waits."""
        return len(self.frames)

    async def wait(self, fits: Fits, *, after: int = 0) -> Frame:
        """Wait for a message that fits and return the first one; an empty one after a timeout."""
        for frame in self.frames[after:]:
            if fits(frame):
                return frame
        if self._exited.is_set():
            return {}
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        entry = (fits, future)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(self._patience):
                return await future
        except TimeoutError:
            return {}
        finally:
            self._waiting.remove(entry)

    async def answered(self, request_id: str) -> Frame:
        """Wait for the answer to a request: `subtype`, and `response` or `error`."""
        frame = await self.wait(lambda frame: _answers_to(frame) == request_id)
        return part(frame, "response")

    async def ask(self, subtype: str, **fields: Json) -> Frame:
        """Send a control request and return its answer."""
        return await self.answered(self.request(subtype, **fields))

    async def initialize(self, **fields: Json) -> Frame:
        """Send `initialize` and return the response."""
        return part(await self.ask("initialize", **fields), "response")

    async def settle(self) -> None:
        """Wait until the CLI has read everything that was sent before."""
        await self.ask("mcp_status")

    async def prompt(self, content: Json, **fields: Json) -> Frame:
        """Send a prompt and wait for the next result."""
        start = self.here
        self.post(content, **fields)
        return await self.wait(is_result, after=start)

    async def asked_the_model(self, count: int) -> None:
        """Wait until the model has received `count` requests."""
        with suppress(TimeoutError):
            await asyncio.to_thread(self.model.wait_for_request, count, self._patience)

    async def release(self) -> None:
        """End the stalls of the model."""
        with suppress(TimeoutError):
            await asyncio.to_thread(self.model.release, self._patience)

    # The end

    async def wait_exited(self) -> int | None:
        """Wait for the CLI to exit, and return the exit status; None after a timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._exited.wait()
        return self.status

    def end_input(self) -> None:
        """Close stdin of the CLI."""
        if self._channel is not None:
            self._channel.end_input()

    async def end(self) -> int | None:
        """Close stdin and wait for the CLI to exit."""
        self.end_input()
        return await self.wait_exited()

    async def kill(self) -> None:
        """Kill the CLI if it still runs."""
        if self._channel is not None and not self._exited.is_set():
            self._channel.kill()
            await self._exited.wait()
            self.status = None

    # Observations

    def of(self, type_: str, subtype: str | None = None) -> list[Frame]:
        """Return the messages of a type, and of a subtype if one is given."""
        return [frame for frame in self.frames if is_type(type_, subtype)(frame)]

    def asked(self, subtype: str) -> list[Frame]:
        """Return the control requests of the CLI with this subtype."""
        return [frame for frame in self.frames if asks(subtype)(frame)]

    @property
    def results(self) -> list[Frame]:
        """The results, in order."""
        return self.of("result")

    @property
    def result(self) -> Frame:
        """The last result; an empty one if there is none."""
        return [{}, *self.results][-1]

    @property
    def tool_results(self) -> list[Frame]:
        """The `tool_result` blocks, in order."""
        return [
            block
            for frame in self.of("user")
            for block in blocks_of(frame)
            if block.get("type") == "tool_result"
        ]

    @property
    def order(self) -> list[str]:
        """The subtypes or types of the messages, in order."""
        return [str(frame.get("subtype") or frame.get("type")) for frame in self.frames]

    @property
    def script(self) -> Script:
        """The script of the model."""
        return self.model.script


def _answers_to(frame: Frame) -> str | None:
    if frame.get("type") != "control_response":
        return None
    return part(frame, "response").get("request_id")


def _unknown(request: Frame) -> Refusal:
    return Refusal(f"unsupported request {request.get('subtype')!r}")
