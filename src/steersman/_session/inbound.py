"""What the CLI asks of us, and who answers.

Guards fail closed: a callback that raises, or answers with something else, stops the action. What
went wrong is logged and journalled; the model is told no more than the kind of error.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    HookAsked,
    PermissionAsked,
    ToolCalled,
    Unanswerable,
)
from steersman.hooks import HookEvent, PreToolUse, Registered, Reply, UserPromptSubmit, deny
from steersman.permissions import (
    Allow,
    Decision,
    Deny,
    DialogAnswer,
    ElicitationAnswer,
    PermissionContext,
)
from steersman.ports import (
    Approver,
    Caller,
    DialogHandler,
    ElicitationHandler,
    JsonObject,
    ToolServer,
)

__all__ = ["Asked", "Desk", "People", "Refused"]

Asked = PermissionAsked | ElicitationAsked | DialogAsked | HookAsked | ToolCalled | Unanswerable

log = logging.getLogger("steersman.session")

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


class Desk:
    """Finds the answer to whatever the CLI asks."""

    def __init__(
        self,
        people: People,
        hooks: Mapping[str, Registered],
        servers: Mapping[str, ToolServer],
        callers: Callable[[str], Caller],
        report: Callable[[str, BaseException | str], None],
    ) -> None:
        self._people = people
        self._hooks = hooks
        self._servers = servers
        self._callers = callers
        self._report = report

    async def answer(self, asked: Asked, session_id: str) -> Any:
        """The response to send. Raises `Refused` where the answer is an error."""
        match asked:
            case PermissionAsked():
                return await self._decide(asked, session_id)
            case ElicitationAsked():
                return await self._elicit(asked)
            case DialogAsked():
                return await self._show(asked)
            case HookAsked():
                return await self._call_hook(asked)
            case ToolCalled():
                return {"mcp_response": await self._serve(asked)}
            case Unanswerable():
                raise Refused(asked.reason)

    async def _decide(self, asked: PermissionAsked, session_id: str) -> Decision:
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

    async def _elicit(self, asked: ElicitationAsked) -> ElicitationAnswer:
        if self._people.elicited is None:
            return ElicitationAnswer("decline")
        try:
            given = self._people.elicited(asked.elicitation)
            answer = await given if inspect.isawaitable(given) else given
        except Exception as error:  # noqa: BLE001 - the caller's own code; nobody has agreed
            self._report("on_elicitation", error)
            return ElicitationAnswer("decline")
        return answer if _is_answer(answer) else ElicitationAnswer("decline")

    async def _show(self, asked: DialogAsked) -> DialogAnswer:
        if self._people.shown is None:
            raise Refused("this program shows no dialogs; its author can pass on_user_dialog=...")
        try:
            given = self._people.shown(asked.dialog)
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            self._report("on_user_dialog", error)
            raise Refused(f"the dialog failed: {type(error).__name__}") from error

    async def _call_hook(self, asked: HookAsked) -> Any:
        hook = self._hooks[asked.callback_id]
        try:
            given = hook.callback(asked.event)
            reply = await given if inspect.isawaitable(given) else given
        except Exception as error:  # noqa: BLE001 - the caller's own code; a guard stops the action
            self._report(f"{hook.event_name} hook", error)
            return _failed(hook, asked.event, f"raised {type(error).__name__}")
        if _is_reply(reply):
            return {} if reply is None else reply
        self._report(f"{hook.event_name} hook", f"returned {type(reply).__name__}")
        return _failed(hook, asked.event, "did not return a reply")

    async def _serve(self, asked: ToolCalled) -> JsonObject:
        number = asked.message.get("id")
        server = self._servers.get(asked.server)
        if server is None:
            return _rpc_error(number, f"no tool server is called {asked.server!r} here")
        try:
            reply = await server.handle(asked.message, self._callers(asked.server))
        except Exception as error:  # noqa: BLE001 - a server of the caller's; the CLI must hear of it
            self._report(f"tool server {asked.server!r}", error)
            return _rpc_error(number, f"the tool server failed: {type(error).__name__}")
        # Notifications too must be answered, or the CLI waits until a timeout.
        return reply if reply is not None else {"jsonrpc": "2.0", "result": {}}


def _is_answer(given: object) -> bool:
    return isinstance(given, ElicitationAnswer)


def _is_reply(given: object) -> bool:
    return given is None or isinstance(given, Reply | Mapping)


def _with_input(decision: Allow, given: dict[str, Any]) -> Allow:
    return msgspec.structs.replace(decision, updated_input=given)


def _failed(hook: Registered, event: HookEvent, how: str) -> Reply:
    reason = f"Stopped: the {hook.event_name} hook {how}."
    if isinstance(event, PreToolUse):
        return deny(reason)
    if isinstance(event, UserPromptSubmit):
        return Reply(decision="block", reason=reason)
    return Reply()


def _rpc_error(number: Any, text: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": text}}
