"""Asks as data: what kind they are, what they carry, and which answers they take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.permissions import Allow, Deny, DialogAnswer, ElicitationAnswer
from steersman.permissions.asks import Ask, Payload
from steersman.permissions.questions import CanUseTool, Elicitation, UserDialog
from steersman.permissions.updates import AddRules, ToolRule

TOOL = CanUseTool(
    tool_name="Bash",
    input={"command": "ls"},
    agent_id="a1",
    permission_suggestions=[{"type": "addRules", "rules": [{"toolName": "Bash"}]}],
)
QUESTIONS = CanUseTool(tool_name="AskUserQuestion", input={"questions": [{"question": "Why?"}]})
FORM = Elicitation(mcp_server_name="m")
DIALOG = UserDialog(dialog_kind="k")


def ask(payload: Payload) -> Ask:
    return Ask(id="i", session="s", payload=payload, created=1.0)


@pytest.mark.parametrize(
    ("payload", "kind", "about", "refusal"),
    [
        (TOOL, "permission", ("a1", "Bash", {"command": "ls"}), Deny("no")),
        (QUESTIONS, "question", (None, "AskUserQuestion", QUESTIONS.input), Deny("no")),
        (FORM, "elicitation", (None, None, {}), ElicitationAnswer("decline")),
        (DIALOG, "dialog", (None, None, {}), DialogAnswer("cancelled")),
    ],
)
def test_an_ask_knows_its_kind_its_tool_and_its_refusal(
    payload: Payload, kind: str, about: tuple[Any, ...], refusal: object
) -> None:
    made = ask(payload)

    assert made.kind == kind
    assert (made.agent, made.tool_name, made.tool_input) == about
    assert made.refusal("no") == refusal
    assert (made.turn, made.expires, made.assignee) == (None, None, None)


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        (TOOL, Allow()),
        (TOOL, Deny("no")),
        (FORM, ElicitationAnswer("accept", {"a": 1})),
        (FORM, ElicitationAnswer("decline")),
        (FORM, ElicitationAnswer("cancel")),
        (DIALOG, DialogAnswer("completed", 5)),
    ],
)
def test_an_answer_of_the_right_kind_is_sent_as_it_is(payload: Payload, answer: object) -> None:
    assert ask(payload).response(answer) is answer


def test_the_answers_to_questions_become_the_input_of_the_tool() -> None:
    made = ask(QUESTIONS)
    (question,) = made.questions.questions

    assert (made.questions.request_id, made.questions.session_id) == ("i", "s")
    assert made.response(question.answer("so")) == Allow(
        {"questions": [{"question": "Why?"}], "answers": {"Why?": "so"}}
    )


def test_suggestions_are_typed_and_may_be_kept() -> None:
    rules = [ToolRule("Bash")]

    assert ask(TOOL).suggestions == [AddRules(rules=rules)]
    assert ask(FORM).suggestions == []
    assert ask(TOOL).always() == Allow(
        updated_permissions=[AddRules(rules=rules, destination="session")]
    )


@pytest.mark.parametrize(
    ("payload", "given"),
    [
        (CanUseTool, {"subtype": "can_use_tool", "tool_name": "", "input": {}}),
        (Elicitation, {"subtype": "elicitation", "mcp_server_name": ""}),
        (UserDialog, {"subtype": "request_user_dialog", "dialog_kind": ""}),
    ],
)
def test_a_field_that_the_cli_leaves_out_is_empty(payload: Any, given: dict[str, Any]) -> None:
    fields = msgspec.structs.asdict(msgspec.convert(given, payload))

    assert {name: value for name, value in fields.items() if value} == (
        {"mode": "form"} if payload is Elicitation else {}
    )


def test_an_answer_has_no_field_that_was_not_set() -> None:
    assert msgspec.json.encode(ElicitationAnswer("accept")) == b'{"action":"accept"}'
    assert msgspec.json.encode(DialogAnswer("cancelled")) == b'{"behavior":"cancelled"}'
