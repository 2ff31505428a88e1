"""Lines to and from one CLI, with nothing in between but a transport.

A scene sends frames and waits for frames. A wait that is in vain gives an empty frame after a
while and never raises, so that one thing missing does not hide what else there is to see.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from steersman import _json
from steersman._protocol.framing import LineFramer, Oversize
from steersman.ports import Channel
from steersman.testing.conformance.frames import (
    Fits,
    Frame,
    asks,
    blocks_of,
    is_result,
    is_type,
    part,
)
from steersman.testing.conformance.hosting import HOLD, Answers, Refusal, standard_answers
from steersman.testing.model import ScriptedModel
from steersman.testing.script import Script

__all__ = ["RawCli"]


class RawCli:
    """One CLI: what was said to it, what it said, and how it ended. Opened by `Stage.cli`."""

    def __init__(
        self, model: ScriptedModel, project: Path, patience: float, answers: Answers | None = None
    ) -> None:
        self.model = model
        self.project = project
        self.frames: list[Frame] = []
        """Everything that came, in order."""
        self.lines: list[bytes] = []
        """The same, as it came."""
        self.noise: list[str] = []
        """Lines on stdout that are no JSON objects."""
        self.stderr = ""
        self.status: int | None = None
        """How it ended; None while it runs, or if it had to be killed."""
        self._patience = patience
        self._answers: Answers = {**standard_answers(), **(answers or {})}
        self._framer = LineFramer()
        self._numbers = itertools.count(1)
        self._waiting: list[tuple[Fits, asyncio.Future[Frame]]] = []
        self._gone = asyncio.Event()
        self._channel: Channel | None = None

    # What the CLI says: the receiver of the transport

    def data_received(self, data: bytes) -> None:
        """Take a chunk of stdout and answer what it asks."""
        for line in self._framer.feed(data):
            self._take(b"" if isinstance(line, Oversize) else line)

    def stderr_received(self, data: bytes) -> None:
        """Take a chunk of stderr."""
        self.stderr += data.decode(errors="replace")

    def exited(self, status: int) -> None:
        """Learn that it is gone: nothing more will come."""
        for line in self._framer.finish():
            self._take(b"" if isinstance(line, Oversize) else line)
        self.status = status
        self._gone.set()
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

    # What we say

    def connect(self, channel: Channel) -> None:
        """Take the way to the CLI, which has just started."""
        self._channel = channel

    @property
    def pid(self) -> int:
        """The CLI's process id."""
        return 0 if self._channel is None else self._channel.pid or 0

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._channel is not None:
            self._channel.write(data)

    def send(self, frame: Mapping[str, Any]) -> None:
        """Send one frame."""
        self.write(_json.dumps(frame) + b"\n")

    def post(self, content: Any, **fields: Any) -> None:
        """Send a prompt."""
        self.send({"type": "user", "message": {"role": "user", "content": content}, **fields})

    def answer(self, asked: Frame, response: Any) -> None:
        """Answer a request of the CLI's."""
        body: Frame = {"subtype": "success", "response": response}
        if isinstance(response, Refusal):
            body = {"subtype": "error", "error": response.reason}
        body["request_id"] = asked.get("request_id", "")
        self.send({"type": "control_response", "response": body})

    def request(self, subtype: str, **fields: Any) -> str:
        """Send a control request; gives its id."""
        request_id = f"conform_{next(self._numbers)}"
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return request_id

    # What we wait for

    @property
    def here(self) -> int:
        """How many frames have come: waits can begin after them."""
        return len(self.frames)

    async def wait(self, fits: Fits, *, after: int = 0) -> Frame:
        """The first frame that fits, once it is there; an empty one if it never comes."""
        for frame in self.frames[after:]:
            if fits(frame):
                return frame
        if self._gone.is_set():
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
        """What the CLI answers to a request: `subtype`, and `response` or `error`."""
        frame = await self.wait(lambda frame: _answers_to(frame) == request_id)
        return part(frame, "response")

    async def ask(self, subtype: str, **fields: Any) -> Frame:
        """Put a control request and wait for its answer."""
        return await self.answered(self.request(subtype, **fields))

    async def greet(self, **fields: Any) -> Frame:
        """Make the handshake; gives what the CLI tells about itself."""
        return part(await self.ask("initialize", **fields), "response")

    async def settle(self) -> None:
        """Return once the CLI has read all that was written before."""
        await self.ask("mcp_status")

    async def prompt(self, content: Any, **fields: Any) -> Frame:
        """Send a prompt and wait for the next result."""
        start = self.here
        self.post(content, **fields)
        return await self.wait(is_result, after=start)

    async def asked_the_model(self, count: int) -> None:
        """Wait until the model has been asked so many times."""
        with suppress(TimeoutError):
            await asyncio.to_thread(self.model.wait_for_request, count, self._patience)

    async def release(self) -> None:
        """Let the model go on where it stalls."""
        with suppress(TimeoutError):
            await asyncio.to_thread(self.model.release, self._patience)

    # How it ends

    async def gone(self) -> int | None:
        """Wait for it to end by itself; gives its exit status, None if it does not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._gone.wait()
        return self.status

    def end_input(self) -> None:
        """Close its input."""
        if self._channel is not None:
            self._channel.end_input()

    async def end(self) -> int | None:
        """Close its input and wait for it to end."""
        self.end_input()
        return await self.gone()

    async def kill(self) -> None:
        """See it gone, whatever it is doing."""
        if self._channel is not None and not self._gone.is_set():
            self._channel.kill()
            await self._gone.wait()
            self.status = None

    # What was seen

    def of(self, type_: str, subtype: str | None = None) -> list[Frame]:
        """The frames of a type, and of a subtype if one is given."""
        return [frame for frame in self.frames if is_type(type_, subtype)(frame)]

    def asked(self, subtype: str) -> list[Frame]:
        """What the CLI asked of us, requests with their ids."""
        return [frame for frame in self.frames if asks(subtype)(frame)]

    @property
    def results(self) -> list[Frame]:
        """The results, in order."""
        return self.of("result")

    @property
    def result(self) -> Frame:
        """The last result; an empty one if none came."""
        return [{}, *self.results][-1]

    @property
    def tool_results(self) -> list[Frame]:
        """The blocks of that type, in order."""
        return [
            block
            for frame in self.of("user")
            for block in blocks_of(frame)
            if block.get("type") == "tool_result"
        ]

    @property
    def order(self) -> list[str]:
        """The frames as words, to see what came before what."""
        return [str(frame.get("subtype") or frame.get("type")) for frame in self.frames]

    @property
    def script(self) -> Script:
        """What the model plays."""
        return self.model.script


def _answers_to(frame: Frame) -> str | None:
    if frame.get("type") != "control_response":
        return None
    return part(frame, "response").get("request_id")


def _unknown(request: Frame) -> Refusal:
    return Refusal(f"unsupported request {request.get('subtype')!r}")
