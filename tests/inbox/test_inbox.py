"""Asks wait as data; the first answer counts, and the others learn who was first."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from steersman.errors import AlreadyAnswered, AskGone, AskNotFound, ReaderLagged, UsageError
from steersman.inbox import AskOutcome, Change, Inbox
from steersman.inbox.changes import MOST_WAITING
from steersman.inbox.inbox import REMEMBERED
from steersman.permissions import (
    Allow,
    Ask,
    CanUseTool,
    Deny,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    Payload,
    UserDialog,
)

PERMISSION = CanUseTool(tool_name="Bash", input={"command": "ls"})
QUESTION = CanUseTool(
    tool_name="AskUserQuestion",
    input={"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]},
)
FORM = Elicitation(mcp_server_name="paint")
DIALOG = UserDialog(dialog_kind="trust")


class Session:
    """The session that opened an ask, and the answers that it received."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.told: list[tuple[Any, str]] = []

    def ask(self, id_: str = "q1", payload: Payload = PERMISSION, session: str = "s1") -> Ask:
        ask = Ask(id=id_, session=session, payload=payload, created=1.0)
        self.inbox.open(ask, lambda answer, by: self.told.append((answer, by)))
        return ask


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(clock=lambda: 100.0)


@pytest.fixture
def session(inbox: Inbox) -> Session:
    return Session(inbox)


async def test_an_ask_waits_until_somebody_answers(inbox: Inbox, session: Session) -> None:
    ask = session.ask()
    assert (await inbox.list(), await inbox.get("q1")) == ([ask], ask)

    outcome = await inbox.answer("q1", Allow(), by="ann")

    assert outcome == AskOutcome("q1", "answered", "ann", Allow())
    assert session.told == [(Allow(), "ann")]
    assert await inbox.list() == []


async def test_two_answers_race_for_one_ask_and_exactly_one_wins(
    inbox: Inbox, session: Session
) -> None:
    session.ask()

    first, second = await asyncio.gather(
        inbox.answer("q1", Allow(), by="ann"),
        inbox.answer("q1", Deny("no"), by="bob"),
        return_exceptions=True,
    )

    assert isinstance(first, AskOutcome)
    assert isinstance(second, AlreadyAnswered)
    assert (second.by, second.answer) == ("ann", Allow())
    assert session.told == [(Allow(), "ann")]


