"""What only a person can answer, or a policy in their place.

Fails closed: a callback that raises, or answers with something else, stops the action. What went
wrong is logged and journalled; the model is told no more than the kind of error. Whatever nobody
has an answer for waits in the inbox, if there is one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from steersman._json import JsonDict
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked
from steersman._session.requests.decision_log import DecisionLog, Source
from steersman.errors import UsageError
from steersman.journal import Kind
from steersman.options import Options
from steersman.permissions import (
    ASK_USER_QUESTION,
    Allow,
    Ask,
    CanUseTool,
    Decision,
    Deny,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    Payload,
    PermissionContext,
    QuestionAsk,
    UserDialog,
    where_it_counts,
)
from steersman.permissions.questions import Scope, remembering_updates
from steersman.permissions.user_questions import question_ask
from steersman.ports import (
    Approver,
    Asks,
    Clock,
    DialogHandler,
    ElicitationHandler,
    QuestionHandler,
)

__all__ = [
    "DEFERRED",
    "Deferred",
    "InboxForwarder",
    "PermissionResponder",
    "RequestRejected",
    "SendAnswer",
    "UserCallbacks",
    "build_permissions",
    "ignore_answer",
]

NO_APPROVER = (
    "Denied: this program has registered nobody to approve tools. Its author can pass"
    " can_use_tool=..., or approve this tool with allowed_tools=[...]."
)
NO_DIALOGS = "this program shows no dialogs; its author can pass on_user_dialog=..."


class RequestRejected(Exception):
    """The answer is an error, with this text."""


@dataclass(frozen=True, slots=True)
class UserCallbacks:
    """Whoever answers what only a person, or a policy in its place, can answer."""

    approver: Approver | None = None
    on_elicitation: ElicitationHandler | None = None
    on_user_dialog: DialogHandler | None = None
    on_question: QuestionHandler | None = None
    inbox: InboxForwarder | None = None
    """The way to an inbox."""


def ignore_answer(_request_id: str, _response: object) -> None:
    """Where an answer goes that nobody waits for."""


class PermissionResponder:
    """Asks the right one of the people."""

    def __init__(
        self,
        callbacks: UserCallbacks,
        report: Callable[[str, BaseException | str], None],
        *,
        decisions: DecisionLog | None = None,
        setting_sources: tuple[str, ...] = (),
        remember: Scope | None = None,
    ) -> None:
        self._callbacks = callbacks
        self._report = report
        self._decisions = decisions
        self._setting_sources = setting_sources
        self._remember: Scope | None = remember
        self.on_remembered: Callable[[Allow], None] = lambda _: None
        """Hears of every approval that changes what is asked from now on."""

    # Permissions, and the questions of `AskUserQuestion`, which come as such

    async def decide(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer = ignore_answer
    ) -> Decision | Deferred:
        """Whether the tool may run."""
        callbacks, request = self._callbacks, asked.request
        if request.tool_name == ASK_USER_QUESTION and self._can_ask_user:
            return await self._ask_user(asked, session_id, reply)
        if callbacks.approver is not None:
            context = PermissionContext(asked.request_id, session_id, request)
            try:
                given = callbacks.approver(request.tool_name, request.input, context)
                decision = await given if inspect.isawaitable(given) else given
            except Exception as error:  # noqa: BLE001 - the caller's own code; whatever it was, deny
                self._report("can_use_tool", error)
                how = f"Denied: the permission callback raised {type(error).__name__}."
                return self._decided(request, Deny(how), "callback", "")
            if decision is not None or callbacks.inbox is None:
                return self._decided(request, self._checked(request, decision), "callback", "")
        if callbacks.inbox is not None:
            return callbacks.inbox.put(
                asked.request_id, request, session_id, self._settle_permission, reply
            )
        return self._decided(request, Deny(NO_APPROVER), "nobody", "")

    @property
    def _can_ask_user(self) -> bool:
        return self._callbacks.on_question is not None or self._callbacks.inbox is not None

    async def _ask_user(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer
    ) -> Decision | Deferred:
        callbacks, request = self._callbacks, asked.request
        answers: object = None
        ask = question_ask(request, asked.request_id, session_id)
        if callbacks.on_question is not None:
            try:
                given = callbacks.on_question(ask)
                answers = await given if inspect.isawaitable(given) else given
                if answers is not None or callbacks.inbox is None:
                    return self._decided(request, ask.decision(answers), "callback", "")
            except Exception as error:  # noqa: BLE001 - the caller's own code; nobody has answered
                self._report("on_question", error)
                return self._decided(request, Deny(QuestionAsk.UNANSWERED), "callback", "")
        assert callbacks.inbox is not None
        return callbacks.inbox.put(
            asked.request_id, request, session_id, self._settle_permission, reply
        )

    def _settle_permission(self, ask: Ask, answer: object, by: str) -> Decision:
        assert isinstance(ask.payload, CanUseTool)
        decision = self._with_updates(ask.payload, response_of(ask, answer))
        return self._decided(ask.payload, decision, "person", by)

    def _checked(self, request: CanUseTool, decision: object) -> Decision:
        if isinstance(decision, Deny):
            return decision
        if isinstance(decision, Allow):
            if request.tool_name == ASK_USER_QUESTION:
                return question_ask(request, "", "").decision(decision)
            return self._with_updates(request, decision)
        self._report("can_use_tool", f"returned {type(decision).__name__}, not Allow or Deny")
        return Deny("Denied: the permission callback did not return a decision.")

    def _with_updates(self, request: CanUseTool, decision: Decision) -> Decision:
        """An approval with what makes it last put where it has an effect."""
        if isinstance(decision, Deny):
            return decision
        # Older CLIs want the input back even when it is unchanged.
        given = request.input if decision.updated_input is None else decision.updated_input
        updates = decision.updated_permissions
        if updates is None and self._remember is not None:
            updates = remembering_updates(request, self._remember)
        if not updates:
            return Allow(given)
        kept = Allow(given, [where_it_counts(each, self._setting_sources) for each in updates])
        self.on_remembered(kept)
        return kept

    def _decided(
        self, request: CanUseTool, decision: Decision, source: Source, by: str
    ) -> Decision:
        if self._decisions is not None:
            self._decisions.record(
                request.tool_use_id,
                request.tool_name,
                "allow" if isinstance(decision, Allow) else "deny",
                source,
                by=by,
                agent=request.agent_id,
                reason="" if isinstance(decision, Allow) else decision.message,
            )
        return decision

    # What servers and the CLI itself want of the person

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """What the person says to a server of ours; there is no request that could wait."""
        answer = await self._elicited(elicitation)
        return ElicitationAnswer("decline") if answer is None else answer

    async def elicit_later(
        self, asked: ElicitationAsked, session_id: str, reply: SendAnswer
    ) -> ElicitationAnswer | Deferred:
        """What the person says to a server of the CLI's."""
        answer = await self._elicited(asked.elicitation)
        if answer is not None:
            return answer
        if self._callbacks.inbox is None:
            return ElicitationAnswer("decline")
        payload = asked.elicitation
        return self._callbacks.inbox.put(asked.request_id, payload, session_id, self._settle, reply)

    async def _elicited(self, elicitation: Elicitation) -> ElicitationAnswer | None:
        """The handler's answer; `None` if it has none, or there is no handler."""
        if self._callbacks.on_elicitation is None:
            return None
        try:
            answer = await _awaited(self._callbacks.on_elicitation(elicitation))
        except Exception as error:  # noqa: BLE001 - the caller's own code; nobody has agreed
            self._report("on_elicitation", error)
            return ElicitationAnswer("decline")
        if answer is None or isinstance(answer, ElicitationAnswer):
            return answer
        return ElicitationAnswer("decline")

    async def show(
        self, asked: DialogAsked, session_id: str, reply: SendAnswer
    ) -> DialogAnswer | Deferred:
        """What the person does with the dialog. Raises `RequestRejected`."""
        if self._callbacks.on_user_dialog is None:
            if self._callbacks.inbox is None:
                raise RequestRejected(NO_DIALOGS)
            payload: UserDialog = asked.dialog
            return self._callbacks.inbox.put(
                asked.request_id, payload, session_id, self._settle, reply
            )
        try:
            given = self._callbacks.on_user_dialog(asked.dialog)
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            self._report("on_user_dialog", error)
            raise RequestRejected(f"the dialog failed: {type(error).__name__}") from error

    def _settle(self, ask: Ask, answer: object, by: str) -> object:
        if self._decisions is not None:
            self._decisions.record_answer(ask.id, ask.kind, by)
        return response_of(ask, answer)

    def withdraw(self, request_id: str, reason: str) -> None:
        """Nobody waits for this answer any more."""
        if self._callbacks.inbox is not None:
            self._callbacks.inbox.withdraw(request_id, reason)


