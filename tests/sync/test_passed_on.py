"""What is given to `steersman.sync` reaches the async API as it is, and so does what it answers."""

from __future__ import annotations

import gc
import inspect
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import steersman.agent
from steersman._portal.portal import shared_portal
from steersman.errors import UsageError
from steersman.inbox import Inbox as AsyncInbox
from steersman.inbox import StoredInbox, Watch
from steersman.sync import Inbox, Session, Turn

TWINS: dict[type, tuple[type, ...]] = {
    Session: (steersman.agent.Session,),
    Turn: (steersman.agent.Turn,),
    Inbox: (StoredInbox, AsyncInbox),
}
"""The classes of `steersman.sync`, each with those that it wraps."""

OTHERWISE = {
    *((Session, name) for name in ("on", "fork", "run", "interrupt", "withdraw", "close", "start")),
    (Inbox, "watch"),
}
"""Methods that do more than to pass on; they have tests of their own."""


async def completed() -> object:
    return RESULT


RESULT = SimpleNamespace(outcome="completed")
ANSWER = SimpleNamespace(uuid="5b0c7d0e-0000-4000-8000-000000000009", result=completed)
"""What every method of the async API answers; also a turn."""

MANY = ("turns", "resume_turns")
"""Methods that answer with several."""


class Played:
    """Plays an object of the async API, and notes how its methods are called."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.options = SimpleNamespace(close_grace=3.0)
        self.uuid = ANSWER.uuid

    def __getattr__(self, name: str) -> Any:
        member = inspect.getattr_static(self.kind, name)
        answer = (ANSWER,) if name in MANY else ANSWER
        if not inspect.isfunction(member):
            return answer
        signature = inspect.signature(member)

        def note(*args: object, **kwargs: object) -> object:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            self.calls.append((name, {**bound.arguments, "self": None}))
            return answer

        async def note_later(*args: object, **kwargs: object) -> object:
            return note(*args, **kwargs)

        async def items(*args: object, **kwargs: object) -> AsyncIterator[object]:
            yield note(*args, **kwargs)

        if "AsyncIterator" in str(signature.return_annotation):
            return items
        is_async = inspect.iscoroutinefunction(member) or name == "aclose"
        return note_later if is_async else note


class PlayedInbox(Played, AsyncInbox):
    """One in memory, of which some methods wait for nothing."""

    def __getattribute__(self, name: str) -> Any:
        is_here = name.startswith("_") or name in ("kind", "calls", "options")
        found = object.__getattribute__ if is_here else Played.__getattr__
        return found(self, name)


def wrapped(kind: type, played: Any) -> Any:
    """Return an object of `steersman.sync` around one that is played."""
    if kind is Turn:
        return Turn(played, played, shared_portal())
    return kind(played)


def passed_on() -> Iterator[tuple[type, type, str]]:
    for mine, others in TWINS.items():
        for name, member in vars(mine).items():
            is_method = inspect.isfunction(member) or isinstance(member, property)
            if is_method and not name.startswith("_") and (mine, name) not in OTHERWISE:
                yield from ((mine, other, name) for other in others)


@pytest.mark.parametrize("is_full", [True, False], ids=["all is given", "only what must be"])
@pytest.mark.parametrize(("mine", "other", "name"), list(passed_on()))
def test_a_method_passes_on_what_it_is_given_and_returns_the_answer(
    mine: type, other: type, name: str, *, is_full: bool
) -> None:
    played = PlayedInbox(other) if other is AsyncInbox else Played(other)
    thing = wrapped(mine, played)
    member = inspect.getattr_static(mine, name)

    if isinstance(member, property):
        assert uuids(getattr(thing, name)) == uuids(played.__getattr__(name))
        return
    args, kwargs = given(member, is_full=is_full and (mine, name) != (Turn, "result"))
    found = getattr(thing, name)(*args, **kwargs)

    answered = list(found) if isinstance(found, Iterator) else found
    answers = inspect.signature(member).return_annotation != "None"
    assert uuids(answered) == (uuids(ANSWER) if answers else None)
    expected = inspect.signature(inspect.getattr_static(other, name)).bind(None, *args, **kwargs)
    expected.apply_defaults()
    assert played.calls == [(name, expected.arguments)]


def given(member: Any, *, is_full: bool) -> tuple[list[object], dict[str, object]]:
    """Return an argument of its own for each parameter, or only for those that need one."""
    args, kwargs = list[object](), dict[str, object]()
    for each in [*inspect.signature(member).parameters.values()][1:]:
        if each.kind is each.VAR_KEYWORD:
            kwargs |= {"further": "further"} if is_full else {}
        elif is_full or each.default is each.empty:
            if each.kind is each.KEYWORD_ONLY:
                kwargs[each.name] = f"the {each.name}"
            else:
                args.append(f"the {each.name}")
    return args, kwargs


def uuids(answer: Any) -> object:
    """Return the uuid of an answer, which may be a turn, or several."""
    if isinstance(answer, tuple | list):
        (answer,) = answer
    return getattr(answer, "uuid", answer)


def test_run_sends_its_prompt_as_it_is_given_and_returns_the_result() -> None:
    played = Played(steersman.agent.Session)

    assert Session(as_given(played)).run("hi", when="now", key="k") is as_given(RESULT)

    ((name, sent),) = played.calls
    assert (name, sent["prompt"], sent["when"], sent["key"]) == ("send", "hi", "now", "k")


@pytest.mark.parametrize("also_queued", [True, False])
def test_a_turn_is_interrupted_and_withdrawn_by_itself_and_through_its_session(
    *, also_queued: bool
) -> None:
    played, turn = Played(steersman.agent.Session), Played(steersman.agent.Turn)
    session = Session(as_given(played))
    mine = Turn(session, as_given(turn), shared_portal())

    session.interrupt(also_queued=also_queued)
    session.interrupt(turn=mine, also_queued=also_queued)
    session.withdraw(mine)

    of_all = {"self": None, "turn": None, "also_queued": also_queued}
    assert played.calls == [("interrupt", of_all)]
    of_one = {"self": None, "also_queued": also_queued}
    assert turn.calls == [("interrupt", of_one), ("withdraw", {"self": None})]


def test_only_a_turn_of_the_session_is_interrupted_or_withdrawn() -> None:
    session = Session(as_given(Played(steersman.agent.Session)))
    other = Session(as_given(Played(steersman.agent.Session))).turn("x")

    for given in (other, "x", None):
        with pytest.raises(UsageError, match="a Turn of this session"):
            session.withdraw(as_given(given))
    with pytest.raises(UsageError, match="a Turn of this session"):
        session.interrupt(turn=other)


def test_a_turn_has_one_wrapper_as_long_as_anything_refers_to_it() -> None:
    session = Session(as_given(Played(steersman.agent.Session)))

    first = session.send("hi")

    assert session.turn("x") is session.turns[0] is session.resume_turns()[0] is first
    assert first.session is session


def test_a_watch_that_nothing_reads_is_closed() -> None:
    closed: list[Watch] = []
    played = Played(StoredInbox)
    watch = shared_portal().do(lambda: Watch(closed.append))
    vars(played)["watch"] = lambda: watch
    reader = Inbox(as_given(played)).watch()

    assert closed == []
    del reader
    gc.collect()
    shared_portal().do(lambda: None)
    shared_portal().do(lambda: None)

    assert closed == [watch]


def as_given(thing: object) -> Any:
    """Return `thing`, for a parameter that needs the real type."""
    return thing
