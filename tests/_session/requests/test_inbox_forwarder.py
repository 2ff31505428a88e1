"""Requests in an inbox of the caller's own, which may answer from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman._session.requests.permissions import DEFERRED, InboxForwarder, response_of
from steersman.journal import Kind
from steersman.permissions import Allow, Ask, CanUseTool, Deny, DialogAnswer, UserDialog

TOOL = CanUseTool(tool_name="Bash", input={}, tool_use_id="t1", agent_id="a1")


class Plain:
    """An inbox with the two methods that every inbox has."""

    def __init__(self) -> None:
        self.opened: dict[str, tuple[Ask, Callable[[Any, str], None]]] = {}
        self.closed: list[tuple[Any, str]] = []

    def open(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        self.opened[ask.id] = (ask, settle)

    def close(self, ask_id: str, reason: str) -> None:
        self.closed.append((ask_id, reason))


class OfSessions(Plain):
    """An inbox that can close the ask of one session."""

    def close_ask(self, ask: Ask, reason: str) -> None:
        self.closed.append((ask, reason))


class Put:
    """A forwarder with one request in its inbox, and what became of it."""

    def __init__(self, inbox: Plain, payload: Any = TOOL, build: Any = None) -> None:
        self.inbox = inbox
        self.faults: list[tuple[str, object]] = []
        self.notes: list[tuple[Kind, dict[str, Any]]] = []
        self.replies: list[tuple[str, object]] = []
        self.forwarder = InboxForwarder(
            inbox,
            lambda kind, **details: self.notes.append((kind, details)),
            lambda: "u1",
            lambda: 5.0,
            lambda where, error: self.faults.append((where, error)),
        )
        found = self.forwarder.put(
            "q1",
            payload,
            "s1",
            build or (lambda ask, answer, by: (ask.id, answer, by)),
            lambda request_id, answer: self.replies.append((request_id, answer)),
        )
        assert found is DEFERRED


async def test_a_request_becomes_an_ask_and_a_note() -> None:
    put = Put(Plain())

    ask, _ = put.inbox.opened["q1"]
    assert ask == Ask(id="q1", session="s1", payload=TOOL, created=5.0, turn="u1")
    details = {
        "id": "q1",
        "ask": "permission",
        "tool": "Bash",
        "tool_use_id": "t1",
        "agent": "a1",
        "turn": "u1",
    }
    assert put.notes == [(Kind.ASKED, details)]


async def test_a_note_has_no_empty_details() -> None:
    put = Put(Plain(), UserDialog(dialog_kind="k"))

    assert put.notes == [(Kind.ASKED, {"id": "q1", "ask": "dialog", "turn": "u1"})]


async def test_an_answer_in_the_loop_of_the_session_is_sent_at_once() -> None:
    put = Put(Plain())
    _, settle = put.inbox.opened["q1"]

    settle("yes", "ann")

    assert put.replies == [("q1", ("q1", "yes", "ann"))]


async def test_an_answer_of_another_thread_is_sent_in_the_loop_of_the_session() -> None:
    put = Put(Plain())
    _, settle = put.inbox.opened["q1"]

    await asyncio.to_thread(settle, "yes", "ann")
    await asyncio.sleep(0)

    assert put.replies == [("q1", ("q1", "yes", "ann"))]


async def test_an_answer_that_cannot_be_used_is_a_denial_and_is_reported() -> None:
    error = KeyError("x")

    def fails(*_: object) -> None:
        raise error

    put = Put(Plain(), build=fails)
    _, settle = put.inbox.opened["q1"]

    settle("yes", "ann")

    assert put.replies == [("q1", Deny("Denied: the answer failed: KeyError."))]
    assert put.faults == [("inbox", error)]


@pytest.mark.parametrize("make", [Plain, OfSessions])
async def test_a_withdrawn_request_leaves_the_inbox_once(make: type[Plain]) -> None:
    put = Put(make())
    ask, _ = put.inbox.opened["q1"]

    put.forwarder.withdraw("other", "gone")
    put.forwarder.withdraw("q1", "gone")
    put.forwarder.withdraw("q1", "again")

    assert put.inbox.closed == [("q1" if make is Plain else ask, "gone")]


async def test_an_answered_request_cannot_be_withdrawn() -> None:
    put = Put(Plain())
    _, settle = put.inbox.opened["q1"]

    settle("yes", "ann")
    put.forwarder.withdraw("q1", "gone")

    assert put.inbox.closed == []


@pytest.mark.parametrize(
    ("payload", "answer", "response"),
    [
        (TOOL, Allow(), Allow()),
        (TOOL, "yes", Deny("Denied: the answer is not valid for this request.")),
        (UserDialog(dialog_kind="k"), Allow(), DialogAnswer("cancelled")),
    ],
)
def test_an_answer_of_the_wrong_kind_refuses(
    payload: Any, answer: object, response: object
) -> None:
    ask = Ask(id="q1", session="s1", payload=payload, created=5.0)

    assert response_of(ask, answer) == response
