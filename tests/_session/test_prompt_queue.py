"""The prompt queue: what is written when, and how each prompt settles."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steersman._session.recovery import CONTINUE, Handover
from steersman._session.turn import SentPrompt
from steersman.agent import Session
from steersman.errors import CliExited, LimitReached, NotLoggedIn
from steersman.journal import Kind
from steersman.options import Revival
from tests._session.peers import (
    Frame,
    FramePeer,
    entries_of,
    lifecycle,
    opened,
    result,
    state,
    text,
)
from tests._session.plays import Peers, answer, begin, begin_and_die, die

QUICK = Revival(backoff=0.0)


def delta(said: str) -> Frame:
    inside = {"type": "content_block_delta", "index": 0}
    event = {**inside, "delta": {"type": "text_delta", "text": said}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def message_start() -> Frame:
    event = {"type": "message_start", "message": {"id": "msg_1"}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


async def told(turn: Any) -> str:
    return "".join([piece async for piece in turn.text()])


# --- Lines that are lost -----------------------------------------------------------------------


async def test_the_text_of_a_turn_whose_message_was_garbled_is_the_text_that_was_streamed() -> None:
    def garble(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), message_start(), delta("All."))
            peer.wire.write(b'{"type":"assistant","mess\nage":{}}\n')
            peer.say(result([frame["uuid"]], "All."), state("idle"))

    async with opened(FramePeer(garble).transport) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.text, await told(turn)) == ("All.", "All.")


async def test_the_text_of_a_turn_whose_message_was_too_long_is_the_text_that_was_streamed() -> (
    None
):
    def say_too_much(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), message_start(), delta("All."))
            peer.say(text("All." + " " * 5000), result([frame["uuid"]], "All."), state("idle"))

    async with opened(FramePeer(say_too_much).transport, max_buffer_size=4096) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.text, await told(turn)) == ("All.", "All.")


async def test_a_turn_that_had_begun_and_is_cancelled_without_a_result_was_interrupted() -> None:
    """As if its result was too long; `cancelled` is for prompts that the model has not seen."""

    def stop(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(lifecycle(uuid, "started"), lifecycle(uuid, "cancelled"), state("idle"))

    async with opened(FramePeer(stop).transport) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.outcome, turn.delivery) == ("interrupted", "completed")


async def test_a_turn_that_ends_with_an_api_error_and_without_a_result_has_failed() -> None:
    def fail(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            said = text("API Error: 500 overloaded", is_api_error_message=True)
            peer.say(lifecycle(uuid, "started"), said, lifecycle(uuid, "cancelled"), state("idle"))

    async with opened(FramePeer(fail).transport) as session:
        settled = await (await session.send("go"))

    assert (settled.outcome, settled.text) == ("failed", "")
    assert "500 overloaded" in settled.reason


# --- Sending -----------------------------------------------------------------------------------


async def test_a_prompt_that_has_no_turn_to_steer_is_sent_like_any_other() -> None:
    place = Peers(answer)

    async with opened(place) as session:
        await (await session.send("go", when="now"))

    assert ["priority" in frame for frame in place.peers[0].sent("user")] == [False]


async def test_prompts_that_steer_keep_their_order_while_nothing_can_be_written() -> None:
    heard: list[str] = []

    def hear(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            heard.append(frame["message"]["content"])
            peer.say(lifecycle(frame["uuid"], "started"))
            peer.say(result([frame["uuid"]], "done"), state("idle"))

    async with opened(FramePeer(hear).transport) as session:
        await session.pause(hard=True)
        last = await session.send("last")
        for prompt in ("first", "second", "third"):
            await session.send(prompt, when="next")
        await session.resume()
        await last

    assert heard == ["first", "second", "third", "last"]


async def test_a_turn_begins_when_its_prompt_is_written_and_not_while_it_waits() -> None:
    """What lies between may be gone from memory, and is not the turn's."""

    def talk(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user" and frame["message"]["content"] == "talk":
            said = [text("x" * 1000, f"msg_{number}") for number in range(60)]
            peer.say(lifecycle(frame["uuid"], "started"), *said)
            peer.say(result([frame["uuid"]], "x"), state("idle"))
        else:
            answer(peer, frame)

    async with opened(Peers(talk), journal_memory=20_000) as session:
        await session.send("talk")
        queued = await session.send("and then")
        settled = await queued
        pieces = await told(queued)

    assert (settled.text, pieces) == ("All.", "All.")


def entry(kind: str, uuid: str, parent: str | None = None, *blocks: Frame) -> bytes:
    """A line of the CLI's session file."""
    message = {"id": f"msg_{uuid}", "role": kind, "content": list(blocks)}
    return json.dumps(
        {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message}
    ).encode()


def saved(session: Session, read: Callable[[], list[bytes]]) -> None:
    """Have the session read these lines instead of the CLI's file."""
    object.__setattr__(session._parts.setup, "transcript", lambda _session_id: read())


@pytest.mark.parametrize("is_answered", [True, False])
async def test_an_older_cli_is_not_sent_a_prompt_that_it_has_processed(
    *, is_answered: bool
) -> None:
    """It would silently drop the prompt, and nothing would ever settle it."""
    peer = FramePeer()

    async with opened(peer.transport) as session:
        prompt = SentPrompt(session._readers, "known", "go", {})
        prompt.may_be_processed = True
        said = entry("assistant", "a", "known", {"type": "text", "text": "All."})
        lines = [entry("user", "known"), *([said] if is_answered else [])]
        saved(session, lambda: lines)
        session._parts.prompts.submit(prompt)
        settled = await prompt.result()

    assert peer.sent("user") == []
    assert settled.outcome == ("completed" if is_answered else "failed")
    assert isinstance(settled.cause, CliExited | None)
    assert (settled.text, settled.cause is None) == (("All.", True) if is_answered else ("", False))


# --- Prompts that the next CLI drops --------------------------------------------------------------


def drop(peer: FramePeer, frame: Frame) -> None:
    """It has processed the prompt, as it thinks."""
    if frame["type"] == "user":
        peer.say(lifecycle(frame["uuid"], "completed"), state("idle"))


async def test_a_turn_that_is_continued_under_another_uuid_settles_after_one_more_loss() -> None:
    aliases: list[str] = []

    def drop_and_die(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user" and frame["message"]["content"] == CONTINUE:
            aliases.append(frame["uuid"])
            begin_and_die(peer, frame)
        else:
            drop(peer, frame)

    def resume_turns(peer: FramePeer, frame: Frame) -> None:
        if frame.get("request", {}).get("subtype") == "initialize":
            peer.say(state("running"), text("All."), result(aliases, "All."), state("idle"))

    place = Peers(begin_and_die, drop_and_die, resume_turns)
    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        saved(session, lambda: [entry("user", turn.uuid)])
        settled = await turn

    assert (settled.outcome, settled.text) == ("completed", "All.")
    assert place.sent(1) == [turn.uuid, *aliases]
    assert place.sent(2) == []


async def test_context_that_needs_no_answer_is_not_continued() -> None:
    place = Peers(begin_and_die, drop)

    async with opened(place, revive=QUICK) as session:
        turn = await session.send("by the way", query=False)
        saved(session, lambda: [entry("user", turn.uuid)])
        settled = await turn

    assert settled.outcome == "completed"
    assert place.sent(1) == [turn.uuid]


async def test_a_turn_that_we_have_ended_is_not_continued() -> None:
    limit = LimitReached("turn", "seconds", 2.0, 1.0)

    def reach_limit(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            session._parts.prompts.unsettled[0].cause = limit
        drop(peer, frame)

    place = Peers(begin_and_die, reach_limit)
    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        saved(session, lambda: [entry("user", turn.uuid)])
        settled = await turn

    assert (settled.outcome, settled.cause) == ("failed", limit)
    assert place.sent(1) == [turn.uuid]


async def test_a_turn_is_asked_to_continue_once_by_each_cli() -> None:
    """A CLI that drops that request too has done what it can."""
    place = Peers(begin_and_die, drop)

    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        saved(session, lambda: [entry("user", turn.uuid)])
        settled = await turn

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, CliExited)
    assert len(place.sent(1)) == 2


# --- Settling ------------------------------------------------------------------------------------


async def test_a_prompt_that_has_settled_is_not_settled_again_by_a_handover() -> None:
    place = Peers(answer)

    async with opened(place) as session:
        turn = await session.send("go")
        prompt = session._parts.prompts.unsettled[0]
        await turn
        link = session._parts.slot.require().link
        session._parts.prompts.attach(link, Handover(lost=[prompt]), CliExited("gone"))

    entries = await entries_of(session)
    assert [each.details["outcome"] for each in entries if each.kind is Kind.SETTLED] == [
        "completed"
    ]


async def test_a_prompt_that_a_close_keeps_from_the_model_is_cancelled() -> None:
    """The CLI reports a success for it, with no turn of the model."""

    def close_early(peer: FramePeer, frame: Frame) -> None:
        begin(peer, frame)
        if frame.get("request", {}).get("subtype") == "interrupt":
            uuid = peer.sent("user")[0]["uuid"]
            peer.say(result([uuid], "", num_turns=0), lifecycle(uuid, "completed"))

    async with opened(Peers(close_early)) as session:
        turn = await session.send("go")
        await turn.begun()

    assert (await turn).outcome == "cancelled"


async def test_a_turn_that_we_have_ended_fails_with_that_cause_when_its_session_fails() -> None:
    limit = LimitReached("turn", "seconds", 2.0, 1.0)

    def reach_limit_and_die(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            session._parts.prompts.unsettled[0].cause = limit
        die(peer, frame)

    async with opened(Peers(reach_limit_and_die), revive=False) as session:
        turn, queued = await session.send("go"), await session.send("and then")
        results = [await turn, await queued]

    assert [each.outcome for each in results] == ["failed", "failed"]
    assert results[0].cause is limit
    assert isinstance(results[1].cause, CliExited)


async def test_an_answer_that_only_the_session_file_has_is_also_the_text_of_the_turn() -> None:
    place = Peers(begin_and_die, drop)

    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        said = entry("assistant", "a", turn.uuid, {"type": "text", "text": "All."})
        saved(session, lambda: [entry("user", turn.uuid), said])
        settled = await turn

    assert (settled.outcome, settled.text, await told(turn)) == ("completed", "All.", "All.")


async def test_a_broken_turn_has_only_its_own_text() -> None:
    def speak_before(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(text("Of a background task.", "msg_0"))
            peer.wire.write(b"noise\n")
            answer(peer, frame)

    async with opened(Peers(speak_before)) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.text, await told(turn)) == ("All.", "All.")


async def test_a_broken_turn_whose_beginning_is_gone_from_memory_has_the_text_of_its_messages() -> (
    None
):
    def talk(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            said = [text(f"{number} " + "x" * 1000, f"msg_{number}") for number in range(60)]
            peer.say(lifecycle(frame["uuid"], "started"), *said)
            peer.wire.write(b"noise\n")
            peer.say(result([frame["uuid"]], "x"), state("idle"))

    async with opened(Peers(talk), journal_memory=20_000) as session:
        settled = await (await session.send("talk"))

    assert [part.split()[0] for part in settled.text.split("\n\n")] == list(map(str, range(60)))


def retry(attempt: int) -> Frame:
    fields = {"attempt": attempt, "max_retries": 10, "retry_delay_ms": 1, "error_status": 401}
    return {"type": "system", "subtype": "api_retry", "error": "authentication_failed", **fields}


@pytest.mark.parametrize(("attempts", "outcome", "stops"), [(1, "completed", 0), (3, "failed", 1)])
async def test_a_login_that_is_refused_twice_is_not_tried_again(
    attempts: int, outcome: str, stops: int
) -> None:
    def refuse_login(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), *map(retry, range(1, attempts + 1)))
            answer(peer, frame)

    place = Peers(refuse_login)
    async with opened(place) as session:
        settled = await (await session.send("go"))
        await session.wait_idle(5)

    asked = [frame.get("request", {}).get("subtype") for frame in place.peers[0].received]
    assert (settled.outcome, asked.count("interrupt")) == (outcome, stops)
    assert isinstance(settled.cause, NotLoggedIn | None)


async def test_a_prompt_that_joined_a_turn_is_stopped_with_it_when_the_cli_is_lost() -> None:
    def fold_and_die_when_stopped(peer: FramePeer, frame: Frame) -> None:
        begin(peer, frame)
        if frame.get("request", {}).get("subtype") == "interrupt":
            peer.wire.exit(1)

    place = Peers(fold_and_die_when_stopped, answer)
    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        await turn.begun()
        joined = await session.send("this too", when="next")
        await joined.begun()
        await turn.interrupt()
        results = [await turn, await joined]
        await session.wait_idle(5)

    assert [each.outcome for each in results] == ["interrupted", "interrupted"]
    assert place.sent(1) == []


async def test_a_prompt_that_the_next_cli_cancels_is_not_continued() -> None:
    def cancel(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "cancelled"), state("idle"))

    place = Peers(begin_and_die, cancel)
    async with opened(place, revive=QUICK) as session:
        turn = await session.send("go")
        saved(session, lambda: [entry("user", turn.uuid)])
        settled = await turn

    assert settled.outcome == "interrupted"
    assert place.sent(1) == [turn.uuid]


async def test_no_tool_call_is_pending_in_a_session_that_has_ended() -> None:
    def use_tool(peer: FramePeer, frame: Frame) -> None:
        begin(peer, frame)
        if frame["type"] == "user":
            block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
            message = {"id": "msg_1", "role": "assistant", "content": [block]}
            peer.say({"type": "assistant", "message": message, "parent_tool_use_id": None})

    async with opened(Peers(use_tool)) as session:
        turn = await session.send("go")
        async for _message in turn:
            break
        during = len(session.snapshot().pending_tool_calls)

    assert (during, session.snapshot().pending_tool_calls) == (1, ())