def build_permissions(
    options: Options,
    decisions: DecisionLog,
    note: Callable[..., None],
    turn: Callable[[], str | None],
    clock: Clock,
    report: Callable[[str, BaseException | str], None],
) -> PermissionResponder:
    """Build what answers the permission requests of one session."""
    inbox = None if options.inbox is None else InboxForwarder(options.inbox, note, turn, clock)
    callbacks = UserCallbacks(
        options.can_use_tool,
        options.on_elicitation,
        options.on_user_dialog,
        options.on_question,
        inbox,
    )
    return PermissionResponder(
        callbacks,
        report,
        decisions=decisions,
        setting_sources=options.setting_sources,
        remember=None if options.policy is None else options.policy.remember,
    )


async def _awaited(given: object) -> object:
    return await given if inspect.isawaitable(given) else given


class Deferred(Enum):
    """The answer will come by itself."""

    DEFERRED = "later"


DEFERRED: Final = Deferred.DEFERRED

SendAnswer = Callable[[str, object], None]
"""Sends the answer to the request of that id."""

BuildResponse = Callable[[Ask, object, str], object]
"""Makes the response of an answer and who gave it, and writes it down."""


class InboxForwarder:
    """Puts the questions of one session into an inbox."""

    def __init__(
        self,
        inbox: Asks,
        note: Callable[..., None],
        turn: Callable[[], str | None],
        clock: Clock,
    ) -> None:
        self._inbox = inbox
        self._note = note
        self._turn = turn
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[str] = set()

    def put(
        self,
        request_id: str,
        payload: Payload,
        session_id: str,
        build_response: BuildResponse,
        reply: SendAnswer,
    ) -> Deferred:
        """Have the question wait; `reply` gets the response, in this event loop."""
        ask = Ask(
            id=request_id,
            session=session_id,
            payload=payload,
            created=self._clock(),
            turn=self._turn(),
        )

        def settle(answer: object, by: str) -> None:
            self._open.discard(request_id)
            reply(request_id, build_response(ask, answer, by))

        self._loop = asyncio.get_running_loop()
        self._note(Kind.ASKED, **_ask_details(ask))
        self._open.add(request_id)
        self._inbox.open(ask, lambda answer, by: self._settle_in_loop(settle, answer, by))
        return DEFERRED

    def withdraw(self, request_id: str, reason: str) -> None:
        """Nobody waits for this answer any more."""
        if request_id in self._open:
            self._open.discard(request_id)
            self._inbox.close(request_id, reason)

    def _settle_in_loop(
        self, settle: Callable[[object, str], None], answer: object, by: str
    ) -> None:
        """Answer now if this is the session's own loop, so that who answers knows it is sent."""
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            settle(answer, by)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(settle, answer, by)


def response_of(ask: Ask, answer: object) -> Any:
    """The answer as it goes on the wire; one that does not fit lets nothing through."""
    try:
        return ask.response(answer)
    except UsageError:
        return ask.refusal("Denied: the answer was not one that fits the question.")


def _ask_details(ask: Ask) -> JsonDict:
    """What the journal says of an ask; its payload stands there already, in the CLI's line."""
    tool_use_id = getattr(ask.payload, "tool_use_id", None)
    details = {
        "id": ask.id,
        "ask": ask.kind,
        "tool": ask.tool_name,
        "tool_use_id": tool_use_id,
        "agent": ask.agent,
        "turn": ask.turn,
    }
    return {name: value for name, value in details.items() if value}
