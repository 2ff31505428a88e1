from __future__ import annotations

import asyncio
import contextvars
from typing import Any

from steersman.hooks import Hooks, PreToolUse
from steersman.messages import Assistant, Init, Result
from steersman.permissions import Allow, PermissionContext
from steersman.testing.script import Script, call, cut, fail, say, stall, when
from steersman.testing.scripted.cli import ScriptedCLI
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


async def test_three_prompts_at_once_settle_as_three_turns() -> None:
    script = Script(*(when(name, say(f"about {name}")) for name in ("red", "green", "blue")))

    async with opened(ScriptedCLI(script)) as session:
        turns = [await session.send(name) for name in ("red", "green", "blue")]
        settled = await asyncio.gather(*turns)

    assert [each.text for each in settled] == ["about red", "about green", "about blue"]
    assert [each.outcome for each in settled] == ["completed"] * 3
    assert [each.uuid for each in settled] == [turn.uuid for turn in turns]


async def test_the_cli_gets_one_prompt_at_a_time() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done")))

    async with opened(cli) as session:
        first = await session.send("one")
        second = await session.send("two")
        await cli.wait_for_stall()
        sent_meanwhile = [frame["uuid"] for frame in cli.received if frame["type"] == "user"]
        await cli.release()
        await second

    assert sent_meanwhile == [first.uuid]


async def test_the_pieces_of_text_make_the_text_of_the_result() -> None:
    script = Script(say("I look. ", 3) + call("Read", file_path="a"), say("Nothing there.", 4))

    async with opened(ScriptedCLI(script)) as session:
        turn = await session.send("look")
        pieces = [piece async for piece in turn.text()]
        settled = await turn

    assert "".join(pieces) == settled.text == "I look. \n\nNothing there."
    assert settled.answer == "Nothing there."
    assert len(pieces) > 5


async def test_a_stream_that_broke_off_is_not_told_twice() -> None:
    script = Script(say("once upon", 2) + cut(), say("once upon a time", 4))

    async with opened(ScriptedCLI(script)) as session:
        turn = await session.send("a story")
        pieces = [piece async for piece in turn.text()]
        settled = await turn

    assert "".join(pieces) == settled.text == "once upon a time"


async def test_cost_and_usage_belong_to_the_turn_that_caused_them() -> None:
    async with opened(ScriptedCLI(Script(say("one"), say("two")))) as session:
        settled = [await (await session.send(name)) for name in ("first", "second")]

    assert [each.usage.input_tokens for each in settled] == [100, 100]
    assert [each.cost_usd for each in settled] == [0.00042, 0.00042]
    assert session.cost_usd == 0.00084


async def test_a_prompt_that_asks_nothing_settles_and_opens_the_next_one() -> None:
    cli = ScriptedCLI()

    async with opened(cli) as session:
        silent = await session.send("The sky is green.", query=False)
        asking = await session.send("What colour is it?")
        settled = [await silent, await asking]

    assert [each.text for each in settled] == ["", "Echo: What colour is it?"]
    assert [each.outcome for each in settled] == ["completed", "completed"]
    (request,) = cli.asked
    assert request.latest == "The sky is green.\n\nWhat colour is it?"


async def test_a_turn_has_its_own_messages_and_no_others() -> None:
    async with opened(ScriptedCLI(Script(say("one"), say("two")))) as session:
        turns = [await session.send(name) for name in ("first", "second")]
        seen = [[message async for message in turn] for turn in turns]

    kinds = [[type(message) for message in each if not _is_status(message)] for each in seen]
    assert kinds == [[Init, Assistant, Result]] * 2
    assert [each[-1].result for each in seen if isinstance(each[-1], Result)] == ["one", "two"]


async def test_a_turn_that_nobody_asked_for_leaks_into_no_other() -> None:
    """A background task ends while our prompt waits: its turn runs first, with its own result."""
    foreign = {"kind": "task-notification", "task_id": "t1"}

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] != "user":
            return
        uuid = frame["uuid"]
        peer.say(
            state("running"),
            lifecycle(uuid, "queued"),
            text("the shell has ended", "msg_background"),
            result([], "the shell has ended", origin=foreign, total_cost_usd=0.5),
            lifecycle(uuid, "started"),
            text("hello", "msg_ours", user_message_uuids=[uuid]),
            result([uuid], "hello", total_cost_usd=0.75),
            lifecycle(uuid, "completed"),
            state("idle"),
        )

    async with opened(FramePeer(play).transport) as session:
        turn = await session.send("hi")
        pieces = [piece async for piece in turn.text()]
        settled = await turn

    assert (settled.text, settled.answer, settled.outcome) == ("hello", "hello", "completed")
    assert pieces == ["hello"]
    assert settled.cost_usd == 0.25
    assert session.cost_usd == 0.75


