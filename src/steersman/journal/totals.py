"""The totals of a session: results of turns, costs, tool calls, tasks and counts.

Entries in, results and counts out. A live session and the replay of a journal use this class, so
both give the same results. Partial messages are not decoded here.
"""

from __future__ import annotations

from steersman import _json
from steersman.errors import SteersmanError
from steersman.journal.calls import ToolCallRecord, ToolCallTracker, tool_ends_in
from steersman.journal.costs import Cost, CostTracker, Unreported
from steersman.journal.ends import Outcome, cause_of
from steersman.journal.journal import DEFAULT_MEMORY, Entry, Kind
from steersman.journal.results import TurnResult, TurnResultBuilder
from steersman.journal.tasks import AgentNode, Task, TaskRegistry, agent_tree
from steersman.messages.content import ToolUseBlock
from steersman.messages.limits import ApiRetry
from steersman.messages.parsing import Message
from steersman.messages.turns import Assistant, Result

TASKS = frozenset(
    {
        "task_started",
        "task_progress",
        "task_updated",
        "task_notification",
        "background_tasks_changed",
    }
)
RECORDED_TYPES = TASKS | {"assistant", "user", "result", "api_retry"}
"""The types and system subtypes of the messages that are recorded here."""

# Used for every message, and in Python 3.11 looking up a member of an enum is slow.
MESSAGE = Kind.MESSAGE


