"""How often a CLI is replaced, after which delays, and with what; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from steersman.agent import Agent, Turn
from steersman.errors import CliExited, LimitReached, Stalled
from steersman.journal import Kind
from steersman.options import Caps, Limits, Revival, Watchdog
from steersman.ports import Channel, JsonObject, Launch, Receiver
from steersman.testing.faults import VirtualClockLoop
from tests._session.peers import (
    INIT,
    Frame,
    FramePeer,
    answer_to,
    entries_of,
    lifecycle,
    opened,
    state,
)
from tests._session.plays import Peers, answer, begin, begin_and_die, die

T = TypeVar("T")

HOURS = 100 * 3600.0


def in_virtual_time(doing: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(doing)


def now() -> float:
    return asyncio.get_running_loop().time()


def lives(seconds: float) -> Callable[[FramePeer, Frame], None]:
    """It begins the turn, and is lost after a while."""

    def play(peer: FramePeer, frame: Frame) -> None:
        begin(peer, frame)
        if frame["type"] == "user":
            asyncio.get_running_loop().call_later(seconds, peer.wire.exit, 1)

    return play


def first_prompt_kills(seconds: float) -> Callable[[FramePeer, Frame], None]:
    """It is lost over the prompt `hard`, and answers others."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            is_hard = frame["message"]["content"] == "hard"
            (lives(seconds) if is_hard else answer)(peer, frame)

    return play


class Clocked(Peers):
    """A place that knows when each CLI was started."""

    def __init__(self, *plays: Callable[[FramePeer, Frame], None]) -> None:
        super().__init__(*plays)
        self.started: list[float] = []

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self.started.append(now())
        return await super().open(launch, receiver)


# --- How often ------------------------------------------------------------------------------


def test_a_turn_over_which_every_cli_is_lost_late_fails_and_the_next_prompt_runs() -> None:
    """Each of them lives long enough for the count in a row to begin anew."""

    async def run() -> tuple[list[str], int, str, object]:
        place = Peers(*[first_prompt_kills(100.0)] * 5)
        async with opened(place, limit=HOURS, revive=Revival(per_turn=3)) as session:
            hard, easy = await session.send("hard"), await session.send("easy")
            results = [await hard, await easy]
            return (
                [each.outcome for each in results],
                session.restarts,
                session.state,
                results[0].cause,
            )

    outcomes, restarts, at_the_end, cause = in_virtual_time(run())

    assert (outcomes, restarts) == (["failed", "completed"], 4)
    assert isinstance(cause, CliExited)
    assert at_the_end in ("idle", "running")


def test_a_cli_that_stalls_every_time_is_not_revived_for_ever() -> None:
    async def run() -> tuple[object, int]:
        place = Peers(*[begin] * 5)
        watchdog = Watchdog(first_token=600.0, interrupt=10.0)
        revive = Revival(per_turn=3)
        async with opened(place, limit=HOURS, revive=revive, watchdog=watchdog) as session:
            stalled = await (await session.send("go"))
            return stalled.cause, session.restarts

    cause, restarts = in_virtual_time(run())

    assert isinstance(cause, Stalled)
    assert restarts in (3, 4)


def test_a_prompt_that_joined_a_turn_fails_with_it_and_is_not_run_alone() -> None:
    async def run() -> tuple[list[str], list[str], list[Turn]]:
        place = Peers(lives(100.0), lives(100.0), answer)
        async with opened(place, limit=HOURS, revive=Revival(per_turn=1)) as session:
            first = await session.send("go")
            await first.begun()
            joined = await session.send("this too", when="next")
            results = [await first, await joined]
            await session.wait_idle(5)
            return [each.outcome for each in results], place.sent(2), [first, joined]

    outcomes, sent, _turns = in_virtual_time(run())

    assert (outcomes, sent) == (["failed", "failed"], [])


