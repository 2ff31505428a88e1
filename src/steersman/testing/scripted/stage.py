"""The state that the processes of a scripted CLI share: script, requests and stalls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from steersman._json import Json, JsonDict
from steersman.testing.api_stream import with_ids
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Stall, Step
from steersman.testing.scripted.conversation import Memory
from steersman.testing.scripted.host import new_id

FakeTool = Callable[[JsonDict], Json | Awaitable[Json]]
"""Replaces a built-in tool: takes the input and returns a text, or raises to fail."""


@dataclass(frozen=True, slots=True)
class Subagent:
    """Replaces the tool `Task`: a subagent in the foreground, which makes calls one by one.

    Its answer are their results. The CLI's own file has the call of the tool, and none of these: a
    process that is lost has lost the subagent.
    """

    calls: Callable[[JsonDict], Sequence[tuple[str, JsonDict]]]
    """Returns the names and inputs of the calls for the input of the tool."""


StartPhase = Literal["first byte", "initialize", "turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults of a scripted CLI; none by default."""

    mute_at: StartPhase | None = None
    """The phase from which on the CLI writes nothing and reads nothing, not even end of input."""
    exit_at: StartPhase | None = None
    exit_status: int = 1
    stderr: str = ""
    """Text written to stderr at the start, or just before the CLI exits."""
    noise: bytes = b""
    """Bytes written to stdout, such as lines that are not JSON or a line that is too long."""
    noise_at: StartPhase = "first byte"
    unanswered: frozenset[str] = frozenset()
    """The subtypes of control requests that get no answer."""


class Stage:
    """State shared by a `ScriptedCLI` and its processes."""

    def __init__(
        self,
        script: Script,
        tools: Mapping[str, FakeTool | Subagent],
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
        self._signal = _Signal()
        self._stalls: set[asyncio.Future[None]] = set()

    def answer(self, request: ModelRequest) -> Step:
        """Record the request and return the step that answers it."""
        self.asked.append(request)
        self._signal.notify()
        return with_ids(self.script.answer(request), lambda: new_id("toolu"))

    async def wait_for_request(self, count: int, timeout: float) -> ModelRequest:
        """Wait for request number `count` and return it. Raises `TimeoutError`."""
        await self._signal.wait_for(
            lambda: len(self.asked) >= count, timeout, f"{count} requests to the model"
        )
        return self.asked[count - 1]

    async def stall(self, stall: Stall) -> None:
        """Wait for the time of the stall, or for `release`."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stalls.add(waiting)
        self._signal.notify()
        try:
            await asyncio.wait([waiting], timeout=stall.seconds)
        finally:
            self._stalls.discard(waiting)

    async def wait_for_stall(self, timeout: float) -> None:
        """Wait until the model stalls. Raises `TimeoutError`."""
        await self._signal.wait_for(lambda: bool(self._stalls), timeout, "a stall")

    def release(self) -> None:
        """End all stalls."""
        for waiting in self._stalls:
            if not waiting.done():
                waiting.set_result(None)


class _Signal:
    """Wakes tasks that wait for a condition."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait_for(self, is_true: Callable[[], bool], timeout: float, what: str) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not is_true():
                    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(woken)
                    await woken
        except TimeoutError:
            raise TimeoutError(f"{what} did not come within {timeout:g} s") from None
