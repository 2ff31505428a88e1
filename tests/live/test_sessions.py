"""Which conversation it is: chosen, resumed, continued, forked, cut back, or not kept at all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steersman import Agent, Session
from steersman.errors import ResumeNotFound, SessionInUse, StartupError
from steersman.messages import Assistant
from steersman.testing.model import ScriptedModel
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted, collect, environ_of, words_of

pytestmark = pytest.mark.live

CHOSEN = "12345678-1234-4234-8234-123456789abc"
OTHER = "87654321-4321-4321-8321-cba987654321"


def transcripts(sandbox: CliSandbox) -> dict[str, list[dict[str, Any]]]:
    """What the CLI wrote, by conversation."""
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sandbox.config.glob("projects/*/*.jsonl")
    }


def heard(request: ModelRequest) -> set[str]:
    """Which of the numbered prompts and answers the model was told of."""
    words = ("prompt-1", "answer-1", "prompt-2", "answer-2", "prompt-3")
    said = json.dumps(request.body["messages"])
    return {word for word in words if word in said}


async def exchanged(session: Session, prompt: str) -> tuple[str, str]:
    """One turn: the uuids of the prompt and of the answer."""
    turn = await session.send(prompt)
    messages = await collect(turn.messages())
    answers = [each.uuid for each in messages if isinstance(each, Assistant)]
    assert answers[-1]
    return turn.uuid, answers[-1]


async def two_turns(scripted: MakeScripted) -> tuple[Agent, ScriptedModel, list[tuple[str, str]]]:
    """A conversation of two turns that is over, and an agent with one answer left."""
    agent, model = scripted(say("answer-1"), say("answer-2"), say("answer-3"))
    async with agent.session(session_id=CHOSEN) as session:
        turns = [await exchanged(session, f"prompt-{number}") for number in (1, 2)]
    return agent, model, turns


async def test_a_chosen_id_names_the_conversation_and_can_be_had_once(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("hi"), session_id=CHOSEN)

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await exchanged(session, "go")
            seen = (session.id, f"--session-id={CHOSEN}" in words_of(session.pid))
        with pytest.raises(SessionInUse):
            await agent.start()

    assert seen == (CHOSEN, True)
    assert list(transcripts(sandbox)) == [CHOSEN]


@pytest.mark.parametrize(
    ("options", "session_id"),
    [
        ({"resume": CHOSEN}, CHOSEN),
        ({"continue_conversation": True}, CHOSEN),
        ({"resume": CHOSEN, "fork_session": True, "session_id": OTHER}, OTHER),
        ({"continue_conversation": True, "fork_session": True, "session_id": OTHER}, OTHER),
    ],
    ids=["resumed", "continued", "forked", "continued-forked"],
)
async def test_a_conversation_goes_on_with_all_that_was_said(
    scripted: MakeScripted, sandbox: CliSandbox, options: dict[str, Any], session_id: str
) -> None:
    async with asyncio.timeout(LIMIT):
        agent, model, _turns = await two_turns(scripted)
        before = len(transcripts(sandbox)[CHOSEN])
        async with agent.session(**options) as session:
            await exchanged(session, "prompt-3")
            name = session.id

    assert name == session_id
    assert heard(model.asked[-1]) == {"prompt-1", "answer-1", "prompt-2", "answer-2", "prompt-3"}
    written = transcripts(sandbox)
    assert set(written) == {CHOSEN, session_id}
    # A fork leaves the old one as it was.
    assert (len(written[CHOSEN]) > before) is (session_id == CHOSEN)


@pytest.mark.parametrize("fork", [False, True], ids=["same", "forked"])
@pytest.mark.parametrize("guarded", [False, True], ids=["free", "guarded"])
async def test_a_conversation_can_be_cut_back_to_a_message(
    scripted: MakeScripted, *, fork: bool, guarded: bool
) -> None:
    async with asyncio.timeout(LIMIT):
        agent, model, turns = await two_turns(scripted)
        (_, kept), (dropped, _) = turns
        async with agent.session(
            resume=CHOSEN,
            resume_session_at=kept,
            resume_drops_turn=dropped if guarded else None,
            fork_session=fork,
        ) as session:
            await exchanged(session, "prompt-3")
            name = session.id

    assert heard(model.asked[-1]) == {"prompt-1", "answer-1", "prompt-3"}
    assert (name == CHOSEN) is not fork


async def test_cutting_back_more_than_was_meant_is_refused(scripted: MakeScripted) -> None:
    async with asyncio.timeout(LIMIT):
        agent, model, turns = await two_turns(scripted)
        (first, kept), _second = turns
        with pytest.raises(StartupError, match="resume-drops-turn"):
            await agent.start(resume=CHOSEN, resume_session_at=kept, resume_drops_turn=first)

    assert len(model.asked) == 2


async def test_what_is_not_there_cannot_be_gone_on_with(scripted: MakeScripted) -> None:
    async with asyncio.timeout(LIMIT):
        agent, _model, _turns = await two_turns(scripted)
        with pytest.raises(ResumeNotFound):
            await agent.start(resume=OTHER)
        with pytest.raises(StartupError, match="No message found"):
            await agent.start(resume=CHOSEN, resume_session_at=OTHER)


async def test_a_conversation_need_not_be_kept(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, _model = scripted(say("hi"), persist_session=False)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await exchanged(session, "go")

    assert transcripts(sandbox) == {}


async def test_a_conversation_has_the_title_that_it_was_given(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("hi"), title="A walk in the park")

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await exchanged(session, "go")

    (entries,) = transcripts(sandbox).values()
    assert "A walk in the park" in [
        each.get("customTitle") or each.get("aiTitle") or each.get("title") for each in entries
    ]


async def test_files_can_be_brought_back_when_copies_were_kept(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    file = sandbox.project / "file"
    file.write_text("as it was")
    agent, _model = scripted(
        call("Read", file_path=str(file)),
        call("Write", file_path=str(file), content="changed"),
        say("done"),
        permission_mode="acceptEdits",
        enable_file_checkpointing=True,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        variable = environ_of(session.pid)["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"]
        prompt, _answer = await exchanged(session, "change it")
        changed = file.read_text()
        await session.rewind_files(prompt)

    assert variable == "true"
    assert (changed, file.read_text()) == ("changed", "as it was")


async def test_a_prompt_is_recorded_with_the_conversation(scripted: MakeScripted) -> None:
    """A later conversation sends the first one's system prompt, unless it was told not to."""
    agent, model = scripted(say("one"), say("two"), say("three"))

    async with asyncio.timeout(LIMIT):
        async with agent.session(append_system_prompt="FIRST", session_id=CHOSEN) as session:
            await exchanged(session, "prompt-1")
        async with agent.session(append_system_prompt="SECOND", resume=CHOSEN) as session:
            await exchanged(session, "prompt-2")
        fresh = {"preset": "claude_code", "append": "THIRD", "snapshot": False}
        async with agent.session(system_prompt=fresh, resume=CHOSEN) as session:
            await exchanged(session, "prompt-3")

    told = [
        [word for word in ("FIRST", "SECOND", "THIRD") if word in request.system]
        for request in model.asked
    ]
    assert told == [["FIRST"], ["FIRST"], ["THIRD"]]