class SessionTotals:
    """Counts, costs and results of one session, over all its CLI processes."""

    def __init__(self, memory: int = DEFAULT_MEMORY) -> None:
        """Keep up to `memory` bytes of the messages of each turn, for its result."""
        self._memory = memory
        self.cost_usd = 0.0
        """The cost of all turns, including those that the CLI started itself."""
        self.messages = 0
        """How many messages have arrived."""
        self.started = 0
        """How many prompts were sent."""
        self.settled = 0
        """How many of the sent prompts have settled."""
        self.results = 0
        """How many results have arrived, including those of turns that the CLI started itself."""
        self.retry: tuple[ApiRetry, float] | None = None
        """The last `api_retry` and its time, if no other message has arrived since."""
        self.last_message: str | None = None
        """The uuid of the last assistant message of the main agent."""
        self.calls = ToolCallTracker()
        self.tasks = TaskRegistry()
        self.costs = CostTracker()
        self._turns: dict[str, TurnResultBuilder] = {}
        self._result: Result | None = None
        self.counted_upto = 0
        """The number of the last entry whose tokens are counted: that of a result, or of a loss."""
        self.uncharged = Cost()
        """The cost that the last result has added, until it is charged to a turn."""

    def open(self, uuid: str, at: float) -> TurnResultBuilder:
        """Begin a turn; a prompt that is sent again after a restart continues its turn."""
        if uuid not in self._turns:
            self.started += 1
            self._turns[uuid] = TurnResultBuilder(uuid, at, self._memory)
        return self._turns[uuid]

    def resume(self, entry: Entry) -> None:
        """Record the calls of a `TAKEN_UP` entry as running, in the session and in its turns.

        Calls that are known already stay as they are.
        """
        turns = [self.open(uuid, entry.at).calls for uuid in entry.turns]
        calls = entry.details.get("calls")
        for call in filter(_json.is_object, calls if _json.is_array(calls) else ()):
            given = call.get("input")
            for tracker in (self.calls, *turns):
                tracker.resume(
                    str(call.get("tool_use_id", "")),
                    str(call.get("tool_name", "")),
                    given if _json.is_object(given) else {},
                    entry.at,
                )

    def calls_of(self, uuid: str) -> tuple[ToolCallRecord, ...]:
        """Return the tool calls of a turn that has not settled."""
        turn = self._turns.get(uuid)
        return () if turn is None else turn.calls.all

    def record(self, entry: Entry, name: str) -> list[ToolCallRecord]:
        """Record a message, and return the tool calls that begin or end with it."""
        if entry.kind is MESSAGE:
            self.messages += 1
        if name == "assistant":
            message = entry.decoded or entry.message
            if type(message) is Assistant:
                return self._record_text(entry, message)
        if name == "user":
            return self._end_calls(entry)
        return self._record_message(entry.message, entry, name) if name in RECORDED_TYPES else []

    def record_assistant(self, entry: Entry, message: Assistant) -> list[ToolCallRecord]:
        """Record an assistant message that was decoded on arrival, as `record` does."""
        self.messages += 1
        return self._record_text(entry, message)

    def settle(
        self,
        uuid: str,
        at: float,
        outcome: Outcome,
        *,
        has_result: bool = True,
        cause: SteersmanError | None = None,
        text: str | None = None,
        waits_for: tuple[str, ...] = (),
    ) -> TurnResult:
        """End a turn and return its result.

        With `has_result`, the last result message ended this turn. If it ended several turns, the
        first one to settle is charged.
        """
        turn = self._turns.pop(uuid, None)
        if turn is None:
            turn = TurnResultBuilder(uuid, at)
        else:
            self.settled += 1
        if has_result and self._result is not None:
            turn.add_result(self._result, self.uncharged)
            self.uncharged = Cost()
        return turn.build(at, outcome, cause=cause, text=text, waits_for=waits_for)

    def charge(self, uuid: str) -> None:
        """Charge the last result to a turn that another result will end."""
        if uuid in self._turns and self._result is not None:
            self._turns[uuid].add_result(self._result, self.uncharged)
            self.uncharged = Cost()

    def api_failure(self, uuid: str) -> str:
        """Return the API error that ended a turn, also if its result is lost; empty without one."""
        turn = self._turns.get(uuid)
        return "" if turn is None else turn.api_failure

    def add_unreported(self, uuid: str, tokens: Unreported) -> None:
        """Record tokens of a turn that no result counts."""
        if uuid in self._turns:
            self._turns[uuid].unreported += tokens

    def cli_lost(self, at: float) -> None:
        """Forget running calls, and end running tasks, because their CLI has exited."""
        self.retry = None
        self.calls.close()
        self.tasks.lose(at)

    def agents(self, state: str = "", started: float | None = None) -> AgentNode:
        """Return the main agent and its subagents, as far as they are remembered."""
        return agent_tree(self.tasks.all, self.calls.all, state, started=started)

    def cause_for(self, outcome: Outcome, *, has_result: bool) -> SteersmanError | None:
        """Return the cause that the last result, or the outcome alone, gives."""
        return cause_of(self._result if has_result else None, outcome)

    @property
    def running_tasks(self) -> tuple[Task, ...]:
        """The tasks that have not ended."""
        return self.tasks.running

    def _record_text(self, entry: Entry, message: Assistant) -> list[ToolCallRecord]:
        """Record an assistant message. Text is kept as its line: most of it is never read here."""
        if ToolUseBlock in map(type, message.message.content):
            return self._record_message(entry.message, entry, "assistant")
        self.retry = None
        if message.parent_tool_use_id is None:
            self.last_message = message.uuid
        for uuid in entry.turns:
            turn = self._turns.get(uuid)
            if turn is not None:
                turn.record_assistant(message, entry.line)
        return []

    def _record_message(self, message: Message, entry: Entry, name: str) -> list[ToolCallRecord]:
        if isinstance(message, ApiRetry):
            self.retry = (message, entry.at)
            return []
        self.retry = None
        if isinstance(message, Result):
            self._add_result(message)
            self.counted_upto = entry.seq
            return []
        if isinstance(message, Assistant) and message.parent_tool_use_id is None:
            self.last_message = message.uuid
        for uuid in entry.turns:
            if uuid in self._turns:
                self._turns[uuid].record(message, entry.at)
        return self._record_call_or_task(message, entry.at, name)

    def _end_calls(self, entry: Entry) -> list[ToolCallRecord]:
        """End the calls whose results `entry` has, without decoding results of megabytes."""
        self.retry = None
        ends = tool_ends_in(entry.line)
        if not ends:
            return []
        for uuid in entry.turns:
            if uuid in self._turns:
                self._turns[uuid].calls.end(ends, entry.at)
        return self.calls.end(ends, entry.at)

    def _add_result(self, result: Result) -> None:
        self.results += 1
        self._result = result
        self.uncharged = self.costs.add(result)
        self.cost_usd += self.uncharged.cost_usd

    def _record_call_or_task(self, message: Message, at: float, name: str) -> list[ToolCallRecord]:
        if name in TASKS:
            self.tasks.record(message, at)
            return []
        return self.calls.record(message, at)