def test_answers_from_many_threads_have_one_winner(inbox: Inbox, session: Session) -> None:
    session.ask()
    together = threading.Barrier(8)
    won: list[str] = []
    lost: list[str] = []

    def answer(name: str) -> None:
        together.wait(5)
        try:
            asyncio.run(inbox.answer("q1", Allow(), by=name))
        except AlreadyAnswered as error:
            lost.append(error.by)
        else:
            won.append(name)

    threads = [threading.Thread(target=answer, args=(f"n{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert len(won) == 1
    assert lost == won * 7
    assert session.told == [(Allow(), won[0])]


async def test_an_ask_whose_session_ended_cannot_be_answered(
    inbox: Inbox, session: Session
) -> None:
    session.ask()
    inbox.close("q1", "its session has ended")

    with pytest.raises(AskGone, match="session has ended"):
        await inbox.answer("q1", Allow(), by="ann")
    with pytest.raises(AskGone):
        await inbox.get("q1")

    assert session.told == []


async def test_an_id_that_was_never_here_is_said_to_be_unknown(inbox: Inbox) -> None:
    with pytest.raises(AskNotFound):
        await inbox.answer("nope", Allow(), by="ann")

    inbox.close("nope", "no matter")


@pytest.mark.parametrize(
    ("payload", "right", "wrong"),
    [
        (PERMISSION, Deny("no"), True),
        (PERMISSION, Allow(), ElicitationAnswer("accept")),
        (QUESTION, Deny("no"), "a"),
        (FORM, ElicitationAnswer("accept", {}), Allow()),
        (DIALOG, DialogAnswer("completed"), Allow()),
    ],
)
async def test_an_answer_of_another_kind_is_refused_and_the_ask_stays(
    inbox: Inbox, session: Session, payload: Payload, right: Any, wrong: Any
) -> None:
    session.ask(payload=payload)

    with pytest.raises(UsageError):
        await inbox.answer("q1", wrong, by="ann")
    await inbox.answer("q1", right, by="ann")

    assert session.told == [(right, "ann")]


async def test_questions_are_answered_with_their_own_words(inbox: Inbox, session: Session) -> None:
    ask = session.ask(payload=QUESTION)

    await inbox.answer("q1", ask.questions.answer("b"), by="ann")

    (answer, _), given = session.told[0], QUESTION.input
    assert ask.kind == "question"
    assert ask.response(answer) == Allow({**given, "answers": {"Which?": "b"}})


@pytest.mark.parametrize(
    ("payload", "refusal"),
    [
        (PERMISSION, Deny("Denied: no answer came in time.")),
        (QUESTION, Deny("Denied: no answer came in time.")),
        (FORM, ElicitationAnswer("decline")),
        (DIALOG, DialogAnswer("cancelled")),
    ],
)
async def test_what_expires_lets_nothing_through(
    inbox: Inbox, session: Session, payload: Payload, refusal: Any
) -> None:
    session.ask(payload=payload)

    outcome = await inbox.expire("q1", by="the night shift")

    assert outcome == AskOutcome("q1", "expired", "the night shift", refusal)
    assert session.told == [(refusal, "the night shift")]
    with pytest.raises(AskGone, match="expired"):
        await inbox.answer("q1", Allow(), by="ann")


async def test_asks_expire_by_themselves_only_if_told_to() -> None:
    patient, strict = Inbox(clock=lambda: 100.0), Inbox(expires_after=0.01, clock=lambda: 100.0)
    session = Session(strict)
    assert Session(patient).ask().expires is None

    watch = strict.watch()
    session.ask()
    async with asyncio.timeout(5):
        opened, expired = await anext(watch), await anext(watch)

    assert (opened.what, opened.ask.expires) == ("opened", 100.01)
    assert (expired.what, [by for _, by in session.told]) == ("expired", ["expiry"])
    assert len(await patient.list()) == 1


async def test_an_ask_that_was_answered_does_not_expire_later() -> None:
    inbox = Inbox(expires_after=0.01)
    session = Session(inbox)
    session.ask("q1")
    await inbox.answer("q1", Allow(), by="ann")
    session.ask("q2")

    watch = inbox.watch()
    async with asyncio.timeout(5):
        changes = [await anext(watch), await anext(watch)]

    assert [(each.what, each.ask.id) for each in changes] == [("opened", "q2"), ("expired", "q2")]
    assert session.told[0] == (Allow(), "ann")


async def test_many_are_answered_at_once_and_one_that_fails_stops_no_other(
    inbox: Inbox, session: Session
) -> None:
    for number in range(3):
        session.ask(f"q{number}")
    session.ask("form", FORM)
    await inbox.answer("q1", Deny("mine"), by="bob")

    found = await inbox.answer_many(["q0", "q1", "q2", "form", "nope"], Allow(), by="ann")

    kinds = {ask_id: type(each).__name__ for ask_id, each in found.items()}
    assert kinds == {
        "q0": "AskOutcome",
        "q1": "AlreadyAnswered",
        "q2": "AskOutcome",
        "form": "UsageError",
        "nope": "AskNotFound",
    }
    assert [ask.id for ask in await inbox.list()] == ["form"]


async def test_many_may_have_an_answer_each(inbox: Inbox, session: Session) -> None:
    session.ask("q1")
    session.ask("q2")

    await inbox.answer_many({"q1": Allow(), "q2": Deny("no")}, by="ann")

    assert session.told == [(Allow(), "ann"), (Deny("no"), "ann")]


async def test_an_ask_can_be_handed_to_somebody_and_anybody_still_answers(
    inbox: Inbox, session: Session
) -> None:
    session.ask("q1")
    session.ask("q2", FORM, session="s2")

    handed = await inbox.delegate("q1", "carol")

    assert handed.assignee == "carol"
    assert await inbox.list(assignee="carol") == [handed]
    assert [ask.id for ask in await inbox.list(kind="elicitation")] == ["q2"]
    assert [ask.id for ask in await inbox.list(session="s1")] == ["q1"]
    await inbox.answer("q1", Allow(), by="bob")
    with pytest.raises(AlreadyAnswered):
        await inbox.delegate("q1", "dave")


async def test_watching_begins_with_what_waits_and_tells_all_that_happens(
    inbox: Inbox, session: Session
) -> None:
    first = session.ask("q1")
    watch = inbox.watch()
    second = session.ask("q2")
    handed = await inbox.delegate("q2", "carol")
    answered = await inbox.answer("q1", Allow(), by="ann")
    inbox.close("q2", "gone")

    async with asyncio.timeout(5):
        changes = [await anext(watch) for _ in range(5)]
        await watch.aclose()
        after = [change async for change in watch]

    assert changes == [
        Change("opened", first),
        Change("opened", second),
        Change("delegated", handed),
        Change("answered", first, answered),
        Change("closed", handed, AskOutcome("q2", "closed", "gone")),
    ]
    assert after == []


async def test_a_watcher_that_waits_is_woken_from_another_thread(
    inbox: Inbox, session: Session
) -> None:
    watch = inbox.watch()
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)

    await asyncio.to_thread(session.ask)

    async with asyncio.timeout(5):
        assert (await waiting).what == "opened"


async def test_a_watcher_in_another_event_loop_is_refused_and_does_not_wait_for_ever(
    inbox: Inbox,
) -> None:
    watch = inbox.watch()

    async def read() -> Change:
        async with asyncio.timeout(5):
            return await anext(watch)

    with pytest.raises(UsageError, match=r"the one in which inbox.watch\(\) was called"):
        await asyncio.to_thread(asyncio.run, read())


def test_watching_without_an_event_loop_is_refused(inbox: Inbox) -> None:
    with pytest.raises(UsageError, match="a running asyncio event loop"):
        inbox.watch()


async def test_a_watcher_that_is_too_slow_is_told_and_keeps_no_more_than_it_must(
    inbox: Inbox, session: Session
) -> None:
    watch = inbox.watch()
    for number in range(MOST_WAITING + 3):
        session.ask(f"q{number}")

    async with asyncio.timeout(30):
        for _ in range(MOST_WAITING):
            await anext(watch)
        with pytest.raises(ReaderLagged) as caught:
            await anext(watch)
        session.ask("later")
        after = await anext(watch)
        session.ask("last")
        last = await anext(watch)

    assert (caught.value.lost, after.ask.id, last.ask.id) == (3, "later", "last")


async def test_a_watcher_that_lost_changes_is_told_so_once(inbox: Inbox, session: Session) -> None:
    watch = inbox.watch()
    for number in range(MOST_WAITING + 1):
        session.ask(f"q{number}")

    async with asyncio.timeout(30):
        for _ in range(MOST_WAITING):
            await anext(watch)
        with pytest.raises(ReaderLagged):
            await anext(watch)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        assert not waiting.done()
        await watch.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting


@pytest.mark.parametrize("seconds", [0, -1, "5", True])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(UsageError):
        Inbox(expires_after=seconds)


@pytest.mark.parametrize("name", ["", 5, None])
async def test_who_answers_has_a_name(inbox: Inbox, session: Session, name: Any) -> None:
    session.ask()

    refused: list[UsageError] = []
    for act in (
        inbox.answer("q1", Allow(), by=name),
        inbox.expire("q1", by=name),
        inbox.delegate("q1", name),
    ):
        with pytest.raises(UsageError, match="a name that is not empty") as no:
            await act
        refused.append(no.value)

    assert [each.argument for each in refused] == ["by", "by", "to"]
    assert all(f"got {name!r}" in str(each) for each in refused)


async def test_an_ask_of_a_second_session_under_the_same_id_does_not_replace_the_first(
    inbox: Inbox,
) -> None:
    one, two = Session(inbox), Session(inbox)
    first, second = one.ask(session="s1"), two.ask(session="s2")

    assert await inbox.list() == [first, second]
    await inbox.answer("q1", Deny("no"), by="ann", session="s2")
    await inbox.answer("q1", Allow(), by="ann", session="s1")

    assert (one.told, two.told) == ([(Allow(), "ann")], [(Deny("no"), "ann")])


async def test_an_id_of_two_sessions_is_refused_and_both_are_named(inbox: Inbox) -> None:
    one, two = Session(inbox), Session(inbox)
    one.ask(session="s1")
    two.ask(session="s2")

    for call in (
        inbox.answer("q1", Allow(), by="ann"),
        inbox.expire("q1"),
        inbox.delegate("q1", "bob"),
    ):
        with pytest.raises(UsageError, match=r"'s1', 's2'"):
            await call
    assert one.told == two.told == []


async def test_a_late_answer_to_one_session_does_not_answer_the_other(inbox: Inbox) -> None:
    one, two = Session(inbox), Session(inbox)
    one.ask(session="s1")
    await inbox.answer("q1", Allow(), by="ann")
    two.ask(session="s2")

    with pytest.raises(UsageError):
        await inbox.answer("q1", Allow(), by="bob")
    with pytest.raises(AlreadyAnswered):
        await inbox.answer("q1", Allow(), by="bob", session="s1")

    assert two.told == []


async def test_a_session_closes_only_its_own_ask(inbox: Inbox) -> None:
    first = Session(inbox).ask(session="s1")
    second = Session(inbox).ask(session="s2")

    inbox.close_ask(first, "its session has ended")

    assert await inbox.list() == [second]


async def test_each_of_two_asks_under_one_id_expires() -> None:
    inbox = Inbox(expires_after=0.01)
    one, two = Session(inbox), Session(inbox)
    watch = inbox.watch()
    one.ask(session="s1")
    two.ask(session="s2")

    async with asyncio.timeout(5):
        changes = [await anext(watch) for _ in range(4)]

    assert [each.what for each in changes] == ["opened", "opened", "expired", "expired"]
    assert [by for _, by in one.told + two.told] == ["expiry", "expiry"]


async def test_an_ask_itself_may_be_answered_delegated_and_expired(
    inbox: Inbox, session: Session
) -> None:
    first, second, other = session.ask("q1"), session.ask("q2"), session.ask("q1", session="s2")

    assigned = await inbox.delegate(first, "bob")
    answered = await inbox.answer(assigned, Allow(), by="ann")
    expired = await inbox.expire(second)

    assert (assigned.assignee, answered.ask_id, expired.how) == ("bob", "q1", "expired")
    assert await inbox.list() == [other]


async def test_an_ask_of_another_session_than_the_named_one_is_refused(
    inbox: Inbox, session: Session
) -> None:
    ask = session.ask()

    with pytest.raises(UsageError, match="'s1', the session of this ask"):
        await inbox.answer(ask, Allow(), session="s2")


async def test_a_watcher_that_is_closed_is_told_nothing_more(
    inbox: Inbox, session: Session
) -> None:
    watch, other = inbox.watch(), inbox.watch()

    await watch.aclose()
    await watch.aclose()
    session.ask()

    assert [each async for each in watch] == []
    assert (await anext(other)).what == "opened"
    assert inbox._watchers == [other]  # a watcher that was closed takes no memory


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (AskOutcome("q1", "expired", "expiry"), "it has expired and was denied by expiry"),
        (AskOutcome("q1", "closed", "it ended"), "the session no longer waits for it: it ended"),
    ],
)
def test_a_late_answer_learns_how_the_ask_ended(outcome: AskOutcome, text: str) -> None:
    error = outcome.error()

    assert type(error) is AskGone
    assert "q1" in str(error)
    assert text in str(error)


