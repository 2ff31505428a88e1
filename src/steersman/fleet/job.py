"""`Job`: one prompt that was given to a fleet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import Any, Protocol

from steersman.errors import UsageError
from steersman.fleet.ports import HIGHEST, LOWEST, JobSpec, JobState
from steersman.journal import Entry
from steersman.journal.results import TurnResult
from steersman.options import Limits, checks

_check_name = checks.optional(checks.non_empty)
_check_limits = checks.optional(checks.instance_of(Limits, "a Limits value, or None"))


def check_job(conversation: object, key: object, priority: object, limits: object) -> None:
    """Check what `Fleet` and `FleetClient` are given alike. Raises `UsageError`."""
    _check_name("conversation", conversation)
    _check_name("key", key)
    if type(priority) is not int or not LOWEST <= priority <= HIGHEST:
        raise UsageError("priority", priority, f"a whole number from {LOWEST} to {HIGHEST}")
    _check_limits("limits", limits)


class JobSource(Protocol):
    """What one `Job` is read from: this process, or a store."""

    @property
    def state(self) -> JobState:
        """The state of the job, as far as it is known here."""
        ...

    @property
    def why(self) -> str:
        """What the job waits for, in words; empty if it waits for nothing."""
        ...

    async def result(self) -> TurnResult:
        """Wait for the end of the job."""
        ...

    def text(self) -> AsyncIterator[str]:
        """Iterate over the text of the main agent as it grows."""
        ...

    def entries(self, after: int) -> AsyncIterator[Entry]:
        """Iterate over the entries of the job's turn, numbered from 1."""
        ...

    async def withdraw(self) -> bool:
        """Cancel the job if the model has not seen its prompt."""
        ...

    async def interrupt(self) -> None:
        """Stop the job, whatever it does."""
        ...


class Job:
    """A prompt that was given to a fleet: `await job` returns its `TurnResult`.

    As with a turn, `await` does not raise because the turn failed: see `outcome` and `cause`. Any
    number of tasks may wait for a job, and read its text or its entries.
    """

    def __init__(self, source: JobSource, spec: JobSpec) -> None:
        self.id = spec.id
        self.conversation = spec.conversation
        self.key = spec.key
        self._source = source

    def __repr__(self) -> str:
        return f"Job({self.conversation!r}, key={self.key!r}, {self.describe()!r})"

    @property
    def state(self) -> JobState:
        """What the job does: `queued`, `running`, `parked`, `held` or `settled`."""
        return self._source.state

    @property
    def why(self) -> str:
        """What a job waits for, in words: `rate limit until 14:05`; empty if it does not wait."""
        return self._source.why

    def describe(self) -> str:
        """Return the state and its reason: `held: rate limit until 14:05`."""
        return f"{self.state}: {self.why}" if self.why else self.state

    def __await__(self) -> Generator[Any, None, TurnResult]:
        return self.result().__await__()

    async def result(self) -> TurnResult:
        """Wait for the end of the job and return the result of its turn."""
        return await self._source.result()

    def text(self) -> AsyncIterator[str]:
        """Iterate over the main agent's text as it grows, from the beginning of the turn."""
        return self._source.text()

    def entries(self, after: int = 0) -> AsyncIterator[Entry]:
        """Iterate over the journal entries of the turn until it settles, numbered from 1.

        Pass the number of the last entry that you have as `after`. Raises `ReaderLagged` if some
        are no longer in memory.
        """
        return self._source.entries(after)

    async def withdraw(self) -> bool:
        """Cancel the job if the model has not seen its prompt; returns whether that worked."""
        return await self._source.withdraw()

    async def interrupt(self) -> None:
        """Stop the job: its turn if it runs, and otherwise the job before it begins."""
        await self._source.interrupt()
