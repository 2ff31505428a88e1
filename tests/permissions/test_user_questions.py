"""Questions to the user; an unanswered question never becomes an empty answer."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.permissions import (
    Allow,
    Ask,
    CanUseTool,
    Choice,
    Deny,
    Elicitation,
    Question,
    QuestionAnswer,
    QuestionAsk,
)
from steersman.permissions.questions import question_ask

GIVEN: dict[str, Any] = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [{"label": "red", "description": "warm"}, {"label": "blue"}],
        },
        {"question": "Which sizes?", "multiSelect": True, "options": ["S", {"label": "M"}]},
    ]
}


def asked(given: dict[str, Any] = GIVEN) -> QuestionAsk:
    payload = CanUseTool(tool_name="AskUserQuestion", input=given)
    return Ask(id="q", session="s", payload=payload, created=0.0).questions


def test_questions_are_typed() -> None:
    assert asked().questions == (
        Question("Which colour?", "Colour", (Choice("red", "warm"), Choice("blue"))),
        Question("Which sizes?", "", (Choice("S"), Choice("M")), multi_select=True),
    )


@pytest.mark.parametrize("given", [{}, {"questions": 5}, {"questions": [5, {"options": 3}]}])
def test_strange_questions_are_no_error(given: dict[str, Any]) -> None:
    assert all(isinstance(each, Question) for each in asked(given).questions)


def test_answers_go_back_by_the_words_of_their_questions() -> None:
    colour, sizes = asked().questions

    decision = asked().decision([colour.answer("red"), sizes.answer("S", "M")])

    given = {"Which colour?": "red", "Which sizes?": "S, M"}
    assert decision == Allow({**GIVEN, "answers": given})


def test_a_question_may_be_skipped_and_the_others_count() -> None:
    colour, sizes = asked().questions

    decision = asked().decision([colour.skip(), sizes.answer("none of these")])

    assert decision == Allow({**GIVEN, "answers": {"Which sizes?": "none of these"}})


@pytest.mark.parametrize(
    "answers", [[], asked().skip(), Allow(), Allow({}), Allow({**GIVEN, "answers": {}})]
)
def test_nothing_answered_is_a_denial(answers: Any) -> None:
    assert asked().decision(answers) == Deny("The user did not answer.")


def test_an_answer_in_the_manner_of_the_official_sdks_is_taken() -> None:
    given = Allow({**GIVEN, "answers": {"Which colour?": "red"}})

    assert asked().decision(given) == given
    assert asked().decision(Deny("busy")) == Deny("busy")


@pytest.mark.parametrize("answers", [None, "red", 5, ["red"], {"Which colour?": "red"}])
def test_what_is_no_answer_is_refused(answers: Any) -> None:
    with pytest.raises(UsageError):
        asked().decision(answers)


def test_one_question_alone_can_be_answered_on_the_ask() -> None:
    one = asked({"questions": GIVEN["questions"][:1]})

    assert one.answer("red") == [QuestionAnswer("Which colour?", "red")]
    with pytest.raises(UsageError):
        asked().answer("red")


@pytest.mark.parametrize("given", [(), ("",), (5,), ("red", "blue")])
def test_an_answer_that_the_question_does_not_take_cannot_be_made(given: Any) -> None:
    with pytest.raises(UsageError):
        asked().questions[0].answer(*given)


def test_only_asks_about_questions_have_some() -> None:
    form = Ask(id="q", session="s", payload=Elicitation(mcp_server_name="x"), created=0.0)

    with pytest.raises(UsageError):
        _ = form.questions
    with pytest.raises(UsageError):
        form.always()
    assert (form.kind, form.agent, form.tool_name, form.tool_input, form.suggestions) == (
        "elicitation",
        None,
        None,
        {},
        [],
    )


def test_what_a_question_leaves_out_is_empty() -> None:
    asked = CanUseTool(
        tool_name="AskUserQuestion",
        input={"questions": [{}, {"options": [{}, "plain", {"label": "l", "preview": 5}]}]},
    )

    found = question_ask(asked, "i", "s")

    assert found.questions == (
        Question(""),
        Question("", options=(Choice(""), Choice("plain"), Choice("l"))),
    )
