from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.control import CancelAsyncMessage, Initialized, SetModel
from steersman.errors import (
    ChannelClosed,
    CliExited,
    RequestLost,
    RequestRefused,
    RequestTimeout,
    UsageError,
)
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import Frame, FramePeer, answer_to, entries_of, opened

MUTE = Faults(unanswered=frozenset({"set_model", "side_question"}))


async def test_what_the_cli_says_about_itself_is_kept() -> None:
    async with opened(ScriptedCLI()) as session:
        found = session.initialized

    assert isinstance(found, Initialized)
    assert found.claude_code_version == "2.1.325"
    assert "interrupt_receipt_v1" in found.capabilities
    assert found.hook_on_failure_supported


async def test_a_verb_gets_its_typed_answer_and_has_its_effect() -> None:
    cli = ScriptedCLI(Script(say("one"), say("two")))

    async with opened(cli) as session:
        await (await session.send("first"))
        answer = await session.set_model("sonnet")
        await (await session.send("second"))

    assert answer.model == "claude-sonnet-5-5"
    assert [request.model for request in cli.asked] == ["claude-opus-5-5", "claude-sonnet-5-5"]


async def test_requests_are_answered_while_a_turn_runs() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" whole")))

    async with opened(cli) as session:
        turn = await session.send("go")
        await cli.wait_for_stall()
        mode = await session.set_permission_mode("plan")
        gone = await session.call(CancelAsyncMessage(message_uuid="unknown"))
        version = await session.control("get_binary_version")
        await cli.release()
        settled = await turn

    assert (mode.mode, gone.cancelled, version) == ("plan", False, {"version": "2.1.325"})
    assert settled.text == "half whole"


async def test_a_request_that_the_cli_does_not_know_is_refused_with_its_own_words() -> None:
    async with opened(ScriptedCLI()) as session:
        with pytest.raises(RequestRefused) as refused:
            await session.control("set_colour", colour="red")

    assert refused.value.operation == "set_colour"
    assert refused.value.reason == "Unsupported control request subtype: set_colour"
    assert refused.value.error_code == "unsupported_request"


async def test_a_request_without_an_answer_runs_out_of_time_and_is_taken_back() -> None:
    cli = ScriptedCLI(faults=MUTE)

    async with opened(cli) as session:
        with pytest.raises(RequestTimeout, match="set_model"):
            await session.call(SetModel(model="opus"), timeout=0.01)
        pending = _pending(session)
        await session.set_permission_mode("plan")

    (cancel,) = [each for each in cli.received if each["type"] == "control_cancel_request"]
    (asked,) = [each for each in cli.received if each.get("request", {}).get("model") == "opus"]
    assert cancel["request_id"] == asked["request_id"]
    assert not pending


async def test_the_earliest_deadline_counts_whatever_was_asked_first() -> None:
    cli = ScriptedCLI(faults=MUTE)

    async with opened(cli) as session:
        late = asyncio.ensure_future(session.call(SetModel(model="a"), timeout=60))
        with pytest.raises(RequestTimeout):
            await session.call(SetModel(model="b"), timeout=0.01)
        was_done = late.done()
        late.cancel()
        await asyncio.wait([late])

    assert not was_done


async def test_a_thousand_calls_that_are_cancelled_leave_nothing() -> None:
    cli = ScriptedCLI(faults=MUTE)

    async with opened(cli) as session:
        calls = [asyncio.ensure_future(session.control("side_question")) for _ in range(1000)]
        await asyncio.sleep(0)
        assert len(_pending(session)) == 1000
        for each in calls:
            each.cancel()
        await asyncio.wait(calls)
        pending = _pending(session)
        # An answer to a later request shows that the CLI has read all those before it.
        await session.set_permission_mode("plan")

    taken_back = [each for each in cli.received if each["type"] == "control_cancel_request"]
    assert not pending
    assert len({each["request_id"] for each in taken_back}) == 1000


async def test_a_late_answer_to_a_request_that_was_taken_back_is_ignored() -> None:
    held: list[Frame] = []

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_cancel_request":
            peer.say(answer_to(held[0], {"model": "too late"}))
        elif frame.get("request", {}).get("subtype") == "set_model":
            held.append(frame)
            if len(held) > 1:
                peer.say(answer_to(frame, {"model": "in time"}))

    async with opened(FramePeer(play).transport) as session:
        with pytest.raises(RequestTimeout):
            await session.call(SetModel(model="a"), timeout=0.01)
        answer = await session.set_model("b")

    assert answer.model == "in time"


