"""The books of a session: what its turns said, did and cost, what runs, and how much there was.

Entries in, results and figures out; the live session and the replay of a journal keep the same
books, so they say the same. Only whole messages are decoded, never the pieces.
"""

from __future__ import annotations

from steersman.errors import SteersmanError
from steersman.journal.agents import AgentNode, agent_tree
from steersman.journal.calls import CallBook, ToolCallRecord, tool_ends_in
from steersman.journal.digests import TurnDigest
from steersman.journal.entries import Entry, Kind
from steersman.journal.results import Outcome, TurnResult, cause_of
from steersman.journal.spending import CostMeter, Spending
from steersman.journal.tasks import Task, TaskRegistry
from steersman.messages.content import ToolUseBlock
from steersman.messages.limits import ApiRetry
from steersman.messages.parsing import Message
from steersman.messages.turns import Assistant, Result

__all__ = ["HEARD", "Accounts"]

TASKS = frozenset(
    {
        "task_started",
        "task_progress",
        "task_updated",
        "task_notification",
        "background_tasks_changed",
    }
)
HEARD = TASKS | {"assistant", "user", "result", "api_retry"}
"""The CLI's words for the messages that the books are made of."""

# Asked for with every message, and looking up a member of an enum is dear.
MESSAGE = Kind.MESSAGE


class Accounts:
    """Everything that can be counted and added up in one session, over all its CLIs."""

    def __init__(self) -> None:
        self.cost_usd = 0.0
        """Of all turns, those that nobody asked for included."""
        self.messages = 0
        """How many messages came."""
        self.started = 0
        """How many prompts were written."""
        self.settled = 0
        """How many of them are done with."""
        self.results = 0
        """How many turns the CLI has ended, those that nobody asked for included."""
        self.retry: tuple[ApiRetry, float] | None = None
        """The API failed, and nothing has come since: the CLI's own words, and when."""
        self.last_message: str | None = None
        """The uuid of the last message of the main agent's."""
        self.calls = CallBook()
        self.tasks = TaskRegistry()
        self.meter = CostMeter()
        self._digests: dict[str, TurnDigest] = {}
        self._result: Result | None = None
        self._spent = Spending()

    @property
    def unbilled(self) -> Spending:
        """What the last result has added, until a turn is charged with it."""
        return self._spent

    def open(self, uuid: str, at: float) -> TurnDigest:
        """A prompt was written; one that is written again, after a revival, goes on."""
        if uuid not in self._digests:
            self.started += 1
            self._digests[uuid] = TurnDigest(uuid, at)
        return self._digests[uuid]

    def hear(self, entry: Entry, name: str) -> list[ToolCallRecord]:
        """Take a message into account; gives the tool calls that begin or end with it."""
        if entry.kind is MESSAGE:
            self.messages += 1
        if name == "assistant":
            speech = entry.decoded or entry.message
            if type(speech) is Assistant:
                return self._listen(entry, speech)
        if name == "user":
            return self._end_calls(entry)
        return self._hear_whole(entry.message, entry, name) if name in HEARD else []

    def hear_speech(self, entry: Entry, speech: Assistant) -> list[ToolCallRecord]:
        """The same for what an agent said, decoded already."""
        self.messages += 1
        return self._listen(entry, speech)

    def settle(
        self,
        uuid: str,
        at: float,
        outcome: Outcome,
        *,
        has_result: bool = True,
        cause: SteersmanError | None = None,
        text: str | None = None,
    ) -> TurnResult:
        """A prompt is done with.

        With `has_result`, the last result is the one that ended it; the first turn to settle with
        it bears the cost.
        """
        digest = self._digests.pop(uuid, None)
        if digest is None:
            digest = TurnDigest(uuid, at)
        else:
            self.settled += 1
        if has_result and self._result is not None:
            digest.charge(self._result, self._spent)
            self._spent = Spending()
        return digest.finish(at, outcome, cause=cause, text=text)

    def charge(self, uuid: str) -> None:
        """Another result follows in this turn: put the last one on its bill, and leave it open."""
        if uuid in self._digests and self._result is not None:
            self._digests[uuid].charge(self._result, self._spent)
            self._spent = Spending()

    def lose(self, at: float) -> None:
        """The CLI is gone, with every call and task that was under way."""
        self.retry = None
        self.calls.close()
        self.tasks.lose(at)

    def digest(self, uuid: str) -> TurnDigest | None:
        """What is gathered of a turn that is not settled."""
        return self._digests.get(uuid)

    def agents(self, state: str = "", started: float | None = None) -> AgentNode:
        """The main agent and its subagents, as far as they are remembered."""
        return agent_tree(self.tasks.all, self.calls.all, state, started=started)

    @property
    def last_cause(self) -> SteersmanError | None:
        """Why the last result is a failure, as far as it tells."""
        return None if self._result is None else cause_of(self._result)

    @property
    def running_tasks(self) -> tuple[Task, ...]:
        """What has begun and not ended."""
        return self.tasks.running

    def _listen(self, entry: Entry, speech: Assistant) -> list[ToolCallRecord]:
        """Most messages are text that is read elsewhere, or by nobody: they stay lines here."""
        if ToolUseBlock in map(type, speech.message.content):
            return self._hear_whole(entry.message, entry, "assistant")
        self.retry = None
        if speech.parent_tool_use_id is None:
            self.last_message = speech.uuid
        for uuid in entry.turns:
            digest = self._digests.get(uuid)
            if digest is not None:
                digest.hear_speech(speech, entry.line)
        return []

    def _hear_whole(self, message: Message, entry: Entry, name: str) -> list[ToolCallRecord]:
        if isinstance(message, ApiRetry):
            self.retry = (message, entry.at)
            return []
        self.retry = None
        if isinstance(message, Result):
            self._add_up(message)
            return []
        if isinstance(message, Assistant) and message.parent_tool_use_id is None:
            self.last_message = message.uuid
        for uuid in entry.turns:
            if uuid in self._digests:
                self._digests[uuid].hear(message, entry.at)
        return self._follow(message, entry.at, name)

    def _end_calls(self, entry: Entry) -> list[ToolCallRecord]:
        """A tool's answer may be megabytes, and who it is for is all that counts here."""
        self.retry = None
        ends = tool_ends_in(entry.line)
        if not ends:
            return []
        for uuid in entry.turns:
            if uuid in self._digests:
                self._digests[uuid].calls.end(ends, entry.at)
        return self.calls.end(ends, entry.at)

    def _add_up(self, result: Result) -> None:
        self.results += 1
        self._result = result
        self._spent = self.meter.spent(result)
        self.cost_usd += self._spent.cost_usd

    def _follow(self, message: Message, at: float, name: str) -> list[ToolCallRecord]:
        if name in TASKS:
            self.tasks.hear(message, at)
            return []
        return self.calls.hear(message, at)
