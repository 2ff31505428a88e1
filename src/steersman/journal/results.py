"""How a turn ended, read off its result and the messages before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from steersman.errors import NotLoggedIn, SteersmanError
from steersman.journal.agents import AgentNode
from steersman.journal.calls import ToolCallRecord
from steersman.journal.speech import Said
from steersman.journal.spending import CostMeter
from steersman.messages.content import Block
from steersman.messages.turns import Result
from steersman.messages.usage import ModelUsage, Usage

__all__ = ["CostMeter", "Outcome", "TurnResult", "cause_of", "outcome_of"]

Outcome = Literal["completed", "failed", "interrupted", "cancelled"]

UNREAD: Any = object()
"""Given as a text: it is put together from what was said, when somebody first looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """What came of a prompt. Look at `outcome` first; `cause` says why it is not completed."""

    uuid: str
    outcome: Outcome
    text: str = ""
    """All that the main agent wrote in this turn, as `turn.text()` gives it."""
    answer: str = ""
    """Its last message: what the CLI calls the result."""
    cost_usd: float = 0.0
    """Of this turn alone. Turns that share a result: the first has the cost."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of the main agent in this turn alone."""
    model_usage: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Tokens and money of this turn alone, by model, subagents included."""
    duration: float = 0.0
    """Seconds from the moment that the prompt was written to the end."""
    said: Said = field(default_factory=Said, repr=False)
    """Where `blocks` come from, and `text` when somebody looks."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """Every tool that was asked for, those of subagents included, with times."""
    agents: tuple[AgentNode, ...] = ()
    """The subagents that the main agent sent in this turn, each with those that it sent."""
    structured_output: Any = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    permission_denials: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    api_error: int | None = None
    cause: SteersmanError | None = None
    result: Result | None = None
    """The CLI's own result, if one named this turn; the last one if there were several."""

    def __post_init__(self) -> None:
        if self.text is UNREAD:
            object.__delattr__(self, "text")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> str:
            """Give the one field that may be missing; from then on it is not."""
            if name != "text":
                raise AttributeError(f"a turn's result has no {name!r}")
            object.__setattr__(self, "text", self.said.text)
            return self.text

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All that the main agent said: prose, reasoning, the tools it asked for."""
        return self.said.blocks

    @property
    def reason(self) -> str:
        """Why it is not completed, in words; empty if it is."""
        if self.outcome == "completed":
            return ""
        if self.cause is not None:
            return str(self.cause)
        said = self.result
        if said is None:
            return self.outcome
        return said.result or "; ".join(said.errors) or said.terminal_reason or said.subtype

    @property
    def is_success(self) -> bool:
        """Whether the turn completed."""
        return self.outcome == "completed"


def outcome_of(result: Result, *, was_interrupted: bool = False) -> Outcome:
    """Completed, failed or interrupted.

    An interrupt looks like an error on the wire, and an API failure like a success.
    """
    if (result.terminal_reason or "").startswith("aborted"):
        return "interrupted"
    # Older CLIs give no reason: what ends in an error after our own interrupt was interrupted.
    if was_interrupted and result.terminal_reason is None and result.is_error:
        return "interrupted"
    return "failed" if result.is_error else "completed"


def cause_of(result: Result) -> SteersmanError | None:
    """Why a turn failed, as an error that could be raised."""
    if not result.is_error:
        return None
    said = result.result or "; ".join(result.errors) or result.subtype
    if result.api_error_status == 401 or "/login" in said:  # noqa: PLR2004 - HTTP's own number
        return NotLoggedIn(
            said,
            hint="log in with `claude`, or set ANTHROPIC_API_KEY; if user settings hold the key"
            ' helper, pass setting_sources=("user",)',
        )
    return None
