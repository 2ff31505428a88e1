"""Ask: a request of the CLI that waits for an answer, as data with an id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from steersman._json import JsonDict
from steersman.errors import UsageError
from steersman.permissions.decisions import Allow, Deny, DialogAnswer, ElicitationAnswer
from steersman.permissions.questions import (
    ASK_USER_QUESTION,
    CanUseTool,
    Elicitation,
    PermissionContext,
    QuestionAnswer,
    QuestionAsk,
    Scope,
    UserDialog,
    question_ask,
)
from steersman.permissions.updates import PermissionUpdate

__all__ = ["Answer", "Ask", "AskKind", "EarlierAnswer", "Payload"]

AskKind = Literal["permission", "question", "elicitation", "dialog"]
Payload = CanUseTool | Elicitation | UserDialog

Answer: TypeAlias = Allow | Deny | ElicitationAnswer | DialogAnswer | list[QuestionAnswer]
"""An answer to an ask of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnswer:
    """The answer that the same call of the same turn had before, and that was used.

    It is not known whether a host that was lost has begun the call.
    """

    answer: Answer
    by: str
    at: float
    """When it was given, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request that the CLI waits for; any part of the host program may answer it."""

    id: str
    """The CLI's own `request_id`, so that it can be sent to a browser and returned.

    An ask of a call that is held has its `tool_use_id`, and one that is known again in a store the
    id that it had first.
    """
    session: str
    payload: Payload
    """The control request as the CLI sent it."""
    created: float
    """Seconds since the epoch."""
    turn: str | None = None
    """The uuid of the prompt in progress."""
    expires: float | None = None
    """When the ask is denied automatically, in seconds since the epoch; None for never."""
    assignee: str | None = None
    """Who shall answer the ask, if it was delegated."""
    earlier: EarlierAnswer | None = None
    """What was answered to the same call before, if an inbox in a store knows it."""
    is_repeatable: bool = False
    """Whether the tool is declared as one that may run again: read-only, or idempotent."""
    unknown: JsonDict = field(default_factory=dict[str, Any])
    """The fields of the JSON it was read from that this release does not know."""

    @property
    def kind(self) -> AskKind:
        """The kind of answer that the ask needs."""
        if isinstance(self.payload, Elicitation):
            return "elicitation"
        if isinstance(self.payload, UserDialog):
            return "dialog"
        return "question" if self.payload.tool_name == ASK_USER_QUESTION else "permission"

    @property
    def agent(self) -> str | None:
        """The id of the subagent that made the request; None for the main agent."""
        return self.payload.agent_id if isinstance(self.payload, CanUseTool) else None

    @property
    def tool_name(self) -> str | None:
        """The name of the tool, if the ask is about a tool."""
        return self.payload.tool_name if isinstance(self.payload, CanUseTool) else None

    @property
    def tool_input(self) -> JsonDict:
        """The input of the tool; empty if the ask is not about a tool."""
        return self.payload.input if isinstance(self.payload, CanUseTool) else {}

    @property
    def suggestions(self) -> list[PermissionUpdate]:
        """Permission updates that the CLI suggests, so that it does not ask again."""
        return self._context().suggestions if isinstance(self.payload, CanUseTool) else []

    @property
    def questions(self) -> QuestionAsk:
        """The typed questions of an `AskUserQuestion`; each has `answer()` and `skip()`."""
        if self.kind != "question" or not isinstance(self.payload, CanUseTool):
            raise UsageError("questions", self.kind, "an ask of kind question")
        return question_ask(self.payload, self.id, self.session)

    @property
    def digest(self) -> str:
        """The SHA-256 of what is asked, in hex: the tool's input, else the whole payload.

        The order of keys does not matter.
        """
        import hashlib  # noqa: PLC0415 - only asks that are stored or compared need it
        import json  # noqa: PLC0415 - as above

        asked = self.payload.input if isinstance(self.payload, CanUseTool) else self.payload.raw
        text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def always(self, scope: Scope = "session") -> Allow:
        """Return an answer that allows this call and similar calls in the future."""
        return self._context().always(scope)

    def response(self, answer: object) -> Any:
        """Return `answer` as it is sent. Raises `UsageError` for an answer of another kind."""
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
        """Return the answer that refuses: deny, decline or cancel."""
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
