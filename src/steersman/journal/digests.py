"""What becomes the result of one turn, gathered while its messages come."""

from __future__ import annotations

from steersman.errors import SteersmanError
from steersman.journal.agents import agent_tree
from steersman.journal.calls import CallBook
from steersman.journal.results import UNREAD, Outcome, TurnResult, cause_of
from steersman.journal.speech import Said
from steersman.journal.spending import Spending, add_usage
from steersman.journal.tasks import TaskRegistry
from steersman.messages.parsing import Message, to_json
from steersman.messages.turns import Assistant, Result, User
from steersman.messages.usage import Usage

__all__ = ["TurnDigest"]


class TurnDigest:
    """Hears the whole messages of a turn, and makes its `TurnResult`."""

    def __init__(self, uuid: str, started: float) -> None:
        self.uuid = uuid
        self.started = started
        """When the prompt was written."""
        # A turn forgets nothing: its result is to say it all.
        self.calls = CallBook(kept=None)
        self.tasks = TaskRegistry(kept=None)
        self._said: list[bytes] = []
        self._results: list[Result] = []
        self._spent = Spending()

    def hear_speech(self, speech: Assistant, line: bytes) -> None:
        """Take what an agent said into account, which stands on `line`.

        Subagents are not the turn's text, nor are errors of the API that come as messages.
        """
        if speech.parent_tool_use_id is None and not speech.is_api_error_message:
            self._said.append(line)

    def hear(self, message: Message, at: float) -> None:
        """Take a message of this turn into account, its subagents' included."""
        if isinstance(message, Assistant):
            self.hear_speech(message, to_json(message))
            self.calls.hear(message, at)
        elif isinstance(message, User):
            self.calls.hear(message, at)
        else:
            self.tasks.hear(message, at)

    def charge(self, result: Result, spent: Spending) -> None:
        """Take a result of this turn into account, and what it added to the bill."""
        self._results.append(result)
        self._spent += spent

    def finish(
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
        said = Said(tuple(self._said))
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
