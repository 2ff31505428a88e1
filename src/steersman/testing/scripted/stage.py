"""What a test holds of its scripted CLI: the script, the requests, the stalls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from steersman._json import Json, JsonDict
from steersman.testing.api_stream import with_ids
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Stall, Step
from steersman.testing.scripted.conversation import Memory
from steersman.testing.scripted.output import new_id

__all__ = ["FakeTool", "Faults", "Stage", "StartPhase"]

FakeTool = Callable[[JsonDict], Json | Awaitable[Json]]
"""Plays a built-in tool: takes its input, gives a text, or raises for a failure."""

StartPhase = Literal["first byte", "initialize", "turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What is wrong with a CLI; nothing, by default."""

    mute_at: StartPhase | None = None
    """From there on it says nothing and reads nothing, not even the end of its input."""
    exit_at: StartPhase | None = None
    exit_status: int = 1
    stderr: str = ""
    """Written at its start, or just before it exits."""
    noise: bytes = b""
    """Written on stdout as it is, such as lines that are not JSON, or one that is too long."""
    noise_at: StartPhase = "first byte"
    unanswered: frozenset[str] = frozenset()
    """Control requests, by subtype, that get no answer."""


class Stage:
    """Shared by a `ScriptedCLI` and the processes that it runs."""

    def __init__(
        self,
        script: Script,
        tools: Mapping[str, FakeTool],
        faults: Faults,
        *,
        checks_output: bool,
        retry_pace: float,
    ) -> None:
        self.script = script
        self.tools = tools
        self.faults = faults
        self.checks_output = checks_output
        self.retry_pace = retry_pace
        self.asked: list[ModelRequest] = []
        self.received: list[JsonDict] = []
        self.memory = Memory()
        self._bell = _Bell()
        self._stalls: set[asyncio.Future[None]] = set()

    def answer(self, request: ModelRequest) -> Step:
        """What the model does now; the request is remembered."""
        self.asked.append(request)
        self._bell.ring()
        return with_ids(self.script.answer(request), lambda: new_id("toolu"))

    async def wait_for_request(self, count: int, timeout: float) -> ModelRequest:
        """Wait for the request number `count`. Raises `TimeoutError`."""
        await self._bell.wait_for(
            lambda: len(self.asked) >= count, timeout, f"{count} requests to the model"
        )
        return self.asked[count - 1]

    async def stall(self, stall: Stall) -> None:
        """Wait for time to pass, or to be released."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stalls.add(waiting)
        self._bell.ring()
        try:
            await asyncio.wait([waiting], timeout=stall.seconds)
        finally:
            self._stalls.discard(waiting)

    async def wait_for_stall(self, timeout: float) -> None:
        """Wait until the model stalls. Raises `TimeoutError`."""
        await self._bell.wait_for(lambda: bool(self._stalls), timeout, "a stall")

    def release(self) -> None:
        """Let all that stalls go on."""
        for waiting in self._stalls:
            if not waiting.done():
                waiting.set_result(None)


class _Bell:
    """Wakes those who wait for something to become true."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait_for(self, is_true: Callable[[], bool], timeout: float, what: str) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not is_true():
                    rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(rung)
                    await rung
        except TimeoutError:
            raise TimeoutError(f"{what} did not come within {timeout:g} s") from None