async def test_frames_of_a_background_agent_stay_with_the_prompt_that_started_it() -> None:
    """A subagent of the first prompt still speaks while the second one runs."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] != "user":
            return
        uuid, is_first = frame["uuid"], not peer.sent("user")[1:]
        peer.say(lifecycle(uuid, "started"))
        if is_first:
            started = {"type": "system", "subtype": "task_started", "tool_use_id": "toolu_1"}
            peer.say({**started, "task_id": "t1"}, text("started it", "msg_1"))
        else:
            peer.say(text("deep thoughts", "msg_sub", parent_tool_use_id="toolu_1"))
            peer.say(text("second answer", "msg_2"))
        peer.say(result([uuid]), lifecycle(uuid, "completed"), state("idle"))

    async with opened(FramePeer(play).transport) as session:
        first, second = await session.send("one"), await session.send("two")
        settled = [await first, await second]
        of_second = [message.text async for message in second if isinstance(message, Assistant)]

    assert [each.text for each in settled] == ["started it", "second answer"]
    assert of_second == ["second answer"]
    owners = {e.turns for e in await entries_of(session) if b"deep thoughts" in e.line}
    assert owners == {(first.uuid,)}


async def test_a_prompt_that_is_merged_into_another_turn_settles_with_its_result() -> None:
    """One result names two prompts, one of them not ours: a host before us had queued it."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(
                lifecycle("somebody-elses", "started"),
                lifecycle(uuid, "started"),
                text("for both"),
                result(["somebody-elses", uuid], "for both"),
                lifecycle(uuid, "completed"),
                state("idle"),
            )

    async with opened(FramePeer(play).transport) as session:
        settled = await (await session.send("hi"))

    assert (settled.outcome, settled.text) == ("completed", "for both")


async def test_a_folded_prompt_that_completes_before_its_result_waits_for_it() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            uuid = frame["uuid"]
            peer.say(
                lifecycle(uuid, "started"),
                text("folded in"),
                lifecycle(uuid, "completed"),
                result(["older", uuid], "folded in"),
                state("idle"),
            )

    async with opened(FramePeer(play).transport) as session:
        settled = await (await session.send("hi"))

    assert settled.result is not None
    assert settled.answer == "folded in"


async def test_a_prompt_that_completes_without_a_result_settles_when_the_cli_is_idle() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(lifecycle(frame["uuid"], "started"), lifecycle(frame["uuid"], "completed"))
            peer.say(state("idle"))

    async with opened(FramePeer(play).transport) as session:
        settled = await (await session.send("hi"))

    assert (settled.outcome, settled.result) == ("completed", None)


async def test_an_older_cli_settles_by_replays() -> None:
    """No lifecycle, and results that name nobody."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            replay = {**frame, "isReplay": True}
            peer.say(replay, text("old answer"), result([], "old answer"))

    async with opened(FramePeer(play).transport) as session:
        settled = [await (await session.send(name)) for name in ("one", "two")]

    assert [each.text for each in settled] == ["old answer", "old answer"]


async def test_an_api_failure_is_a_failed_turn_though_the_cli_calls_it_success() -> None:
    async with opened(ScriptedCLI(Script(fail(400, "bad request"), say("fine")))) as session:
        failed = await (await session.send("one"))
        fine = await (await session.send("two"))

    assert (failed.outcome, failed.api_error) == ("failed", 400)
    assert failed.answer == "API Error: 400 bad request"
    assert fine.outcome == "completed"


async def test_retries_are_messages_and_the_turn_completes() -> None:
    script = Script(fail(529), fail(529), say("recovered"))

    async with opened(ScriptedCLI(script)) as session:
        turn = await session.send("one")
        names = [message.raw.get("subtype") async for message in turn]
        settled = await turn

    assert names.count("api_retry") == 2
    assert (settled.outcome, settled.text) == ("completed", "recovered")


async def test_a_wrong_key_fails_the_turn_as_not_logged_in() -> None:
    cli = ScriptedCLI(Script(*[fail(401)] * 20), retry_pace=0.001)

    async with opened(cli) as session:
        settled = await (await session.send("one"))

    assert settled.outcome == "failed"
    assert type(settled.cause).__name__ == "NotLoggedIn"
    assert len(cli.asked) < 6


async def test_state_follows_what_the_session_waits_for() -> None:
    seen: list[str] = []
    asked = asyncio.Event()
    decide = asyncio.Event()

    async def approve(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
        asked.set()
        await decide.wait()
        return Allow()

    def note() -> str:
        """Note the state."""
        seen.append(session.state)
        return "noted"

    script = Script(call("mcp__functions__note"), call("Bash", command="touch x"), say("done"))
    async with opened(ScriptedCLI(script), functions=[note], can_use_tool=approve) as session:
        seen.append(session.state)
        turn = await session.send("go")
        seen.append(session.state)
        await asked.wait()
        seen.append(session.state)
        decide.set()
        await turn
        await _idle(session)
        seen.append(session.state)
    seen.append(session.state)

    assert seen == [
        "idle",
        "running",
        "waiting_tool_call",
        "waiting_permission",
        "idle",
        "completed",
    ]


REQUEST = contextvars.ContextVar("request", default="nobody's")


async def test_tools_hooks_and_approvers_run_in_the_context_of_their_send() -> None:
    seen: list[tuple[str, str]] = []
    hooks = Hooks()

    @hooks.on(PreToolUse)
    def look(_event: PreToolUse) -> None:
        seen.append(("hook", REQUEST.get()))

    def approve(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
        seen.append(("approver", REQUEST.get()))
        return Allow()

    async def note() -> str:
        """Note whose request it is."""
        seen.append(("tool", REQUEST.get()))
        return "noted"

    one = (call("mcp__functions__note"), call("Bash", command="touch x"), say("done"))
    cli = ScriptedCLI(Script(*one, *one))
    async with opened(cli, functions=[note], hooks=hooks, can_use_tool=approve) as session:
        turns = []
        for name in ("first", "second"):
            REQUEST.set(name)
            turns.append(await session.send(name))
        REQUEST.set("later")
        await asyncio.gather(*turns)

    whose = ["hook", "tool", "hook", "approver"]
    assert seen == [(who, name) for name in ("first", "second") for who in whose]


async def _idle(session: Any) -> None:
    async for entry in session.journal():
        if entry.details.get("after") == "idle" and entry.details.get("before") == "running":
            return


def _is_status(message: object) -> bool:
    return type(message).__name__ == "Status"
