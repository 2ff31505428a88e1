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
from steersman._session.deciding import Deciding, Refused
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

    async def answer(self, asked: Asked, session_id: str) -> Any:
        """The response to send. Raises `Refused` where the answer is an error."""
        match asked:
            case ToolCalled():
                return {"mcp_response": await self.serving.answer(asked)}
            case HookAsked(callback_id=callback_id) if callback_id == GATE:
                return await self.gate.passed()
            case HookAsked():
                return await self.hooking.answer(asked)
            case PermissionAsked():
                return await self.deciding.decide(asked, session_id)
            case ElicitationAsked():
                return await self.deciding.elicit(asked.elicitation)
            case DialogAsked():
                return await self.deciding.show(asked.dialog)
            case Unanswerable():
                raise Refused(asked.reason)
