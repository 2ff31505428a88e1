"""Permissions of a session: callbacks, policy, inbox, and the record of decisions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Allow, Deny, Inbox, Policy
from steersman._session.requests.permissions import PermissionResponder, UserCallbacks
from steersman.errors import AskGone, ForbiddenTool
from steersman.inbox import AskOutcome
from steersman.journal import Entry, Kind
from steersman.journal.decisions import ask_of, recorded_calls
from steersman.permissions import (
    AddRules,
    Ask,
    Elicitation,
    ElicitationAnswer,
    PermissionContext,
    QuestionAsk,
    SetMode,
    ToolRule,
    allow,
    ask,
    deny,
)
from steersman.testing.script import Script, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import INIT, Frame, FramePeer, entries_of, opened, result


def asking(*requests: dict[str, Any]) -> FramePeer:
    """Return a CLI that sends all requests at once, and ends the turn after the last answer."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(
                {**INIT, "session_id": "s1"},
                *(
                    {"type": "control_request", "request_id": f"q{number}", "request": request}
                    for number, request in enumerate(requests)
                ),
            )
        elif len(peer.sent("control_response")) == len(requests):
            peer.say(result([peer.sent("user")[0]["uuid"]]))

    return FramePeer(play)


def answers(peer: FramePeer) -> dict[str, Any]:
    return {
        frame["response"]["request_id"]: frame["response"].get("response", "refused")
        for frame in peer.sent("control_response")
    }


BASH = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "input": {"command": "touch x"},
    "tool_use_id": "toolu_1",
    "agent_id": "a1",
    "permission_suggestions": [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": "touch *"}],
            "behavior": "allow",
            "destination": "localSettings",
        }
    ],
}
QUESTION = {
    "subtype": "can_use_tool",
    "tool_name": "AskUserQuestion",
    "input": {"questions": [{"question": "Which?", "options": [{"label": "a"}]}]},
    "tool_use_id": "toolu_q",
    "requires_user_interaction": True,
}
FORM = {"subtype": "elicitation", "mcp_server_name": "paint", "message": "Which colour?"}
DIALOG = {"subtype": "request_user_dialog", "dialog_kind": "trust", "payload": {}}


async def opened_asks(inbox: Inbox, many: int) -> list[Ask]:
    """Wait for `many` asks in the inbox and return them."""
    watch = inbox.watch()
    found = [(await anext(watch)).ask for _ in range(many)]
    await watch.aclose()
    return found


async def test_a_request_without_a_callback_waits_in_the_inbox_and_is_recorded_first() -> None:
    inbox, peer = Inbox(), asking(BASH)

    async with opened(peer.transport, inbox=inbox) as session:
        turn = await session.send("go")
        (waiting,) = await opened_asks(inbox, 1)
        state = session.state
        await inbox.answer(waiting.id, Deny("not now"), by="ann")
        await turn
        journal = await entries_so_far(session)

    assert (waiting.id, waiting.kind, waiting.session) == ("q0", "permission", "s1")
    assert (waiting.turn, waiting.agent, waiting.tool_name) == (turn.uuid, "a1", "Bash")
    assert state == "waiting_permission"
    assert answers(peer) == {"q0": {"behavior": "deny", "message": "not now"}}
    story = [
        entry.kind
        for entry in journal
        if entry.kind in (Kind.ASKED, Kind.DECIDED) or b"control_response" in entry.line
    ]
    assert story[-3:] == [Kind.ASKED, Kind.DECIDED, Kind.SENT]
    (decided,) = (entry.details for entry in journal if entry.kind is Kind.DECIDED)
    assert decided == {
        "tool_use_id": "toolu_1",
        "tool": "Bash",
        "verdict": "deny",
        "source": "person",
        "by": "ann",
        "agent": "a1",
        "reason": "not now",
        "id": "q0",
    }
    (asked,) = (entry for entry in journal if entry.kind is Kind.ASKED)
    assert ask_of(asked) == waiting


async def entries_so_far(session: Any) -> list[Entry]:
    last, found = session.last_seq, list[Entry]()
    async for entry in session.journal():
        found.append(entry)
        if entry.seq >= last:
            break
    return found


async def test_each_kind_of_ask_is_answered_in_its_own_form() -> None:
    inbox, peer = Inbox(), asking(BASH, QUESTION, FORM, DIALOG)

    async with opened(peer.transport, inbox=inbox) as session:
        turn = await session.send("go")
        by_kind = {each.kind: each for each in await opened_asks(inbox, 4)}
        await inbox.answer_many(
            {
                by_kind["permission"].id: by_kind["permission"].always("keep"),
                by_kind["question"].id: by_kind["question"].questions.answer("a"),
                by_kind["elicitation"].id: ElicitationAnswer("accept", {"colour": "red"}),
            },
            by="ann",
        )
        await inbox.expire(by_kind["dialog"].id)
        await turn

    received = answers(peer)
    # This session does not read the settings file, so the rule is stored in the session.
    assert received["q0"]["updatedPermissions"] == [
        {**BASH["permission_suggestions"][0], "destination": "session"}  # type: ignore[index]
    ]
    assert received["q1"]["updatedInput"]["answers"] == {"Which?": "a"}
    assert received["q2"] == {"action": "accept", "content": {"colour": "red"}}
    assert received["q3"] == {"behavior": "cancelled"}


