"""Answers permission requests, elicitations and dialogs with callbacks or through the inbox.

Fails closed: a callback that raises or returns an invalid answer stops the action. The error is
logged and journalled; the model receives only the kind of error. A request without an answer waits
in the inbox, if there is one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import MsgspecError

from steersman._json import JsonDict, dumps
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked
from steersman._session.requests.ask_details import ask_details, without_secrets
from steersman._session.requests.decision_log import DecisionLog, Source
from steersman._session.requests.failures import is_shutdown, raise_soon
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
    make_effective,
)
from steersman.permissions.questions import Scope, question_ask, remembering_updates
from steersman.ports import (
    Approver,
    Asks,
    Clock,
    DialogHandler,
    DurableAsks,
    ElicitationHandler,
    QuestionHandler,
    SessionAsks,
)

P = TypeVar("P")
Q = TypeVar("Q")

NO_APPROVER = (
    "Denied: this program has no permission callback. Its author can pass can_use_tool=..., or"
    " approve this tool with allowed_tools=[...]."
)
NO_DIALOGS = "this program shows no dialogs; its author can pass on_user_dialog=..."


class RequestRejected(Exception):
    """The control request is answered with an error that has this text."""


@dataclass(frozen=True, slots=True)
class UserCallbacks:
    """The callbacks of the host program for requests that a user answers."""

    approver: Approver | None = None
    on_elicitation: ElicitationHandler | None = None
    on_user_dialog: DialogHandler | None = None
    on_ask_user: QuestionHandler | None = None
    inbox: InboxForwarder | None = None
    """Used for a request that no callback answers."""


def ignore_answer(_request_id: str, _response: object) -> None:
    """Drop an answer that is not sent."""


class PermissionResponder:
    """Calls the callback for each request, or puts the request into the inbox."""

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
        """Called with every approval that changes the permission rules."""
        self.recheck: Callable[[CanUseTool, JsonDict], Deny | None] | None = None
        """Called with the changed input of an approval; returns a denial if a policy denies it."""

    # Permissions, and `AskUserQuestion`, which arrives as a permission request

    async def decide(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer = ignore_answer
    ) -> Decision | Deferred:
        """Decide whether the tool may run, or defer the request to the inbox."""
        callbacks, request = self._callbacks, asked.request
        if request.tool_name == ASK_USER_QUESTION and self._can_ask_user:
            return await self._ask_user(asked, session_id, reply)
        if callbacks.approver is not None:
            context = PermissionContext(asked.request_id, session_id, request)
            try:
                given = callbacks.approver(request.tool_name, request.input, context)
                decision = await given if inspect.isawaitable(given) else given
            except BaseException as error:
                if is_shutdown(error):
                    raise
                self._report("can_use_tool", error)
                raise_soon(error)
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
        return self._callbacks.on_ask_user is not None or self._callbacks.inbox is not None

    async def _ask_user(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer
    ) -> Decision | Deferred:
        callbacks, request = self._callbacks, asked.request
        answers: object = None
        ask = question_ask(request, asked.request_id, session_id)
        if callbacks.on_ask_user is not None:
            try:
                given = callbacks.on_ask_user(ask)
                answers = await given if inspect.isawaitable(given) else given
                if answers is not None or callbacks.inbox is None:
                    return self._decided(request, ask.decision(answers), "callback", "")
            except BaseException as error:
                if is_shutdown(error):
                    raise
                self._report("on_question", error)
                raise_soon(error)
                return self._decided(request, Deny(QuestionAsk.UNANSWERED), "callback", "")
        assert callbacks.inbox is not None
        return callbacks.inbox.put(
            asked.request_id, request, session_id, self._settle_permission, reply
        )

    def _settle_permission(self, ask: Ask, answer: object, by: str) -> Decision:
        assert isinstance(ask.payload, CanUseTool)
        decision = self._with_updates(ask.payload, response_of(ask, answer))
        return self._decided(ask.payload, decision, "person", by, ask.id)

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
        """Return the decision, with permission updates stored where the CLI reads them."""
        if isinstance(decision, Deny):
            return decision
        changed = decision.updated_input
        if self.recheck is not None:
            if changed is None and request.input != request.raw.get("input", request.input):
                # The approver has changed the mapping that it was called with.
                changed = request.input
            denial = None if changed is None else self.recheck(request, dict(changed))
            if denial is not None:
                return denial
        # Older CLIs require the input in the answer even if it is unchanged.
        given = request.input if changed is None else changed
        updates = decision.updated_permissions
        if updates is None and self._remember is not None:
            updates = remembering_updates(request, self._remember)
        if not updates:
            kept = Allow(given)
            return kept if changed is None else self._sendable(kept)
        kept = Allow(given, [make_effective(each, self._setting_sources) for each in updates])
        sendable = self._sendable(kept)
        if sendable is kept:
            self.on_remembered(kept)
        return sendable

    def _sendable(self, decision: Allow) -> Decision:
        """Return the approval, or a denial if a value in it is not JSON."""
        try:
            dumps(decision)
        except (TypeError, ValueError, RecursionError, MsgspecError) as error:
            self._report("permission", f"allowed with a value that is not JSON: {error}")
            return Deny("Denied: the approval has a value that is not JSON.")
        return decision

    def _decided(
        self, request: CanUseTool, decision: Decision, source: Source, by: str, ask_id: str = ""
    ) -> Decision:
        if self._decisions is not None:
            reason = decision.message if isinstance(decision, Deny) else None
            self._decisions.record(
                request.tool_use_id,
                request.tool_name,
                "allow" if reason is None else "deny",
                source,
                by=by,
                agent=request.agent_id,
                reason=reason or "",
                ask_id=ask_id,
            )
        return decision

    # Elicitations of MCP servers, and dialogs of the CLI

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Answer an in-process MCP server. There is no control request that could be deferred."""
        answer = await self._elicited(elicitation)
        return ElicitationAnswer("decline") if answer is None else answer

    async def elicit_later(
        self, asked: ElicitationAsked, session_id: str, reply: SendAnswer
    ) -> ElicitationAnswer | Deferred:
        """Answer an MCP server that the CLI runs, or defer the request to the inbox."""
        answer = await self._elicited(asked.elicitation)
        if answer is not None:
            return answer
        if self._callbacks.inbox is None:
            return ElicitationAnswer("decline")
        payload = asked.elicitation
        return self._callbacks.inbox.put(asked.request_id, payload, session_id, self._settle, reply)

    async def _elicited(self, elicitation: Elicitation) -> ElicitationAnswer | None:
        """Return the callback's answer; None if it has no answer or there is no callback."""
        if self._callbacks.on_elicitation is None:
            return None
        try:
            answer = await _awaited(self._callbacks.on_elicitation(elicitation))
        except Exception as error:  # noqa: BLE001 - the caller's own code; decline
            self._report("on_elicitation", error)
            return ElicitationAnswer("decline")
        if answer is None or isinstance(answer, ElicitationAnswer):
            return answer
        return ElicitationAnswer("decline")

    async def show(
        self, asked: DialogAsked, session_id: str, reply: SendAnswer
    ) -> DialogAnswer | Deferred:
        """Show the dialog and return the user's answer, or defer it. Raises `RequestRejected`."""
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

    @property
    def inbox(self) -> InboxForwarder | None:
        """Where requests wait that no callback answers."""
        return self._callbacks.inbox

    def withdraw(self, request_id: str, reason: str, *, may_return: bool = False) -> None:
        """Remove a deferred request from the inbox; `reason` is reported to late answers."""
        if self._callbacks.inbox is not None:
            self._callbacks.inbox.withdraw(request_id, reason, may_return=may_return)


