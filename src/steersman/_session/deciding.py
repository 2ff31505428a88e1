"""What only a person can answer, or a policy in their place.

Fails closed: a callback that raises, or answers with something else, stops the action. What went
wrong is logged and journalled; the model is told no more than the kind of error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from steersman._protocol.events import PermissionAsked
from steersman.permissions import (
    Allow,
    Decision,
    Deny,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    PermissionContext,
    UserDialog,
)
from steersman.ports import Approver, DialogHandler, ElicitationHandler

__all__ = ["Deciding", "People", "Refused"]

NO_APPROVER = (
    "Denied: this program has registered nobody to approve tools. Its author can pass"
    " can_use_tool=..., or approve this tool with allowed_tools=[...]."
)


class Refused(Exception):
    """The answer is an error, with this text."""


@dataclass(frozen=True, slots=True)
class People:
    """Whoever answers what only a person, or a policy in its place, can answer."""

    approver: Approver | None = None
    elicited: ElicitationHandler | None = None
    shown: DialogHandler | None = None


class Deciding:
    """Asks the right one of the people."""

    def __init__(self, people: People, report: Callable[[str, BaseException | str], None]) -> None:
        self._people = people
        self._report = report

    async def decide(self, asked: PermissionAsked, session_id: str) -> Decision:
        """Whether the tool may run."""
        if self._people.approver is None:
            return Deny(NO_APPROVER)
        question = asked.question
        context = PermissionContext(asked.request_id, session_id, question)
        try:
            decided = self._people.approver(question.tool_name, question.input, context)
            decision = await decided if inspect.isawaitable(decided) else decided
        except Exception as error:  # noqa: BLE001 - the caller's own code; whatever it was, deny
            self._report("can_use_tool", error)
            return Deny(f"Denied: the permission callback raised {type(error).__name__}.")
        return self._checked(decision, question.input)

    def _checked(self, decision: object, given: dict[str, Any]) -> Decision:
        if isinstance(decision, Deny):
            return decision
        if isinstance(decision, Allow):
            # Older CLIs want the input back even when it is unchanged.
            return decision if decision.updated_input is not None else _with_input(decision, given)
        self._report("can_use_tool", f"returned {type(decision).__name__}, not Allow or Deny")
        return Deny("Denied: the permission callback did not return a decision.")

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """What the person says to the server."""
        if self._people.elicited is None:
            return ElicitationAnswer("decline")
        try:
            given = self._people.elicited(elicitation)
            answer = await given if inspect.isawaitable(given) else given
        except Exception as error:  # noqa: BLE001 - the caller's own code; nobody has agreed
            self._report("on_elicitation", error)
            return ElicitationAnswer("decline")
        return answer if _is_answer(answer) else ElicitationAnswer("decline")

    async def show(self, dialog: UserDialog) -> DialogAnswer:
        """What the person does with the dialog. Raises `Refused`."""
        if self._people.shown is None:
            raise Refused("this program shows no dialogs; its author can pass on_user_dialog=...")
        try:
            given = self._people.shown(dialog)
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            self._report("on_user_dialog", error)
            raise Refused(f"the dialog failed: {type(error).__name__}") from error


def _is_answer(given: object) -> bool:
    return isinstance(given, ElicitationAnswer)


def _with_input(decision: Allow, given: dict[str, Any]) -> Allow:
    return msgspec.structs.replace(decision, updated_input=given)