async def test_a_thousand_open_asks_cost_no_task() -> None:
    inbox, peer = Inbox(), asking(*[{**BASH, "tool_use_id": f"t{n}"} for n in range(1000)])

    async with opened(peer.transport, limit=20, inbox=inbox) as session:
        before = len(asyncio.all_tasks())
        turn = await session.send("go")
        waiting = await opened_asks(inbox, 1000)
        await asyncio.sleep(0)
        tasks = len(asyncio.all_tasks()) - before
        await inbox.answer_many([each.id for each in waiting], Allow(), by="ann")
        await turn

    assert tasks <= 0
    assert len(answers(peer)) == 1000


UNSENDABLE = [
    Allow({"command": object()}),
    Allow({"command": "x", "more": {1: float}}),
    Allow(None, [{"type": "addRules", "rules": object()}]),
]


@pytest.mark.parametrize("by", ["inbox", "callback"])
@pytest.mark.parametrize("given", UNSENDABLE, ids=["input", "nested", "updates"])
async def test_an_approval_that_is_not_json_denies_and_is_recorded_as_a_denial(
    given: Allow, by: str
) -> None:
    inbox, peer = Inbox(), asking(BASH)
    guard = {"inbox": inbox} if by == "inbox" else {"can_use_tool": lambda *_: given}

    async with opened(peer.transport, **guard) as session:
        turn = await session.send("go")
        if by == "inbox":
            (waiting,) = await opened_asks(inbox, 1)
            await inbox.answer(waiting.id, given)
        await turn
        journal = await entries_so_far(session)

    ((_, answer),) = answers(peer).items()
    assert answer["behavior"] == "deny"
    assert "not JSON" in answer["message"]
    assert [e.details["verdict"] for e in journal if e.kind is Kind.DECIDED] == ["deny"]
    assert len([e for e in journal if e.kind is Kind.FAULT]) == 1