def build_permissions(
    options: Options,
    decisions: DecisionLog,
    report: Callable[[str, BaseException | str], None],
    inbox: InboxForwarder | None,
) -> PermissionResponder:
    """Build the `PermissionResponder` of one session from its options."""
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
        setting_sources=options.sources,
        remember=None if options.policy is None else options.policy.remember,
    )


async def _awaited(given: object) -> object:
    return await given if inspect.isawaitable(given) else given


class Deferred(Enum):
    """A response that means: the answer is sent later, through `SendAnswer`."""

    DEFERRED = "later"


DEFERRED: Final = Deferred.DEFERRED

SendAnswer = Callable[[str, object], None]
"""Sends the answer to the request of that id."""

BuildResponse = Callable[[Ask, object, str], object]
"""Builds the response from an ask, the answer and its author, and records the decision."""


def _no(_payload: Payload) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class CallChecks:
    """What is asked about each call that is put into an inbox."""

    is_repeatable: Callable[[Payload], bool] = _no
    """Whether the call may run twice."""
    was_shown: Callable[[Payload], bool] = _no
    """Whether its ask was opened before the request."""


class InboxForwarder:
    """Puts the open requests of one session into an inbox."""

    def __init__(
        self,
        inbox: Asks,
        note: Callable[..., None],
        turn: Callable[[], str | None],
        clock: Clock,
        report: Callable[[str, BaseException | str], None],
        redact: Callable[[bytes], bytes] = bytes,
        calls: CallChecks = CallChecks(),
    ) -> None:
        self._report = report
        self._redact = redact
        self._inbox = inbox
        self._note = note
        self._turn = turn
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[str, Ask] = {}
        self._calls = calls

    def put(
        self,
        request_id: str,
        payload: Payload,
        session_id: str,
        build_response: BuildResponse,
        reply: SendAnswer,
    ) -> Deferred:
        """Put the request into the inbox; `reply` gets the response, in this event loop.

        The response is a refusal if the inbox fails.
        """
        ask = Ask(
            id=request_id,
            session=session_id,
            payload=payload,
            created=self._clock(),
            turn=self._turn(),
            is_repeatable=self._calls.is_repeatable(payload),
        )

        def settle(answer: object, by: str) -> None:
            self._open.pop(request_id, None)
            try:
                response = build_response(ask, answer, by)
            except Exception as error:  # noqa: BLE001 - without a response the CLI would wait on
                self._report("inbox", error)
                response = ask.refusal(f"Denied: the answer failed: {type(error).__name__}.")
            reply(request_id, response)

        self._loop = asyncio.get_running_loop()
        if not self._calls.was_shown(payload):
            self._note(Kind.ASKED, **ask_details(ask, self._redact))
        self._open[request_id] = ask
        try:
            self._open_in_inbox(ask, lambda answer, by: self._in_loop(settle, answer, by))
        except BaseException as error:
            if is_shutdown(error):
                raise
            self._report("inbox", error)
            raise_soon(error)
            settle(ask.refusal(f"Denied: the inbox raised {type(error).__name__}."), "inbox")
        return DEFERRED

    def _open_in_inbox(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        if not isinstance(self._inbox, DurableAsks):
            self._inbox.open(ask, settle)
            return
        kept = without_secrets(ask, self._redact)
        self._inbox.keep(kept, settle, self._report_failure)

    def _report_failure(self, error: BaseException) -> None:
        self._in_loop(self._report, "inbox", error)

    def withdraw(self, request_id: str, reason: str, *, may_return: bool = False) -> None:
        """Remove a deferred request from the inbox; `reason` is reported to late answers.

        With `may_return` a durable inbox keeps the ask for the next CLI of the conversation.
        """
        ask = self._open.pop(request_id, None)
        if ask is None:
            return
        if isinstance(self._inbox, DurableAsks):
            self._inbox.close_ask(ask, reason, may_return=may_return)
        elif isinstance(self._inbox, SessionAsks):
            self._inbox.close_ask(ask, reason)
        else:
            self._inbox.close(request_id, reason)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The asks that wait for an answer."""
        return tuple(self._open.values())

    def let_go(self) -> None:
        """Use no more answers: the asks stay for the next process. The requests stay open too."""
        for request_id in [*self._open]:
            self.withdraw(request_id, "its session is parked", may_return=True)

    def _in_loop(self, function: Callable[[P, Q], None], first: P, second: Q) -> None:
        """Call the function; at once if called in the session's own event loop.

        A caller in that loop then knows that the answer has been sent when `answer` returns.
        """
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            function(first, second)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(function, first, second)


def response_of(ask: Ask, answer: object) -> Any:
    """Return the answer as it is sent; for an answer of the wrong kind, a refusal."""
    try:
        return ask.response(answer)
    except Exception:  # noqa: BLE001 - an answer of any kind; what cannot be read refuses
        return ask.refusal("Denied: the answer is not valid for this request.")
