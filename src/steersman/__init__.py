"""Drive the stock Claude Code CLI from Python, dependably.

This module has the names for everyday use, each imported on first use. Import the others from the
package of their topic: `steersman.messages`, `steersman.hooks`, `steersman.control` and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.agent import Agent as Agent
    from steersman.agent import Session as Session
    from steersman.agent import Turn as Turn
    from steersman.agent import query as query
    from steersman.agent import run as run
    from steersman.agent import run_result as run_result
    from steersman.diagnosis import Diagnosis as Diagnosis
    from steersman.diagnosis import doctor as doctor
    from steersman.errors import SteersmanError as SteersmanError
    from steersman.hooks import Hooks as Hooks
    from steersman.inbox import Inbox as Inbox
    from steersman.journal import TurnResult as TurnResult
    from steersman.messages import Assistant as Assistant
    from steersman.messages import Message as Message
    from steersman.messages import Result as Result
    from steersman.messages import StreamEvent as StreamEvent
    from steersman.messages import TextBlock as TextBlock
    from steersman.messages import ToolResultBlock as ToolResultBlock
    from steersman.messages import ToolUseBlock as ToolUseBlock
    from steersman.messages import User as User
    from steersman.options import Options as Options
    from steersman.permissions import Allow as Allow
    from steersman.permissions import Ask as Ask
    from steersman.permissions import Deny as Deny
    from steersman.permissions import Policy as Policy
    from steersman.tools import Toolbox as Toolbox
    from steersman.tools import ToolContext as ToolContext
    from steersman.tools import tool as tool
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "agent": ("Agent", "Session", "Turn", "query", "run", "run_result"),
            "diagnosis": ("Diagnosis", "doctor"),
            "errors": ("SteersmanError",),
            "hooks.registry": ("Hooks",),
            "inbox": ("Inbox",),
            "journal": ("TurnResult",),
            "messages.content": ("TextBlock", "ToolResultBlock", "ToolUseBlock"),
            "messages.parsing": ("Message",),
            "messages.turns": ("Assistant", "Result", "StreamEvent", "User"),
            "options": ("Options",),
            "permissions": ("Allow", "Ask", "Deny", "Policy"),
            "tools": ("ToolContext", "Toolbox", "tool"),
        },
    )

__all__ = [
    "Agent",
    "Allow",
    "Ask",
    "Assistant",
    "Deny",
    "Diagnosis",
    "Hooks",
    "Inbox",
    "Message",
    "Options",
    "Policy",
    "Result",
    "Session",
    "SteersmanError",
    "StreamEvent",
    "TextBlock",
    "ToolContext",
    "ToolResultBlock",
    "ToolUseBlock",
    "Toolbox",
    "Turn",
    "TurnResult",
    "User",
    "doctor",
    "query",
    "run",
    "run_result",
    "tool",
]