class BrokenInbox:
    """An inbox of somebody else, which fails."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def open(self, ask: Ask, settle: Any) -> None:
        raise self._error

    def close(self, ask_id: str, reason: str) -> None:
        raise self._error


async def test_an_approver_that_fails_denies_and_is_reported() -> None:
    def fails(*_: object) -> Allow:
        raise ZeroDivisionError("why")

    peer = asking(BASH)
    async with opened(peer.transport, can_use_tool=fails) as session:
        await (await session.send("go"))
        journal = await entries_so_far(session)

    message = "Denied: the permission callback raised ZeroDivisionError."
    assert answers(peer) == {"q0": {"behavior": "deny", "message": message}}
    ((where, error),) = [
        (e.details["where"], e.details["error"]) for e in journal if e.kind is Kind.FAULT
    ]
    assert where == "can_use_tool"
    assert "ZeroDivisionError" in str(error)


@pytest.mark.parametrize("error", [RuntimeError(), BaseException(), asyncio.CancelledError()])
async def test_an_inbox_that_fails_denies(error: BaseException) -> None:
    peer = asking(BASH)

    async with opened(peer.transport, inbox=BrokenInbox(error)) as session:
        await (await session.send("go"))
        journal = await entries_so_far(session)

    ((_, answer),) = answers(peer).items()
    assert answer == {
        "behavior": "deny",
        "message": f"Denied: the inbox raised {type(error).__name__}.",
    }
    assert [e.details["where"] for e in journal if e.kind is Kind.FAULT] == ["inbox"]


async def test_an_ask_answered_after_its_session_ended_is_a_clear_error() -> None:
    inbox, peer = Inbox(), asking(BASH)

    async with opened(peer.transport, inbox=inbox) as session:
        await session.send("go")
        (waiting,) = await opened_asks(inbox, 1)

    assert await inbox.list() == []
    with pytest.raises(AskGone, match="session"):
        await inbox.answer(waiting.id, Allow(), by="ann")


async def test_an_ask_that_the_cli_cancels_leaves_the_inbox() -> None:
    inbox, peer = Inbox(), asking(BASH)

    async with opened(peer.transport, inbox=inbox) as session:
        await session.send("go")
        watch = inbox.watch()
        waiting = (await anext(watch)).ask
        peer.say({"type": "control_cancel_request", "request_id": "q0"})
        closed = await anext(watch)

    assert (closed.what, closed.ask) == ("closed", waiting)
    assert answers(peer) == {}


async def test_an_answer_may_come_from_another_thread_and_loop() -> None:
    inbox, peer = Inbox(), asking(BASH)

    async with opened(peer.transport, inbox=inbox) as session:
        turn = await session.send("go")
        (waiting,) = await opened_asks(inbox, 1)
        outcome = await asyncio.to_thread(
            lambda: asyncio.run(inbox.answer(waiting.id, Allow(), by="ann"))
        )
        await turn

    assert isinstance(outcome, AskOutcome)
    assert answers(peer)["q0"]["behavior"] == "allow"


async def test_a_callback_without_an_opinion_leaves_it_to_the_inbox() -> None:
    inbox, peer = Inbox(), asking(BASH, {**BASH, "tool_name": "Write"}, FORM)

    def decide(name: str, *_: Any) -> Allow | None:
        return Allow() if name == "Write" else None

    async with opened(
        peer.transport, inbox=inbox, can_use_tool=decide, on_elicitation=lambda _: None
    ) as session:
        turn = await session.send("go")
        waiting = await opened_asks(inbox, 2)
        for each in waiting:
            await inbox.expire(each.id)
        await turn

    assert {each.kind for each in waiting} == {"permission", "elicitation"}
    received = answers(peer)
    assert (received["q0"]["behavior"], received["q1"]["behavior"]) == ("deny", "allow")
    assert received["q2"] == {"action": "decline"}


@pytest.mark.parametrize(
    ("handler", "answer"),
    [
        (lambda asked: asked.answer("a"), {"Which?": "a"}),
        (lambda asked: asked.questions[0].answer("something else"), {"Which?": "something else"}),
        (lambda asked: asked.skip(), None),
        (lambda _: None, None),
        (lambda _: "a", None),
        (lambda _: 1 / 0, None),
    ],
)
async def test_a_question_is_answered_by_its_handler_or_not_at_all(
    handler: Any, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    peer = asking(QUESTION)

    with caplog.at_level(100):
        async with opened(peer.transport, on_question=handler) as session:
            await (await session.send("go"))

    received = answers(peer)["q0"]
    if answer is None:
        assert received == {"behavior": "deny", "message": QuestionAsk.UNANSWERED}
    else:
        assert received["updatedInput"]["answers"] == answer


async def test_an_approver_that_merely_allows_a_question_has_not_answered_it() -> None:
    peer = asking(QUESTION)

    async with opened(peer.transport, can_use_tool=lambda *_: Allow()) as session:
        await (await session.send("go"))

    assert answers(peer)["q0"]["behavior"] == "deny"


async def test_a_lasting_approval_is_stored_where_the_cli_reads_it() -> None:
    peer = asking(BASH)

    def decide(_name: str, _given: dict[str, Any], context: PermissionContext) -> Allow:
        assert context.suggestions[0].destination == "localSettings"
        return Allow(updated_permissions=[*context.suggestions, SetMode(mode="plan")])

    async with opened(
        peer.transport, can_use_tool=decide, setting_sources=("user", "local")
    ) as session:
        await (await session.send("go"))

    updates = answers(peer)["q0"]["updatedPermissions"]
    assert [each["destination"] for each in updates] == ["localSettings", "session"]


def bash(*commands: str) -> Script:
    made = [call("Bash", command=each, id_=f"toolu_{n}") for n, each in enumerate(commands)]
    return Script(*made, say("done"))


async def run_policed(
    *commands: str, **options: Any
) -> tuple[list[str], dict[str, Any], list[Entry]]:
    """Let the model run commands; return those that ran, the decisions and the journal."""
    ran: list[str] = []

    def run(given: dict[str, Any]) -> str:
        ran.append(given["command"])
        return "ran"

    cli = ScriptedCLI(bash(*commands), tools={"Bash": run})
    async with opened(cli, **options) as session:
        await (await session.send("go"))
    journal = await entries_of(session)
    decided = {
        entry.details["tool_use_id"]: (entry.details["verdict"], entry.details["source"])
        for entry in journal
        if entry.kind is Kind.DECIDED
    }
    return ran, decided, journal


POLICY = Policy(deny("Bash(rm *)"), ask("Bash(git push *)"), allow("Bash(git *)"))


async def test_a_policy_decides_before_the_approver_and_the_record_names_its_rule() -> None:
    asked: list[str] = []

    def decide(_name: str, given: dict[str, Any], _context: PermissionContext) -> Deny:
        asked.append(given["command"])
        return Deny("no")

    ran, decided, journal = await run_policed(
        "rm a", "git log", "git push", "make", policy=POLICY, can_use_tool=decide
    )

    assert ran == ["git log"]
    assert asked == ["git push", "make"]
    assert decided == {
        "toolu_0": ("deny", "rule"),
        "toolu_1": ("allow", "rule"),
        "toolu_2": ("deny", "callback"),
        "toolu_3": ("deny", "callback"),
    }
    by = [entry.details.get("by") for entry in journal if entry.kind is Kind.DECIDED]
    assert by == ["deny Bash(rm *)", "allow Bash(git *)", None, None]


async def test_a_recorded_session_can_be_tried_with_another_policy() -> None:
    _, _, journal = await run_policed(
        "rm a", "git log", "git push", "make", can_use_tool=lambda *_: Allow()
    )

    found = POLICY.dry_run(recorded_calls(journal))

    assert [
        (each.recorded.call.input["command"], each.verdict, each.changes) for each in found
    ] == [
        ("rm a", "deny", True),
        ("git log", "allow", True),
        ("git push", "ask", False),
        ("make", "cli", False),
    ]
    assert {(each.recorded.ran, each.recorded.source) for each in found} == {(True, "callback")}


async def test_with_ask_every_call_also_harmless_calls_are_asked_about() -> None:
    asked: list[str] = []

    def decide(_name: str, given: dict[str, Any], _context: PermissionContext) -> Allow:
        asked.append(given["command"])
        return Allow()

    ran, _, _ = await run_policed(
        "ls",
        "git log",
        can_use_tool=decide,
        ask_every_call=True,
        allowed_tools=["Bash(git log)"],
    )

    assert (ran, asked) == (["ls", "git log"], ["ls"])


async def test_an_approval_is_remembered_if_the_policy_has_remember() -> None:
    asked: list[str] = []
    policy = Policy(ask("Bash"), remember="session")

    def decide(_name: str, given: dict[str, Any], _context: PermissionContext) -> Allow:
        asked.append(given["command"])
        rule = AddRules(rules=[ToolRule("Bash", "touch *")])
        return Allow(updated_permissions=[rule])

    ran, _, _ = await run_policed("touch a", "touch b", "make", policy=policy, can_use_tool=decide)

    assert ran == ["touch a", "touch b", "make"]
    assert asked == ["touch a", "make"]


async def test_a_predicate_that_breaks_lets_nothing_run() -> None:
    policy = Policy(deny("Bash", when=lambda _: bool(1 / 0)))

    ran, decided, _ = await run_policed("ls", policy=policy)

    assert (ran, decided) == ([], {"toolu_0": ("deny", "rule")})


async def test_a_tool_that_ran_without_a_decision_is_recorded_as_undecided() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            block = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "ran"}
            failed = {**block, "tool_use_id": "toolu_10", "is_error": True}
            message = {"role": "user", "content": [block, failed]}
            peer.say({"type": "user", "message": message}, result([frame["uuid"]]))

    peer = FramePeer(play)
    async with opened(peer.transport) as session:
        await (await session.send("go"))

    undecided = [
        entry.details for entry in await entries_of(session) if entry.kind is Kind.UNDECIDED
    ]
    assert undecided == [{"tool_use_id": "toolu_9"}]


@pytest.mark.parametrize(
    "options", [{"policy": Policy(forbid=["WebFetch"])}, {"disallowed_tools": ["WebFetch"]}]
)
async def test_a_forbidden_tool_that_the_cli_offers_ends_the_session(
    options: dict[str, Any],
) -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say({**INIT, "tools": ["Bash", "WebFetch"]})

    peer = FramePeer(play)
    async with opened(peer.transport, **options) as session:
        settled = await (await session.send("go"))

    assert settled.outcome == "failed"
    assert isinstance(settled.cause, ForbiddenTool)
    assert settled.cause.tools == ("WebFetch",)


async def test_parallel_calls_are_each_decided_for_themselves() -> None:
    cli = ScriptedCLI(
        Script(
            calls(*(call("Read", file_path=f"/far/{n}", id_=f"r{n}") for n in range(3))),
            say("done"),
        ),
        tools={"Read": lambda _: "read"},
    )
    policy = Policy(deny("Read(//far/0)"), allow("Read(//far/1)"), otherwise="deny")

    async with opened(cli, policy=policy) as session:
        await (await session.send("go"))

    received = cli.asked[-1].tool_results
    assert received["r1"] == "read"
    assert "Denied by policy (deny Read(//far/0))" in received["r0"]
    assert "Denied by policy (otherwise deny)" in received["r2"]


async def test_an_elicitation_of_an_in_process_server_is_declined_without_an_answer() -> None:
    """There is no control request that could be deferred."""
    responder = PermissionResponder(UserCallbacks(on_elicitation=lambda _: None), lambda *_: None)

    answer = await responder.elicit(Elicitation(mcp_server_name="mine"))

    assert answer == ElicitationAnswer("decline")
