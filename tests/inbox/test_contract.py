"""What every inbox does, in memory, in SQLite and in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import AlreadyAnswered, AskChanged, AskGone, AskNotFound, UsageError
from steersman.inbox import AskOutcome, Change
from steersman.permissions import (
    Allow,
    CanUseTool,
    Deny,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    Payload,
    UserDialog,
)
from tests.inbox.places import (
    LIMIT,
    TOOL,
    Place,
    Session,
    an_ask,
    in_memory,
    in_postgres,
    in_sqlite,
    listed,
)

QUESTIONS = CanUseTool(
    tool_name="AskUserQuestion",
    input={"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]},
)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.process)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "memory":
        made = in_memory()
    elif request.param == "sqlite":
        made = in_sqlite(tmp_path / "asks.db")
    else:
        made = in_postgres(request.getfixturevalue("postgres_url"))
    yield made
    await made.aclose()


async def test_an_ask_waits_until_it_is_answered(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    (shown,) = await session.shown()

    outcome = await session.inbox.answer(shown, Allow(), by="ann", seen=shown.digest)

    assert (shown.id, shown.payload, shown.digest) == (ask.id, ask.payload, ask.digest)
    assert outcome == AskOutcome(ask.id, "answered", "ann", Allow())
    assert await session.answers() == [(Allow(), "ann")]
    assert await listed(session.inbox) == []


async def test_of_two_answers_at_once_one_wins_and_the_other_learns_who(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()

    found = await asyncio.gather(
        session.inbox.answer(ask.id, Allow(), by="ann"),
        session.inbox.answer(ask.id, Deny("no"), by="bob"),
        return_exceptions=True,
    )

    ((answer, by),) = await session.answers()
    lost = [each for each in found if isinstance(each, AlreadyAnswered)]
    assert [(each.by, each.answer) for each in lost] == [(by, answer)]


@pytest.mark.parametrize(
    ("payload", "right", "wrong", "given"),
    [
        (TOOL, Deny("no"), True, Deny("no")),
        (TOOL, Allow({"command": "pwd"}), ElicitationAnswer("accept"), Allow({"command": "pwd"})),
        (QUESTIONS, Deny("no"), "a", Deny("no")),
        (Elicitation(mcp_server_name="m"), ElicitationAnswer("accept", {"a": 1}), Allow(), None),
        (UserDialog(dialog_kind="trust"), DialogAnswer("completed"), Allow(), None),
    ],
)
async def test_an_answer_must_be_of_the_kind_of_its_ask(
    place: Place, payload: Payload, right: Any, wrong: Any, given: Any
) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask(payload))
    await session.shown()

    with pytest.raises(UsageError):
        await session.inbox.answer(ask.id, wrong, by="ann")
    await session.inbox.answer(ask.id, right, by="ann")

    assert await session.answers() == [(given or right, "ann")]


async def test_questions_are_answered_with_what_they_offer(place: Place) -> None:
    session = Session(place.inbox())
    session.open(an_ask(QUESTIONS))
    (shown,) = await session.shown()

    await session.inbox.answer(shown, shown.questions.questions[0].answer("b"), by="ann")

    ((answer, _),) = await session.answers()
    assert shown.response(answer).updated_input["answers"] == {"Which?": "b"}


async def test_an_answer_to_another_input_than_was_shown_is_refused(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()

    with pytest.raises(AskChanged) as refused:
        await session.inbox.answer(ask.id, Allow(), by="ann", seen="0" * 64)
    inbox: Any = session.inbox
    with pytest.raises(UsageError, match="seen"):
        await inbox.answer(ask.id, Allow(), by="ann", seen=5)

    assert refused.value.digest == ask.digest
    assert session.got == []
    assert len(await listed(session.inbox)) == 1


async def test_an_answer_to_an_ask_that_was_given_is_for_what_that_ask_says(place: Place) -> None:
    session = Session(place.inbox())
    session.open(an_ask())
    (shown,) = await session.shown()
    stale = replace(shown, payload=CanUseTool(tool_name="Bash", input={"command": "ls"}))

    with pytest.raises(AskChanged) as refused:
        await session.inbox.answer(stale, Allow(), by="ann")
    waiting = len(await listed(session.inbox))
    outcome = await session.inbox.answer(shown, Allow(), by="ann")

    assert (refused.value.seen, refused.value.digest) == (stale.digest, shown.digest)
    assert waiting == 1
    assert outcome.how == "answered"


async def test_an_ask_that_the_cli_withdrew_is_closed(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()

    session.inbox.close_ask(ask, "the CLI withdrew the request")
    await session.shown(0)

    with pytest.raises(AskGone, match="withdrew"):
        await session.inbox.answer(ask.id, Allow(), by="ann")
    assert session.got == []


async def test_an_ask_expires_and_is_denied_and_a_late_answer_is_refused(place: Place) -> None:
    session = Session(place.inbox(expires_after=0.05))
    ask = session.open(an_ask())

    ((answer, by),) = await session.answers()

    assert (answer, by) == (Deny("Denied: no answer came in time."), "expiry")
    with pytest.raises(AskGone, match="expired"):
        await session.inbox.answer(ask.id, Allow(), by="ann")


async def test_an_ask_can_be_made_to_expire(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask(Elicitation(mcp_server_name="m")))
    await session.shown()

    outcome = await session.inbox.expire(ask.id, by="ann")

    assert (outcome.how, outcome.answer) == ("expired", ElicitationAnswer("decline"))
    assert await session.answers() == [(ElicitationAnswer("decline"), "ann")]


async def test_asks_are_listed_by_session_kind_and_assignee(place: Place) -> None:
    session = Session(place.inbox())
    one = session.open(an_ask(session="s1"))
    two = session.open(an_ask(QUESTIONS, session="s2"))
    await session.shown(2)

    delegated = await session.inbox.delegate(one.id, "bob")

    async def ids(**given: Any) -> list[str]:
        return [each.id for each in await session.inbox.list(**given)]

    assert delegated.assignee == "bob"
    assert await ids() == [one.id, two.id]
    assert await ids(session="s2") == await ids(kind="question") == [two.id]
    assert await ids(assignee="bob") == [one.id]


async def test_an_id_of_two_sessions_needs_the_session(place: Place) -> None:
    session = Session(place.inbox())
    session.open(an_ask(session="s1", id_="q"))
    session.open(an_ask(session="s2", id_="q"))
    await session.shown(2)

    with pytest.raises(UsageError, match="'s1', 's2'"):
        await session.inbox.answer("q", Allow(), by="ann")
    outcome = await session.inbox.answer("q", Allow(), by="ann", session="s2")
    with pytest.raises(AlreadyAnswered):
        await session.inbox.answer("q", Allow(), by="bob", session="s2")

    assert outcome.how == "answered"
    assert [each.session for each in await listed(session.inbox)] == ["s1"]


async def test_several_are_answered_and_each_has_its_own_outcome(place: Place) -> None:
    session = Session(place.inbox())
    one = session.open(an_ask(session="s1"))
    two = session.open(an_ask(QUESTIONS, session="s2"))
    await session.shown(2)

    found = await session.inbox.answer_many(
        {one.id: Allow(), two.id: "bad", "none": Allow()}, by="ann"
    )

    assert isinstance(found[one.id], AskOutcome)
    assert isinstance(found[two.id], UsageError)
    assert isinstance(found["none"], AskNotFound)


async def test_a_watcher_sees_the_life_of_asks_from_those_that_are_open(place: Place) -> None:
    session = Session(place.inbox())
    one = session.open(an_ask(session="s1"))
    await session.shown(1)
    seen: list[Change] = []

    async with asyncio.timeout(LIMIT):
        watch = session.inbox.watch()
        seen.append(await anext(watch))
        two = session.open(an_ask(session="s2"))
        seen.append(await anext(watch))
        await session.inbox.delegate(two.id, "bob")
        await session.inbox.answer(two.id, Allow(), by="ann")
        seen += [await anext(watch), await anext(watch)]
        session.inbox.close_ask(one, "gone")
        seen.append(await anext(watch))
        await watch.aclose()

    assert [(each.what, each.ask.id) for each in seen] == [
        ("opened", one.id),
        ("opened", two.id),
        ("delegated", two.id),
        ("answered", two.id),
        ("closed", one.id),
    ]
    assert seen[3].outcome == AskOutcome(two.id, "answered", "ann", Allow())


@pytest.mark.parametrize("name", ["", None, 5])
async def test_a_name_is_a_text_that_is_not_empty(place: Place, name: Any) -> None:
    inbox = place.inbox()

    for act in (inbox.answer("q", Allow(), by=name), inbox.delegate("q", name)):
        with pytest.raises(UsageError, match="a name"):
            await act


async def test_odd_names_and_texts_are_kept(place: Place) -> None:
    odd = "a\x00b\\u0000\ud800'\";--\u2028"
    session = Session(place.inbox())
    payload = CanUseTool(tool_name=odd, input={odd: [odd, 1, 1.0, 2**70]}, tool_use_id=odd)
    ask = session.open(an_ask(payload, session=odd, turn=odd, id_=odd))
    (shown,) = await session.shown()

    await session.inbox.answer(odd, Deny(odd), by=odd, session=odd, seen=shown.digest)

    assert await session.answers() == [(Deny(odd), odd)]
    assert (shown.tool_name, shown.tool_input, shown.session, shown.turn, shown.digest) == (
        odd,
        payload.input,
        odd,
        odd,
        ask.digest,
    )
