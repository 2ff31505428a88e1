"""Ask: something that waits for an answer. Data with an id, not a suspended coroutine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steersman._json import JsonDict
from steersman.errors import UsageError
from steersman.permissions.decisions import Allow, Deny, DialogAnswer, ElicitationAnswer
from steersman.permissions.questions import (
    CanUseTool,
    Elicitation,
    PermissionContext,
    Scope,
    UserDialog,
)
from steersman.permissions.updates import PermissionUpdate
from steersman.permissions.user_questions import ASK_USER_QUESTION, QuestionAsk, question_ask

__all__ = ["Ask", "AskKind", "Payload"]

AskKind = Literal["permission", "question", "elicitation", "dialog"]
Payload = CanUseTool | Elicitation | UserDialog


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One thing that the CLI waits for, whoever may answer it."""

    id: str
    """The CLI's own id of its request; it goes to browsers and back unchanged."""
    session: str
    payload: Payload
    """The question as it stands on the wire."""
    created: float
    """Seconds since the epoch."""
    turn: str | None = None
    """The uuid of the prompt at work."""
    expires: float | None = None
    """When it is denied by itself; `None` is never."""
    assignee: str | None = None
    """Who is to answer it, where it was handed to somebody."""

    @property
    def kind(self) -> AskKind:
        """What sort of answer it needs."""
        if isinstance(self.payload, Elicitation):
            return "elicitation"
        if isinstance(self.payload, UserDialog):
            return "dialog"
        return "question" if self.payload.tool_name == ASK_USER_QUESTION else "permission"

    @property
    def agent(self) -> str | None:
        """The id of the subagent that it is for; `None` for the main one."""
        return self.payload.agent_id if isinstance(self.payload, CanUseTool) else None

    @property
    def tool_name(self) -> str | None:
        """The tool that wants to run."""
        return self.payload.tool_name if isinstance(self.payload, CanUseTool) else None

    @property
    def tool_input(self) -> JsonDict:
        """What the tool is to be given."""
        return self.payload.input if isinstance(self.payload, CanUseTool) else {}

    @property
    def suggestions(self) -> list[PermissionUpdate]:
        """Changes that the CLI offers, so as not to ask again."""
        return self._context().suggestions if isinstance(self.payload, CanUseTool) else []

    @property
    def questions(self) -> QuestionAsk:
        """The typed questions of an `AskUserQuestion`; each has `answer()` and `skip()`."""
        if self.kind != "question" or not isinstance(self.payload, CanUseTool):
            raise UsageError("questions", self.kind, "an ask of kind question")
        return question_ask(self.payload, self.id, self.session)

    def always(self, scope: Scope = "session") -> Allow:
        """An answer after which its like is not asked again."""
        return self._context().always(scope)

    def response(self, answer: object) -> Any:
        """What `answer` is on the wire. Raises `UsageError` for an answer of another kind."""
        match self.kind:
            case "permission" if isinstance(answer, Allow | Deny):
                return answer
            case "question":
                return self.questions.decision(answer)
            case "elicitation" if isinstance(answer, ElicitationAnswer):
                return answer
            case "dialog" if isinstance(answer, DialogAnswer):
                return answer
            case _:
                raise UsageError("answer", answer, _ALLOWED[self.kind])

    def refusal(self, reason: str) -> Any:
        """The answer that lets nothing through."""
        match self.kind:
            case "elicitation":
                return ElicitationAnswer("decline")
            case "dialog":
                return DialogAnswer("cancelled")
            case _:
                return Deny(reason)

    def _context(self) -> PermissionContext:
        if not isinstance(self.payload, CanUseTool):
            raise UsageError("always", self.kind, "an ask of kind permission")
        return PermissionContext(self.id, self.session, self.payload)


_ALLOWED = {
    "permission": "Allow(...) or Deny(...)",
    "elicitation": "ElicitationAnswer(...)",
    "dialog": "DialogAnswer(...)",
}