def test_the_next_cli_does_not_continue_a_turn_that_was_given_up() -> None:
    """A prompt that steered it and was not begun is sent again; that must not take it up."""

    def begin_first_and_live(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user" and len(peer.sent("user")) == 1:
            lives(100.0)(peer, frame)

    async def run() -> tuple[list[str], dict[str, str]]:
        place = Peers(lives(100.0), begin_first_and_live, answer)
        async with opened(place, limit=HOURS, revive=Revival(per_turn=1)) as session:
            first = await session.send("go")
            await asyncio.sleep(150.0)
            steering = await session.send("stop that", when="now")
            results = [await first, await steering]
            return [each.outcome for each in results], dict(place.launches[2].env)

    outcomes, env = in_virtual_time(run())

    assert outcomes == ["failed", "completed"]
    assert "CLAUDE_CODE_RESUME_INTERRUPTED_TURN" not in env


@pytest.mark.parametrize(("seconds", "outcome"), [(59.0, "failed"), (61.0, "completed")])
def test_only_a_cli_that_has_run_for_well_after_seconds_starts_a_new_row(
    seconds: float, outcome: str
) -> None:
    async def run() -> str:
        place = Peers(*[lives(seconds)] * 4, answer)
        revive = Revival(most=3, backoff=0.0, well_after=60.0)
        async with opened(place, limit=HOURS, revive=revive) as session:
            return (await (await session.send("go"))).outcome

    assert in_virtual_time(run()) == outcome


def test_the_delay_before_a_restart_doubles_within_a_row() -> None:
    async def run() -> list[float]:
        place = Clocked(*[die] * 5, answer)
        async with opened(place, limit=HOURS, revive=Revival(most=5, backoff=2.0)) as session:
            await (await session.send("go"))
        return place.started

    started = in_virtual_time(run())

    delays = [later - earlier for earlier, later in pairwise(started)]
    assert delays == [0.0, 2.0, 4.0, 8.0, 16.0]


async def test_an_error_of_our_own_during_a_restart_settles_the_turns() -> None:
    """Such as a bug in what plans the next CLI."""
    session = Agent(transport=Peers(begin_and_die), revive=True).session()

    def broken(_how: object) -> Any:
        raise ZeroDivisionError("a bug")

    object.__setattr__(session._parts.setup, "plan_next", broken)
    async with asyncio.timeout(5), session:
        settled = await (await session.send("go"))

    assert (settled.outcome, session.state) == ("failed", "failed")
    assert isinstance(settled.cause, CliExited)
    assert isinstance(settled.cause.__cause__, ZeroDivisionError)


async def test_a_session_that_is_not_persisted_is_not_restarted() -> None:
    def tell_id_and_die(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say({**INIT, "session_id": "known"})
        die(peer, frame)

    place = Peers(tell_id_and_die, answer)

    async with opened(place, persist_session=False) as session:
        settled = await (await session.send("go"))

    assert (settled.outcome, session.id, len(place.launches)) == ("failed", "known", 1)
    assert isinstance(settled.cause, CliExited)
    assert settled.cause.__cause__ is None
    assert Kind.RESTARTED not in {each.kind for each in await entries_of(session)}


# --- With what ------------------------------------------------------------------------------


class Server:
    tool_names = ()

    async def attach(self, caller: Any) -> None:
        pass

    async def detach(self, caller: Any) -> None:
        pass

    async def handle(self, message: JsonObject, caller: Any) -> JsonObject:
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"tools": []}}