async def test_answers_may_come_in_any_order() -> None:
    held: list[Frame] = []

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "set_model":
            held.append(frame)
        if len(held) == 3:
            peer.say(*(answer_to(each, {"model": each["request"]["model"]}) for each in held[::-1]))

    async with opened(FramePeer(play).transport) as session:
        answers = await asyncio.gather(*(session.set_model(name) for name in "abc"))

    assert [each.model for each in answers] == ["a", "b", "c"]


async def test_a_cli_that_leaves_in_the_middle_fails_the_turn_and_says_why() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, revive=False) as session:
        turn, queued = await session.send("one"), await session.send("two")
        await cli.wait_for_stall()
        cli.exit(7, "out of luck\n")
        settled = [await turn, await queued]
        state = session.state
        with pytest.raises(CliExited) as later:
            await session.send("three")

    assert [each.outcome for each in settled] == ["failed", "failed"]
    cause = settled[0].cause
    assert isinstance(cause, CliExited)
    assert cause is settled[1].cause is later.value
    assert (cause.evidence.status, cause.evidence.stderr_tail) == (7, "out of luck")
    assert cause.evidence.phase == "turn"
    assert settled[0].text == "half"
    assert state == "failed"


async def test_a_cli_that_leaves_between_turns_fails_the_session() -> None:
    cli = ScriptedCLI()

    async with opened(cli, revive=False) as session:
        await (await session.send("one"))
        cli.exit(0)
        async for _ in session.journal():
            pass
        with pytest.raises(CliExited, match="in the middle"):
            await session.send("two")
        with pytest.raises(CliExited):
            await session.set_model("opus")

    assert session.state == "failed"


async def test_who_waits_for_an_answer_is_told_that_it_will_not_come() -> None:
    cli = ScriptedCLI(faults=MUTE)

    async with opened(cli) as session:
        calls = [asyncio.ensure_future(session.set_model(name)) for name in "ab"]
        await asyncio.sleep(0)
        cli.exit(1)
        answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(each) for each in answers] == [RequestLost, RequestLost]
    assert [str(each) for each in answers] == ["set_model: the CLI went away"] * 2


async def test_the_tool_that_runs_is_cancelled_when_the_cli_leaves() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()
        return ""

    cli = ScriptedCLI(Script(call("mcp__functions__wait")))
    async with opened(cli, functions=[wait], revive=False) as session:
        turn = await session.send("go")
        await started.wait()
        cli.exit(1)
        settled = await turn
        await cancelled.wait()

    assert settled.outcome == "failed"


async def test_lines_that_are_noise_or_too_long_cost_themselves_only() -> None:
    noise = b"debug: hello\n" + b"x" * 5000 + b'\n["an array"]\n'
    cli = ScriptedCLI(Script(say("fine")), faults=Faults(noise=noise, noise_at="turn"))

    async with opened(cli, max_buffer_size=4000) as session:
        settled = await (await session.send("go"))
    journal = await entries_of(session)

    assert settled.text == "fine"
    told = [(entry.kind.value, entry.line[:12], entry.details) for entry in journal]
    assert ("noise", b"debug: hello", {}) in told
    assert all(isinstance(entry.at, float) for entry in journal)
    assert ("noise", b'["an array"]', {}) in told
    assert ("oversize", b"xxxxxxxxxxxx", {"size": 5000}) in told


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("call", lambda session: session.call("set_model")),
        ("control", lambda session: session.control("")),
        ("timeout", lambda session: session.call(SetModel(model="a"), timeout=0)),
        ("model", lambda session: session.set_model("")),
        ("mode", lambda session: session.set_permission_mode("often")),
        ("prompt", lambda session: session.send(5)),
        ("prompt[0]", lambda session: session.send([{"text": "no type"}])),
        ("text", lambda session: session.command("no slash")),
    ],
)
async def test_bad_input_is_told_before_anything_is_written(name: str, wrong: Any) -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        written = len(peer.received)
        with pytest.raises(UsageError):
            await wrong(session)
        assert len(peer.received) == written


async def test_nothing_can_be_sent_before_the_start_or_after_the_end() -> None:
    session = Agent(transport=ScriptedCLI()).session()
    with pytest.raises(ChannelClosed, match="not started"):
        await session.send("early")
    async with session:
        pass
    with pytest.raises(ChannelClosed, match="closed"):
        await session.send("late")


def _pending(session: Any) -> Any:
    return session._parts.slot.running.link.connection.pending
