"""Questions that the model asks the user with `AskUserQuestion`, and their answers.

An unanswered question never becomes an empty answer: a call without any answer is denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from steersman._json import JsonDict, is_array, is_object, is_sequence
from steersman.errors import UsageError
from steersman.permissions.decisions import Allow, Decision, Deny
from steersman.permissions.questions import CanUseTool

__all__ = ["ASK_USER_QUESTION", "Choice", "Question", "QuestionAnswer", "QuestionAsk"]

ASK_USER_QUESTION = "AskUserQuestion"
UNANSWERED = "The user did not answer."


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that the user can choose."""

    label: str
    description: str = ""
    preview: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The user's answer to one question; `text` is None if the user did not answer."""

    question: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its choices."""

    question: str
    header: str = ""
    options: tuple[Choice, ...] = ()
    multi_select: bool = False

    def answer(self, *answers: str) -> QuestionAnswer:
        """Answer with labels of choices, or with a text of the user's own."""
        if not answers or not all(isinstance(each, str) and each for each in answers):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("answer", answers, "the label of a choice, or another text")
        if len(answers) > 1 and not self.multi_select:
            raise UsageError("answer", answers, "one answer: this question is not multi_select")
        return QuestionAnswer(self.question, ", ".join(answers))

    def skip(self) -> QuestionAnswer:
        """Leave this question unanswered."""
        return QuestionAnswer(self.question, None)


@dataclass(frozen=True, slots=True)
class QuestionAsk:
    """A call of `AskUserQuestion`, with one or more questions."""

    UNANSWERED: ClassVar[str] = UNANSWERED

    request_id: str
    session_id: str
    questions: tuple[Question, ...]
    tool_input: JsonDict
    agent_id: str | None = None

    def answer(self, *answers: str) -> list[QuestionAnswer]:
        """Answer a call that has one question."""
        if len(self.questions) != 1:
            raise UsageError("answer", answers, "QuestionAsk.questions[n].answer(...) for each")
        return [self.questions[0].answer(*answers)]

    def skip(self) -> list[QuestionAnswer]:
        """Answer none of the questions; the model reads `UNANSWERED`."""
        return [each.skip() for each in self.questions]

    def decision(self, answers: object) -> Decision:
        """Return the decision for `answers`. Raises `UsageError` if they are not answers."""
        if isinstance(answers, Allow | Deny):
            return self._as_given(answers)
        given = {each.question: each.text for each in _listed(answers) if each.text is not None}
        return Allow({**self.tool_input, "answers": given}) if given else Deny(UNANSWERED)

    def _as_given(self, decision: Decision) -> Decision:
        """Check a decision in the official SDKs' form: the answers are in the updated input."""
        if isinstance(decision, Allow) and not (decision.updated_input or {}).get("answers"):
            return Deny(UNANSWERED)
        return decision


def _listed(answers: object) -> list[QuestionAnswer]:
    given: object = [answers] if isinstance(answers, QuestionAnswer) else answers
    if is_sequence(given):
        answered = [each for each in given if isinstance(each, QuestionAnswer)]
        if len(answered) == len(given):
            return answered
    raise UsageError("answer", answers, "what Question.answer() or Question.skip() returns")


def question_ask(asked: CanUseTool, request_id: str, session_id: str) -> QuestionAsk:
    """Return the questions of an `AskUserQuestion` call, without parts that are malformed."""
    given = asked.input.get("questions")
    questions = tuple(_question(each) for each in (given if is_array(given) else ()))
    return QuestionAsk(request_id, session_id, questions, asked.input, asked.agent_id)


def _question(found: object) -> Question:
    fields = found if is_object(found) else {}
    options = fields.get("options")
    return Question(
        str(fields.get("question", "")),
        str(fields.get("header", "")),
        tuple(_choice(each) for each in (options if is_array(options) else ())),
        fields.get("multiSelect") is True,
    )


def _choice(found: object) -> Choice:
    fields = found if is_object(found) else {"label": found}
    preview = fields.get("preview")
    return Choice(
        str(fields.get("label", "")),
        str(fields.get("description", "")),
        preview if isinstance(preview, str) else None,
    )
