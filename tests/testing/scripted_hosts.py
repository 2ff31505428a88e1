"""A minimal host for the scripted CLI: writes messages and records the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from steersman.ports import Channel, Launch
from steersman.testing.scripted.cli import ScriptedCLI

Frame = dict[str, Any]
Answer = Callable[[Frame], Any]

STATES = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}


class Host:
    """Answers requests with `answer`, unless that gives None."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.said: list[Frame] = []
        self.stderr = ""
        self.status: int | None = None
        self.channel: Channel | None = None
        self._answer = answer or (lambda _: None)
        self._grew = asyncio.Event()

    def send(self, *frames: Frame) -> None:
        assert self.channel is not None
        self.channel.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def prompt(self, content: Any, uuid: str | None = None, **fields: Any) -> None:
        named = {} if uuid is None else {"uuid": uuid}
        message = {"role": "user", "content": content}
        self.send({"type": "user", "message": message, **named, **fields})

    def request(self, subtype: str, request_id: str = "r", **fields: Any) -> None:
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": request_id, "request": request})

    def respond(self, request_id: str, response: Any) -> None:
        inside = {"subtype": "success", "request_id": request_id, "response": response}
        self.send({"type": "control_response", "response": inside})

    def refuse(self, request_id: str, error: str) -> None:
        inside = {"subtype": "error", "request_id": request_id, "error": error}
        self.send({"type": "control_response", "response": inside})

    async def ask(self, subtype: str, **fields: Any) -> Frame:
        """The response to a request."""
        request_id = f"{subtype}-{len(self.said)}"
        self.request(subtype, request_id, **fields)
        frame = await self.until(
            lambda frame: frame.get("response", {}).get("request_id") == request_id
        )
        response: Frame = frame["response"]
        return response

    async def until(self, is_it: Callable[[Frame], bool]) -> Frame:
        """Wait for a message that fits, and return the first one."""
        while True:
            for frame in self.said:
                if is_it(frame):
                    return frame
            self._grew.clear()
            await self._grew.wait()

    async def result(self, index: int = 0) -> Frame:
        return await self.until(
            lambda frame: frame["type"] == "result" and frame["result_index"] == index
        )

    async def asked(self, subtype: str, index: int = 0) -> Frame:
        """A request of the CLI's."""
        await self.until(lambda _: len(self.all_asked(subtype)) > index)
        return self.all_asked(subtype)[index]

    def all_asked(self, subtype: str) -> list[Frame]:
        return [
            frame
            for frame in self.said
            if frame["type"] == "control_request" and frame["request"]["subtype"] == subtype
        ]

    def kinds(self) -> list[str]:
        """A short name of every message so far."""
        return [_kind(frame) for frame in self.said]

    async def gone(self) -> int:
        while self.status is None:
            self._grew.clear()
            await self._grew.wait()
        return self.status

    # The receiver

    def data_received(self, data: bytes) -> None:
        for line in data.splitlines():
            frame = json.loads(line)
            self.said.append(frame)
            if frame["type"] == "control_request":
                answer = self._answer(frame["request"])
                if answer is not None:
                    self.respond(frame["request_id"], answer)
        self._grew.set()

    def stderr_received(self, data: bytes) -> None:
        self.stderr += data.decode()

    def exited(self, status: int) -> None:
        self.status = status
        self._grew.set()


@asynccontextmanager
async def hosted(
    cli: ScriptedCLI, *flags: str, answer: Answer | None = None, **initialize: Any
) -> AsyncIterator[Host]:
    """Run a CLI and initialize it; it must exit within five seconds."""
    host = Host(answer)
    launch = Launch(("claude", *flags), env=STATES, cwd="/project")
    async with asyncio.timeout(5):
        host.channel = await cli.open(launch, host)
        await host.ask("initialize", **initialize)
        host.said.clear()
        yield host
        host.channel.kill()
        await host.gone()


def _kind(frame: Frame) -> str:
    """Return the most specific type name of a message."""
    kinds: dict[str, Callable[[], Any]] = {
        "system": lambda: frame.get("state") or frame["subtype"],
        "command_lifecycle": lambda: f"{frame['command_uuid']} {frame['state']}",
        "control_request": lambda: frame["request"]["subtype"],
        "stream_event": lambda: frame["event"]["type"],
        "user": lambda: "replay" if frame.get("isReplay") else "user",
    }
    kind = str(frame["type"])
    return str(kinds[kind]()) if kind in kinds else kind
