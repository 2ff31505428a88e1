"""Routes each control request of the CLI to the part that answers it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    HookAsked,
    PermissionAsked,
    ToolCalled,
    Unanswerable,
)
from steersman._session.durability import NO_HELD_CALLS
from steersman._session.gate import GATE, Gate
from steersman._session.requests.hooks import HookRunner
from steersman._session.requests.permissions import (
    PermissionResponder,
    RequestRejected,
    SendAnswer,
    ignore_answer,
)
from steersman._session.requests.tool_servers import ToolServers
from steersman.permissions import CanUseTool
from steersman.ports import HeldCalls

if TYPE_CHECKING:
    from steersman._session.requests.policy_hook import PolicyHook
    from steersman.permissions.asks import Payload

CliRequest = (
    PermissionAsked | ElicitationAsked | DialogAsked | HookAsked | ToolCalled | Unanswerable
)


@dataclass(frozen=True, slots=True)
class Responder:
    """Answers the control requests of the CLI."""

    permissions: PermissionResponder
    hooks: HookRunner
    servers: ToolServers
    gate: Gate
    holding: HeldCalls = NO_HELD_CALLS
    """What holds calls, by one of `hooks`."""
    policy: PolicyHook | None = None
    """The hook that applies the policy, if there is one."""

    def is_repeatable(self, payload: Payload) -> bool:
        """Whether a call is declared as one that may run twice, by its tool or by the policy."""
        if not isinstance(payload, CanUseTool):
            return False
        by_policy = self.policy is not None and self.policy.may_repeat(payload)
        return by_policy or self.servers.is_repeatable(payload.tool_name)

    def answer(
        self, asked: CliRequest, session_id: str, reply: SendAnswer = ignore_answer
    ) -> Awaitable[object]:
        """Return the response to send. After `DEFERRED`, `reply` is called with the response.

        Raises `RequestRejected`, at once or when awaited, if the answer is an error.
        """
        # Compare classes instead of `match`: a class pattern that fails on a struct is ten times
        # slower.
        if type(asked) is PermissionAsked:
            return self._decide(asked, session_id, reply)
        if type(asked) is ToolCalled:
            return self._serve(asked)
        if type(asked) is HookAsked:
            is_gate = asked.callback_id == GATE
            return self.gate.wait() if is_gate else self.hooks.answer(asked, reply)
        if type(asked) is ElicitationAsked:
            return self.permissions.elicit_later(asked, session_id, reply)
        if type(asked) is DialogAsked:
            return self.permissions.show(asked, session_id, reply)
        return self._refuse(asked)

    def refusal(self, asked: CliRequest) -> object:
        """Return the blocking reply to send if a guard cannot answer; None if an error will do.

        After an error some CLIs let the action happen.
        """
        if type(asked) is HookAsked:
            return self.hooks.refusal(asked.callback_id, "did not answer")
        if type(asked) is Unanswerable and asked.callback_id:
            return self.hooks.refusal(asked.callback_id, "got an event that cannot be read")
        return None

    async def _refuse(self, asked: Unanswerable) -> object:
        refusal = self.refusal(asked)
        if refusal is None:
            raise RequestRejected(asked.reason)
        return refusal

    def _decide(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer
    ) -> Awaitable[object]:
        if self.hooks.decides_permissions:
            return self._decide_after_hooks(asked, session_id, reply)
        return self.permissions.decide(asked, session_id, reply)

    async def _decide_after_hooks(
        self, asked: PermissionAsked, session_id: str, reply: SendAnswer
    ) -> object:
        # The CLI calls `PermissionRequest` hooks at the same time and uses the first answer.
        await self.hooks.wait_for_permission_hooks(
            asked.request.tool_name, asked.request.tool_use_id
        )
        return await self.permissions.decide(asked, session_id, reply)

    async def _serve(self, asked: ToolCalled) -> object:
        return {"mcp_response": await self.servers.answer(asked)}

    def withdrawn(self, asked: HookAsked, reason: str) -> None:
        """Close the ask of a call that a hook holds, because the CLI has given the call up."""
        self.holding.withdrawn(asked.tool_use_id, reason)

    def withdraw(self, request_id: str, reason: str, *, may_return: bool = False) -> None:
        """Withdraw a deferred request; its answer is no longer needed by this CLI."""
        self.permissions.withdraw(request_id, reason, may_return=may_return)
