"""How a turn ended, read off its result and the messages before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from steersman._json import Json, JsonDict
from steersman.errors import NotLoggedIn, SteersmanError
from steersman.journal.agents import AgentNode, agent_tree
from steersman.journal.calls import ToolCallRecord, ToolCallTracker
from steersman.journal.costs import Cost, add_usage
from steersman.journal.tasks import TaskRegistry
from steersman.journal.text import AssistantText
from steersman.messages.content import Block
from steersman.messages.parsing import Message, to_json
from steersman.messages.turns import Assistant, Result, User
from steersman.messages.usage import ModelUsage, Usage

__all__ = ["Outcome", "TurnResult", "TurnResultBuilder", "cause_of", "outcome_of"]

Outcome = Literal["completed", "failed", "interrupted", "cancelled"]


class _Unread(str):
    __slots__ = ()


UNREAD = _Unread()
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
    said: AssistantText = field(default_factory=AssistantText, repr=False)
    """Where `blocks` come from, and `text` when somebody looks."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """Every tool that was asked for, those of subagents included, with times."""
    agents: tuple[AgentNode, ...] = ()
    """The subagents that the main agent sent in this turn, each with those that it sent."""
    structured_output: Json = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    permission_denials: list[JsonDict] = field(default_factory=list[JsonDict])
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


class TurnResultBuilder:
    """Hears the whole messages of a turn, and makes its `TurnResult`."""

    def __init__(self, uuid: str, started: float) -> None:
        self.uuid = uuid
        self.started = started
        """When the prompt was written."""
        # A turn forgets nothing: its result is to say it all.
        self.calls = ToolCallTracker(kept=None)
        self.tasks = TaskRegistry(kept=None)
        self._said: list[bytes] = []
        self._results: list[Result] = []
        self._spent = Cost()

    def record_assistant(self, message: Assistant, line: bytes) -> None:
        """Take what an agent said into account, which stands on `line`.

        Subagents are not the turn's text, nor are errors of the API that come as messages.
        """
        if message.parent_tool_use_id is None and not message.is_api_error_message:
            self._said.append(line)

    def record(self, message: Message, at: float) -> None:
        """Take a message of this turn into account, its subagents' included."""
        if isinstance(message, Assistant):
            self.record_assistant(message, to_json(message))
            self.calls.record(message, at)
        elif isinstance(message, User):
            self.calls.record(message, at)
        else:
            self.tasks.record(message, at)

    def add_result(self, result: Result, spent: Cost) -> None:
        """Take a result of this turn into account, and what it added to the bill."""
        self._results.append(result)
        self._spent += spent

    def build(
        self,
        at: float,
        outcome: Outcome,
        *,
        cause: SteersmanError | None = None,
        text: str | None = None,
    ) -> TurnResult:
        """How the turn ended.

        `text` is for one whose stream broke off: what was told cannot be taken back.
        """
        last = self._results[-1] if self._results else Result()
        said = AssistantText(tuple(self._said))
        return TurnResult(
            uuid=self.uuid,
            outcome=outcome,
            text=UNREAD if text is None else text,
            answer=last.result or said.answer,
            cost_usd=self._spent.cost_usd,
            usage=add_usage(each.usage for each in self._results) if self._results else Usage(),
            model_usage=self._spent.model_usage,
            duration=max(0.0, at - self.started),
            said=said,
            tool_calls=self.calls.all,
            agents=agent_tree(self.tasks.all, self.calls.all).children,
            structured_output=last.structured_output,
            stop_reason=last.stop_reason,
            terminal_reason=last.terminal_reason,
            permission_denials=[each for one in self._results for each in one.permission_denials],
            api_error=last.api_error_status,
            cause=cause or cause_of(last),
            result=self._results[-1] if self._results else None,
        )


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