async def test_an_ask_of_one_of_two_sessions_can_be_delegated(
    inbox: Inbox, session: Session
) -> None:
    session.ask(session="s1")
    session.ask(session="s2")

    delegated = await inbox.delegate("q1", "ann", session="s2")

    assert (delegated.session, delegated.assignee) == ("s2", "ann")
    assert (await inbox.get("q1", session="s1")).assignee is None


async def test_who_does_not_say_a_name_is_somebody(inbox: Inbox, session: Session) -> None:
    session.ask("q1")
    session.ask("q2")

    outcomes = [await inbox.answer("q1", Allow()), await inbox.expire("q2")]

    assert [each.by for each in outcomes] == ["somebody", "expiry"]


async def test_the_oldest_outcomes_are_forgotten_and_their_ids_are_free(inbox: Inbox) -> None:
    session = Session(inbox)
    for number in range(REMEMBERED + 1):
        session.ask(f"q{number}", session="s1")
        await inbox.answer(f"q{number}", Allow(), by="ann")

    with pytest.raises(AskNotFound, match="q0"):
        await inbox.get("q0")
    with pytest.raises(AlreadyAnswered):
        await inbox.get("q1")
    session.ask("q0", session="s2")
    session.ask("q1", session="s2")
    assert (await inbox.get("q0")).session == "s2"
    with pytest.raises(UsageError, match="each has an ask 'q1'"):
        await inbox.get("q1")
