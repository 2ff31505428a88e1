"""The watchdog, with scripted CLIs and a virtual clock, so that no test waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

import pytest

from steersman.errors import Stalled
from steersman.journal import Kind, TurnResult
from steersman.options import Watchdog
from steersman.permissions import Allow, PermissionContext
from steersman.testing.faults import VirtualClockLoop
from tests._session.peers import Frame, FramePeer, answer_to, entries_of, lifecycle, opened, result

T = TypeVar("T")
Given = TypeVarTuple("Given")

LIMITS = Watchdog(
    first_token=10.0, between_events=20.0, message=60.0, tool=30.0, retry=40.0, interrupt=5.0
)
MINUTES = 3600.0


def in_virtual_time(doing: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(doing)


def started(uuid: str) -> Frame:
    return lifecycle(uuid, "started")


def partial() -> Frame:
    delta = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "x"},
    }
    return {"type": "stream_event", "event": delta, "parent_tool_use_id": None}


def tool_call(tool_use_id: str = "toolu_1") -> Frame:
    block: Frame = {"type": "tool_use", "id": tool_use_id, "name": "Bash", "input": {}}
    message: Frame = {"id": "msg_1", "role": "assistant", "content": [block]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def tool_result(tool_use_id: str = "toolu_1") -> Frame:
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": "x"}
    message = {"role": "user", "content": [block]}
    return {"type": "user", "message": message, "parent_tool_use_id": None}


def retry(seconds: float) -> Frame:
    fields = {"attempt": 1, "max_retries": 10, "error_status": 529, "error": "overloaded"}
    return {"type": "system", "subtype": "api_retry", "retry_delay_ms": seconds * 1000, **fields}


class Silent:
    """Sends `frames` after a prompt, and then nothing; with `obeys`, answers an interrupt."""

    def __init__(self, *frames: Frame, obeys: bool = True) -> None:
        self._frames = frames
        self._obeys = obeys

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(started(frame["uuid"]), *self._frames)
        elif frame.get("request", {}).get("subtype") == "interrupt" and self._obeys:
            uuid = peer.sent("user")[0]["uuid"]
            stopped: Frame = {"is_error": True, "terminal_reason": "aborted_streaming"}
            peer.say(answer_to(frame, {"still_queued": []}), result([uuid], **stopped))


async def watched(play: Any, **options: Any) -> tuple[TurnResult, list[dict[str, Any]], float]:
    """Run a turn; return its result, the details of `STALLED` entries, and its duration."""
    limits = {"watchdog": LIMITS, "revive": False, **options}
    async with opened(FramePeer(play).transport, limit=MINUTES, **limits) as session:
        before = asyncio.get_running_loop().time()
        settled = await (await session.send("go"))
        took = asyncio.get_running_loop().time() - before
    entries = await entries_of(session)
    return settled, [dict(each.details) for each in entries if each.kind is Kind.STALLED], took


@pytest.mark.parametrize(
    ("frames", "phase", "limit", "last"),
    [
        ([], "first_token", 10.0, "the start"),
        ([partial()], "between_events", 20.0, "stream_event"),
        ([tool_call()], "tool", 30.0, "assistant"),
        # The last `stream_event` lines arrive after the tool call.
        ([tool_call(), partial()], "tool", 30.0, "stream_event"),
        ([tool_call(), tool_result()], "first_token", 10.0, "user"),
        ([retry(7.0)], "retry", 47.0, "api_retry"),
    ],
)
def test_silence_is_noticed_when_the_limit_of_its_phase_is_reached(
    frames: list[Frame], phase: str, limit: float, last: str
) -> None:
    settled, stalled, took = in_virtual_time(watched(Silent(*frames)))

    assert stalled == [{"phase": phase, "since": pytest.approx(limit), "last_event": last}]
    assert took == pytest.approx(limit)
    assert settled.outcome == "failed"
    assert isinstance(settled.cause, Stalled)
    assert (settled.cause.phase, settled.cause.last_event) == (phase, last)


@pytest.mark.parametrize(
    ("frames", "last"), [([], "the start"), ([tool_call(), tool_result()], "user")]
)
def test_without_partial_messages_a_whole_message_may_take_its_time(
    frames: list[Frame], last: str
) -> None:
    found = watched(Silent(*frames), include_partial_messages=False)
    _settled, stalled, took = in_virtual_time(found)

    assert stalled == [{"phase": "message", "since": pytest.approx(60.0), "last_event": last}]
    assert took == pytest.approx(60.0)


class CountingLoop(VirtualClockLoop):
    """Refuses the thousandth timer, so that timers that do not move the clock come to an end."""

    def __init__(self) -> None:
        super().__init__()
        self._timers = 0

    def call_at(
        self,
        when: float,
        callback: Callable[[*Given], object],
        *args: *Given,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._timers += 1
        assert self._timers < 1000, "the clock does not move"
        return super().call_at(when, callback, *args, context=context)


def test_silence_is_noticed_when_what_is_left_is_too_short_to_move_the_clock() -> None:
    begin, limit = 6.4, 10.0
    left = limit - ((begin + limit) - begin)
    assert left > 0
    assert begin + limit + left == begin + limit

    async def wait_and_watch() -> tuple[TurnResult, list[dict[str, Any]], float]:
        await asyncio.sleep(begin)
        return await watched(Silent())

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        settled, stalled, took = runner.run(wait_and_watch())

    assert settled.outcome == "failed"
    assert [each["phase"] for each in stalled] == ["first_token"]
    assert took == pytest.approx(limit)


def test_a_cli_that_does_not_obey_is_killed() -> None:
    settled, stalled, took = in_virtual_time(watched(Silent(obeys=False)))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, Stalled)
    assert len(stalled) == 1
    assert took == pytest.approx(10.0 + LIMITS.interrupt)


def test_without_a_watchdog_silence_has_no_limit() -> None:
    async def wait() -> bool:
        async with opened(
            FramePeer(Silent()).transport, limit=2 * MINUTES, watchdog=None, revive=False
        ) as session:
            turn = await session.send("go")
            await asyncio.wait([asyncio.ensure_future(turn.result())], timeout=MINUTES)
            return turn.is_settled

    assert in_virtual_time(wait()) is False


class Slow:
    """Sends a partial message every `pause` seconds, `times` times, and then ends the turn."""

    def __init__(self, pause: float, times: int) -> None:
        self._pause = pause
        self._left = times

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(started(frame["uuid"]))
            self._continue(peer, frame["uuid"])

    def _continue(self, peer: FramePeer, uuid: str) -> None:
        if not self._left:
            peer.say(result([uuid], "done"))
            return
        self._left -= 1
        peer.say(partial())
        asyncio.get_running_loop().call_later(self._pause, self._continue, peer, uuid)


def test_a_cli_that_is_slow_but_alive_is_left_alone() -> None:
    settled, stalled, took = in_virtual_time(watched(Slow(19.0, 30)))

    assert (settled.outcome, stalled) == ("completed", [])
    assert took == pytest.approx(19.0 * 30)


class SlowAfterPermission:
    """Requests a permission, and ends the turn `pause` seconds after the answer."""

    def __init__(self, pause: float) -> None:
        self._pause = pause

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            asked: Frame = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
            request: Frame = {"type": "control_request", "request_id": "q", "request": asked}
            peer.say(started(frame["uuid"]), tool_call(), request)
        elif frame["type"] == "control_response":
            end = result([peer.sent("user")[0]["uuid"]], "done")
            asyncio.get_running_loop().call_later(self._pause, peer.say, end)


def slow_approver(seconds: float) -> Any:
    async def ponder(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Allow:
        await asyncio.sleep(seconds)
        return Allow()

    return ponder


def test_waiting_for_an_approver_is_not_timed_and_silence_counts_from_the_answer() -> None:
    asked = watched(SlowAfterPermission(29.0), can_use_tool=slow_approver(59.0))

    settled, stalled, took = in_virtual_time(asked)

    assert (settled.outcome, stalled) == ("completed", [])
    assert took == pytest.approx(59.0 + 29.0)


def test_silence_after_the_answer_is_noticed() -> None:
    asked = watched(SlowAfterPermission(MINUTES), can_use_tool=slow_approver(59.0))

    _settled, stalled, _took = in_virtual_time(asked)

    assert stalled == [{"phase": "tool", "since": pytest.approx(30.0), "last_event": "assistant"}]


class Withdrawing:
    """Requests a permission, withdraws the request a second later, and sends nothing more."""

    def __call__(self, peer: FramePeer, frame: Frame) -> None:
        Silent()(peer, frame)
        if frame["type"] == "user":
            asked: Frame = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
            peer.say({"type": "control_request", "request_id": "q", "request": asked})
            withdrawal = {"type": "control_cancel_request", "request_id": "q"}
            asyncio.get_running_loop().call_later(1.0, peer.say, withdrawal)


def test_silence_is_noticed_while_a_withdrawn_request_ignores_its_cancellation() -> None:
    async def play() -> tuple[list[dict[str, Any]], float]:
        may_end = asyncio.Event()

        async def ignores_cancellation(*_: object) -> Allow:
            try:
                await asyncio.Event().wait()
            finally:
                await may_end.wait()
            return Allow()

        ends = asyncio.get_running_loop().call_later(MINUTES / 2, may_end.set)
        _settled, stalled, took = await watched(
            Withdrawing(), can_use_tool=ignores_cancellation, close_grace=0.01
        )
        ends.cancel()
        may_end.set()
        return stalled, took

    stalled, took = in_virtual_time(play())

    assert [each["phase"] for each in stalled] == ["first_token"]
    assert took == pytest.approx(1.0 + 10.0)
