"""Requests in an inbox of the caller's own, which may answer from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman._session.requests.permissions import DEFERRED, InboxForwarder, response_of
from steersman.journal import Entry, Kind
from steersman.journal.decisions import ask_of
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


class Durable(Plain):
    """An inbox that outlives its process."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[Callable[[BaseException], None]] = []

    def keep(
        self,
        ask: Ask,
        settle: Callable[[Any, str], None],
        report: Callable[[BaseException], None],
    ) -> None:
        self.open(ask, settle)
        self.reports.append(report)

    def close_ask(self, ask: Ask, reason: str, *, may_return: bool = False) -> None:
        self.closed.append((ask.id, f"{reason}, may return: {may_return}"))


class Put:
    """A forwarder with one request in its inbox, and what became of it."""

    def __init__(self, inbox: Plain, payload: Any = TOOL, build: Any = None) -> None:
        self.inbox = inbox
        self.notes: list[tuple[Kind, dict[str, Any]]] = []
        self.replies: list[tuple[str, object]] = []
        self.asked: list[Ask] = []
        self.faults: list[tuple[str, BaseException | str]] = []
        self.forwarder = InboxForwarder(
            inbox,
            self._note,
            lambda: "u1",
            lambda: 5.0,
            lambda where, error: self.faults.append((where, error)),
            lambda line: line.replace(b"hunter2", b"[redacted]"),
        )
        found = self.forwarder.put(
            "q1",
            payload,
            "s1",
            build or self._respond,
            lambda request_id, answer: self.replies.append((request_id, answer)),
        )
        assert found is DEFERRED

    def _note(self, kind: Kind, /, **details: Any) -> None:
        self.notes.append((kind, details))

    def _respond(self, ask: Ask, answer: object, by: str) -> object:
        self.asked.append(ask)
        return ask.id, answer, by


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
        "session": "s1",
        "kind": "permission",
        "created": 5.0,
        "payload": TOOL.raw,
    }
    assert put.notes == [(Kind.ASKED, details)]
    assert ask_of(Entry(1, 5.0, Kind.ASKED, details=details)) == ask


async def test_a_note_has_no_empty_details() -> None:
    put = Put(Plain(), UserDialog(dialog_kind="k"))

    ((_, details),) = put.notes
    assert details.keys() == {"id", "ask", "turn", "session", "kind", "created", "payload"}


async def test_a_note_has_no_secret_and_the_ask_in_the_inbox_is_as_it_came() -> None:
    asked = CanUseTool(tool_name="Bash", input={"command": "login hunter2"}, tool_use_id="t1")
    put = Put(Plain(), asked)

    ((_, details),) = put.notes
    assert details["payload"]["input"] == {"command": "login [redacted]"}
    assert put.inbox.opened["q1"][0].tool_input == {"command": "login hunter2"}


async def test_an_ask_that_cannot_be_written_is_noted_as_a_summary() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}
    put = Put(Plain(), CanUseTool(tool_name="Bash", input={"deep": deep}, tool_use_id="t1"))

    ((_, details),) = put.notes
    assert details.keys() == {"id", "ask", "tool", "tool_use_id", "turn"}
    assert ask_of(Entry(1, 5.0, Kind.ASKED, details=details)) is None
    assert ask_of(Entry(1, 5.0, Kind.FAULT, details={"payload": 1})) is None


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


@pytest.mark.parametrize("may_return", [True, False])
async def test_a_durable_inbox_learns_whether_the_ask_may_return(may_return: Any) -> None:
    put = Put(Durable())

    put.forwarder.withdraw("q1", "gone", may_return=may_return)

    assert put.inbox.closed == [("q1", f"gone, may return: {may_return}")]


@pytest.mark.parametrize("make", [Plain, OfSessions])
async def test_another_inbox_is_not_asked_whether_the_ask_may_return(make: type[Plain]) -> None:
    put = Put(make())

    put.forwarder.withdraw("q1", "gone", may_return=True)

    assert [reason for _, reason in put.inbox.closed] == ["gone"]


async def test_a_durable_inbox_gets_no_secrets_and_the_cli_gets_the_input_it_sent() -> None:
    secret = CanUseTool(tool_name="Bash", input={"command": "login hunter2"})
    put = Put(Durable(), secret)
    shown, settle = put.inbox.opened["q1"]

    settle(Allow(), "ann")

    assert shown.tool_input == {"command": "login [redacted]"}
    assert put.replies == [("q1", ("q1", Allow(), "ann"))]
    assert put.asked[0].tool_input == {"command": "login hunter2"}


async def test_a_fault_of_a_durable_inbox_is_reported_in_the_loop_of_the_session() -> None:
    inbox = Durable()
    put, failed = Put(inbox), OSError("no space left")

    await asyncio.to_thread(inbox.reports[0], failed)
    await asyncio.sleep(0)

    assert put.faults == [("inbox", failed)]
