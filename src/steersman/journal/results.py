"""The result of a turn, and the builder that makes it from the turn's messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steersman._json import Json, JsonDict
from steersman.errors import SteersmanError
from steersman.journal.calls import ToolCallRecord, ToolCallTracker
from steersman.journal.costs import Cost, Unreported, add_usage
from steersman.journal.ends import Outcome, cause_of
from steersman.journal.journal import DEFAULT_MEMORY, ENTRY_WEIGHT
from steersman.journal.tasks import AgentNode, TaskRegistry, agent_tree
from steersman.journal.text import AssistantText
from steersman.messages.content import Block
from steersman.messages.parsing import Message, to_json
from steersman.messages.turns import Assistant, Result, User
from steersman.messages.usage import ModelUsage, Usage

__all__ = ["Outcome", "TurnResult", "TurnResultBuilder"]


class _Unread(str):
    __slots__ = ()


KEPT_CALLS = 10_000
"""How many finished tool calls a result lists; a turn may run for days."""

UNREAD = _Unread()
"""Passed as `text`: the text is joined from the messages when it is first read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The result of a prompt. If `outcome` is not `completed`, see `cause` and `reason`."""

    uuid: str
    outcome: Outcome
    text: str = ""
    """The text of the main agent in this turn, as `turn.text()` yields it."""
    answer: str = ""
    """The last message of the main agent: `result` in the CLI's result message."""
    cost_usd: float = 0.0
    """The cost of this turn alone. If turns share a result, the first one has the cost."""
    usage: Usage = field(default_factory=Usage)
    """The tokens of the main agent in this turn alone."""
    model_usage: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """The tokens and cost of this turn alone, by model, including subagents."""
    unreported: Unreported = field(default_factory=Unreported)
    """The tokens of messages that are neither in `usage` nor in `model_usage`: the CLI was lost
    before it reported them, as when it was killed or the session was left."""
    duration: float = 0.0
    """Seconds from the sending of the prompt to the end of the turn."""
    said: AssistantText = field(default_factory=AssistantText, repr=False)
    """The messages from which `blocks` and `text` are read."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    """All tool calls of this turn with their times, including those of subagents."""
    agents: tuple[AgentNode, ...] = ()
    """The subagents that the main agent started in this turn, each with its own subagents."""
    structured_output: Json = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    permission_denials: list[JsonDict] = field(default_factory=list[JsonDict])
    api_error: int | None = None
    cause: SteersmanError | None = None
    """Why the turn ended as it did. `None` only if it was completed, and no hook ended it."""
    result: Result | None = None
    """The CLI's result message for this turn, if there was one; the last one of several."""
    waits_for: tuple[str, ...] = ()
    """The ids of the asks that a `parked` turn waits for, in the inbox of its store."""
    left_out: int = 0
    """How many of the oldest messages and tool calls are missing in `text`, `blocks` and
    `tool_calls`, because the turn was larger than `journal_memory` and 64 MiB."""
    unknown: JsonDict = field(default_factory=dict[str, Json], repr=False)
    """The fields of the JSON it was read from that this release does not know."""

    def __post_init__(self) -> None:
        if self.text is UNREAD:
            object.__delattr__(self, "text")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> str:
            """Fill in `text`, the one field that may be missing."""
            if name != "text":
                raise AttributeError(f"a turn's result has no {name!r}")
            object.__setattr__(self, "text", self.said.text)
            return self.text

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All content blocks of the main agent: text, thinking, tool calls."""
        return self.said.blocks

    @property
    def reason(self) -> str:
        """The text of `cause`; empty without one."""
        return "" if self.cause is None else str(self.cause)

    @property
    def is_success(self) -> bool:
        """Whether the turn completed."""
        return self.outcome == "completed"


class TurnResultBuilder:
    """Collects the complete messages of a turn and builds its `TurnResult`."""

    def __init__(self, uuid: str, started: float, memory: int = DEFAULT_MEMORY) -> None:
        """Keep up to `memory` bytes of messages, and as many of the inputs of tool calls."""
        self.uuid = uuid
        self.started = started
        """When the prompt was sent."""
        self.calls = ToolCallTracker(KEPT_CALLS, memory)
        self.tasks = TaskRegistry(kept=None)
        self.api_failure = ""
        """The text of the API error that ended the turn, which the CLI sends as a message."""
        self._lines: deque[bytes] = deque()
        self._memory = memory
        self._weight = 0
        """Bytes of `_lines`, which also the journal holds as long as it has room for them."""
        self._forgotten = 0
        self._results: list[Result] = []
        self._spent = Cost()
        self.unreported = Unreported()
        """The tokens of messages whose CLI was lost before its result."""

    def record_assistant(self, message: Assistant, line: bytes) -> None:
        """Record an assistant message and the line that it came on.

        Messages of subagents and API errors sent as messages are not part of the turn's text.
        """
        if message.parent_tool_use_id is None:
            if message.is_api_error_message:
                self.api_failure = message.text
            else:
                self._lines.append(line)
                self._weight += len(line) + ENTRY_WEIGHT
                if self._weight > self._memory:
                    self._forget()

    def record(self, message: Message, at: float) -> None:
        """Record a message of this turn or of its subagents."""
        if isinstance(message, Assistant):
            self.record_assistant(message, to_json(message))
            self.calls.record(message, at)
        elif isinstance(message, User):
            self.calls.record(message, at)
        else:
            self.tasks.record(message, at)

    def _forget(self) -> None:
        while self._weight > self._memory and len(self._lines) > 1:
            self._weight -= len(self._lines.popleft()) + ENTRY_WEIGHT
            self._forgotten += 1

    def add_result(self, result: Result, spent: Cost) -> None:
        """Record a result message of this turn, and the cost that it added."""
        self._results.append(result)
        self._spent += spent

    def build(
        self,
        at: float,
        outcome: Outcome,
        *,
        cause: SteersmanError | None = None,
        text: str | None = None,
        waits_for: tuple[str, ...] = (),
    ) -> TurnResult:
        """Return the result of the turn.

        Pass `text` if a stream broke off: what was given out then is part of the turn's text.
        """
        last = self._results[-1] if self._results else Result()
        spoken = AssistantText(tuple(self._lines))
        calls = self.calls.all
        return TurnResult(
            uuid=self.uuid,
            outcome=outcome,
            text=UNREAD if text is None else text,
            answer=last.result or spoken.answer,
            cost_usd=self._spent.cost_usd,
            usage=add_usage(each.usage for each in self._results) if self._results else Usage(),
            model_usage=self._spent.model_usage,
            unreported=self.unreported,
            duration=max(0.0, at - self.started),
            said=spoken,
            tool_calls=calls,
            agents=agent_tree(self.tasks.all, calls).children,
            structured_output=last.structured_output,
            stop_reason=last.stop_reason,
            terminal_reason=last.terminal_reason,
            permission_denials=[each for one in self._results for each in one.permission_denials],
            api_error=last.api_error_status,
            cause=cause or cause_of(self._results[-1] if self._results else None, outcome),
            result=self._results[-1] if self._results else None,
            waits_for=waits_for,
            left_out=self._forgotten + self.calls.count - len(calls),
        )
