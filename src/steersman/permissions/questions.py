"""Control requests that need an answer: permissions, elicitations, dialogs, `AskUserQuestion`.

An unanswered question of the model never becomes an empty answer: a call without any answer is
denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import msgspec
from msgspec import Struct

from steersman._json import Json, JsonDict, is_array, is_object, is_sequence
from steersman._struct import WireStruct
from steersman.errors import UsageError
from steersman.permissions.decisions import Allow, Decision, Deny
from steersman.permissions.updates import (
    AddDirectories,
    AddRules,
    Destination,
    PermissionUpdate,
    ToolRule,
    read_updates,
)

__all__ = [
    "ASK_USER_QUESTION",
    "CanUseTool",
    "Choice",
    "Elicitation",
    "PermissionContext",
    "Question",
    "QuestionAnswer",
    "QuestionAsk",
    "Scope",
    "UserDialog",
]


Scope = Literal["session", "keep"]

ASK_USER_QUESTION = "AskUserQuestion"
UNANSWERED = "The user did not answer."


class CanUseTool(WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="can_use_tool"):
    """A permission request for a tool; `raw` also has the fields that are not named here."""

    tool_name: str
    input: JsonDict
    tool_use_id: str = ""
    title: str = ""
    display_name: str = ""
    description: str = ""
    mcp_server: JsonDict | None = None
    permission_suggestions: list[JsonDict] = []
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    matched_ask_rule: Json = None
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    classifier_approvable: bool | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False


class Elicitation(WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="elicitation"):
    """An MCP server asks the user to fill in a form or to open a page."""

    mcp_server_name: str
    message: str = ""
    mode: str = "form"
    requested_schema: JsonDict | None = None
    property_order: list[str] = []
    url: str | None = None
    elicitation_id: str | None = None


class UserDialog(
    WireStruct, frozen=True, kw_only=True, tag_field="subtype", tag="request_user_dialog"
):
    """The CLI asks for a dialog of a kind that the option `supported_dialog_kinds` names."""

    dialog_kind: str
    payload: Json = None
    tool_use_id: str | None = None


class PermissionContext(Struct, frozen=True):
    """What an approver receives beside the tool's name and input.

    If the CLI cancels the request, an async approver is cancelled.
    """

    request_id: str
    session_id: str
    question: CanUseTool

    @property
    def tool_use_id(self) -> str:
        """The id of the tool call in the assistant message."""
        return self.question.tool_use_id

    @property
    def suggestions(self) -> list[PermissionUpdate]:
        """Permission updates that the CLI suggests, for `Allow(updated_permissions=...)`.

        `question.permission_suggestions` has them unparsed, unknown kinds included.
        """
        return read_updates(self.question.permission_suggestions)

    @property
    def blocked_path(self) -> str | None:
        """The path that caused the request."""
        return self.question.blocked_path

    @property
    def decision_reason(self) -> str | None:
        """Why the CLI asks, as a text; `question.decision_reason_type` is the kind of reason."""
        return self.question.decision_reason

    @property
    def agent_id(self) -> str | None:
        """The id of the subagent that called the tool; None for the main agent."""
        return self.question.agent_id

    def always(self, scope: Scope = "session") -> Allow:
        """Allow the call, and similar calls in this session or permanently, without a request.

        The updates are those that the CLI suggests: its rules if it suggests any, otherwise all of
        its suggestions. If it suggests nothing, as after a hook's `ask`, the update is a rule for
        exactly this input. `keep` writes the settings file that the CLI names, if the session reads
        that file.
        """
        if scope not in ("session", "keep"):
            raise UsageError("scope", scope, "session or keep")
        return Allow(updated_permissions=remembering_updates(self.question, scope) or None)


def remembering_updates(request: CanUseTool, scope: Scope) -> list[PermissionUpdate]:
    """Return the permission updates after which the CLI does not repeat this request."""
    if request.suppress_always_allow_rule or request.requires_user_interaction:
        return []
    offered = read_updates(request.permission_suggestions)
    rules: list[PermissionUpdate] = [
        each for each in offered if isinstance(each, AddRules | AddDirectories)
    ]
    has_rules = any(isinstance(each, AddRules) for each in rules)
    chosen = rules if has_rules else offered
    if not chosen:
        where: Destination = "session" if scope == "session" else "localSettings"
        return [AddRules(rules=[rule], destination=where) for rule in _rules_for_input(request)]
    if scope == "keep":
        return chosen
    return [msgspec.structs.replace(each, destination="session") for each in chosen]


_INPUTS = {
    "Bash": ("Bash", "command", ""),
    "Edit": ("Edit", "file_path", "/"),
    "NotebookEdit": ("Edit", "notebook_path", "/"),
    "Read": ("Read", "file_path", "/"),
    "Write": ("Edit", "file_path", "/"),
}
"""Tools with rules for their input: the rule's tool, the input field, and a prefix."""

_WILD = frozenset("*?[]\\\n")


def _rules_for_input(request: CanUseTool) -> list[ToolRule]:
    """Return a rule for exactly this input; nothing if the input contains wildcards."""
    name = request.tool_name
    if name not in _INPUTS:
        return [ToolRule(name)] if name.startswith("mcp__") else []
    tool, field, before = _INPUTS[name]
    given = request.input.get(field)
    if not (isinstance(given, str) and given) or _WILD & set(given):
        return []
    if before and not given.startswith("/"):
        return []
    return [ToolRule(tool, before + given)]


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
