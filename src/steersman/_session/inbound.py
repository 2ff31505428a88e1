"""What the CLI asks of us, and whose business it is to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    HookAsked,
    PermissionAsked,
    ToolCalled,
    Unanswerable,
)
from steersman._session.asking import Reply
from steersman._session.deciding import Deciding, Refused, nobody
from steersman._session.hooking import Hooking
from steersman._session.pausing import GATE, Gate
from steersman._session.serving import Serving

__all__ = ["Asked", "Desk"]

Asked = PermissionAsked | ElicitationAsked | DialogAsked | HookAsked | ToolCalled | Unanswerable


@dataclass(frozen=True, slots=True)
class Desk:
    """Finds the answer to whatever the CLI asks."""

    deciding: Deciding
    hooking: Hooking
    serving: Serving
    gate: Gate

    async def answer(self, asked: Asked, session_id: str, reply: Reply = nobody) -> Any:
        """The response to send, or `LATER`: then it is `reply` that gets it, when it is there.

        Raises `Refused` where the answer is an error.
        """
        match asked:
            case PermissionAsked():
                # The CLI asks hooks on PermissionRequest at the same time and goes by the first.
                if self.hooking.has_a_say:
                    await self.hooking.hold(asked.question.tool_name, asked.question.tool_use_id)
                return await self.deciding.decide(asked, session_id, reply)
            case ToolCalled():
                return {"mcp_response": await self.serving.answer(asked)}
            case HookAsked(callback_id=callback_id) if callback_id == GATE:
                return await self.gate.passed()
            case HookAsked():
                return await self.hooking.answer(asked)
            case ElicitationAsked():
                return await self.deciding.elicit_later(asked, session_id, reply)
            case DialogAsked():
                return await self.deciding.show(asked, session_id, reply)
            case Unanswerable():
                raise Refused(asked.reason)

    def withdraw(self, request_id: str, reason: str) -> None:
        """Nobody waits for an answer that was to come later."""
        self.deciding.withdraw(request_id, reason)