def setting(then: Callable[[FramePeer, Frame], None]) -> Callable[[FramePeer, Frame], None]:
    """It answers `mcp_set_servers`."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "mcp_set_servers":
            names = list(frame["request"]["servers"])
            peer.say(answer_to(frame, {"added": names, "removed": [], "errors": {}}))
        then(peer, frame)

    return play


def servers_told(peer: FramePeer) -> list[dict[str, Any]]:
    requests = [frame.get("request", {}) for frame in peer.received]
    return [each["servers"] for each in requests if each.get("subtype") == "mcp_set_servers"]


async def test_servers_that_were_set_at_run_time_are_set_again_in_the_next_cli() -> None:
    place = Peers(setting(begin_and_die), setting(answer))
    external = {"type": "http", "url": "http://127.0.0.1:1/mcp"}

    async with opened(place, mcp_servers={"stays": Server(), "goes": Server()}) as session:
        await session.mcp_set_servers({"far": external, "mine": Server(), "goes": None})
        await (await session.send("go"))

    greeting = next(frame for frame in place.peers[1].received if "request" in frame)
    own = {name: {"type": "sdk", "name": name} for name in ("stays", "mine")}
    assert sorted(greeting["request"]["sdkMcpServers"]) == ["mine", "stays"]
    assert servers_told(place.peers[1]) == [{**own, "far": external}]
    # Before the prompt, which may need their tools.
    kinds = [frame["type"] for frame in place.peers[1].received]
    assert kinds.index("user") > 1


async def test_servers_that_were_removed_at_run_time_are_not_set_again() -> None:
    place = Peers(setting(begin_and_die), setting(answer))
    external = {"type": "http", "url": "http://127.0.0.1:1/mcp"}

    async with opened(place) as session:
        await session.mcp_set_servers({"far": external})
        await session.mcp_set_servers({})
        await (await session.send("go"))

    assert servers_told(place.peers[1]) == []


async def test_a_cli_that_refuses_the_servers_is_journalled_and_the_session_goes_on() -> None:
    def refusing(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "mcp_set_servers":
            inside = {"subtype": "error", "request_id": frame["request_id"], "error": "no"}
            peer.say({"type": "control_response", "response": inside})
        answer(peer, frame)

    place = Peers(setting(begin_and_die), refusing)
    async with opened(place) as session:
        await session.mcp_set_servers({"far": {"type": "http", "url": "http://127.0.0.1:1/mcp"}})
        settled = await (await session.send("go"))

    told = [each.details for each in await entries_of(session) if each.kind is Kind.SERVER]
    assert settled.outcome == "completed"
    assert [(each["name"], each["status"]) for each in told] == [("far", "failed")]


def obeying(then: Callable[[FramePeer, Frame], None]) -> Callable[[FramePeer, Frame], None]:
    """It answers every request."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype", "initialize") != "initialize":
            peer.say(answer_to(frame, {}))
        then(peer, frame)

    return play


async def test_model_and_permission_mode_that_were_set_at_run_time_hold_in_the_next_cli() -> None:
    """A session that was taken out of bypassPermissions must not come back to it."""
    place = Peers(obeying(begin_and_die), obeying(answer))

    async with opened(place, model="opus", permission_mode="bypassPermissions") as session:
        await session.set_model("haiku")
        await session.set_permission_mode("plan")
        await (await session.send("go"))

    first, second = (
        [each for each in launch.argv if "--model" in str(each) or "permissions" in str(each)]
        for launch in place.launches
    )
    assert "--model=haiku" in second
    assert "--permission-mode=plan" in place.launches[1].argv
    assert "--model=opus" in first
    assert "--allow-dangerously-skip-permissions" in second


async def test_a_model_that_was_reset_is_the_default_in_the_next_cli() -> None:
    place = Peers(obeying(begin_and_die), obeying(answer))

    async with opened(place, model="opus") as session:
        await session.set_model(None)
        await (await session.send("go"))

    assert not any(str(each).startswith("--model") for each in place.launches[1].argv)


# --- Limits on a CLI that does not react -------------------------------------------------------


@pytest.mark.parametrize("is_hard", [False, True])
def test_a_soft_limit_of_a_turn_does_not_end_the_session_of_a_mute_cli(*, is_hard: bool) -> None:
    def mute(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(state("running"), lifecycle(frame["uuid"], "started"))

    async def run() -> tuple[str, object, str, list[str]]:
        place = Peers(mute, answer)
        limits = Limits(turn=Caps(seconds=30.0), is_hard=is_hard)
        async with opened(place, limit=HOURS, limits=limits) as session:
            limited = await (await session.send("go"))
            outcomes: list[str] = []
            if not is_hard:
                outcomes.append((await (await session.send("and then"))).outcome)
            env = place.launches[-1].env
            assert "CLAUDE_CODE_RESUME_INTERRUPTED_TURN" not in env
            return limited.outcome, limited.cause, session.state, outcomes

    outcome, cause, at_the_end, others = in_virtual_time(run())

    assert outcome == "failed"
    assert isinstance(cause, LimitReached)
    assert others == ([] if is_hard else ["completed"])
    assert (at_the_end == "failed") is is_hard
