"""The jobs of a fleet in one process, as their readers see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import msgspec

from steersman import _json
from steersman._json import JsonObject
from steersman.agent import Session, Turn
from steersman.errors import ReaderLagged
from steersman.fleet.answers import AnswerWatch
from steersman.fleet.ports import JobSpec, JobState
from steersman.fleet.queue import JobQueue
from steersman.journal import Entry, Kind
from steersman.journal.json_form import result_from_json
from steersman.journal.results import TurnResult
from steersman.ports import Clock


@dataclass(slots=True)
class _Life:
    session: Session
    turn: Turn
    after: int


@dataclass(slots=True, weakref_slot=True)
class JobLife:
    """The turns of a job in this process, one for each session that had it."""

    turns: list[_Life] = field(default_factory=list[_Life])
    last: TurnResult | None = None
    """The result of the last turn, which may be parked."""
    result: TurnResult | None = None
    """The result, once the job has settled."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def turn(self) -> Turn | None:
        """The turn that runs, or ran last."""
        return self.turns[-1].turn if self.turns else None

    def began(self, session: Session, turn: Turn, after: int) -> None:
        """Record that a session has the prompt."""
        self.turns.append(_Life(session, turn, after))
        self._notify()

    def settled(self, result: TurnResult) -> None:
        """Record the last result; a later one is ignored."""
        self.result = self.result or result
        self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def ended(self) -> TurnResult:
        """Wait for the result."""
        while self.result is None:
            await self._news.wait()
        return self.result

    async def _each(self) -> AsyncIterator[_Life]:
        number = 0
        while True:
            while number < len(self.turns):
                yield self.turns[number]
                number += 1
            if self.result is not None:
                return
            await self._news.wait()

    async def text(self) -> AsyncIterator[str]:
        """Iterate over the text of all turns."""
        async for each in self._each():
            async for chunk in each.turn.text():
                yield chunk
        if not self.turns and self.result is not None and self.result.text:
            yield self.result.text

    async def entries(self, after: int) -> AsyncIterator[Entry]:
        """Iterate over the entries of all turns, numbered from 1."""
        number = 0
        async for each in self._each():
            async for entry in each.session.journal(after=each.after):
                if not isinstance(entry, Entry):
                    raise ReaderLagged(entry.lost)
                if each.turn.uuid not in entry.turns:
                    continue
                number += 1
                if number > after:
                    yield msgspec.structs.replace(entry, seq=number)
                if entry.kind is Kind.SETTLED:
                    break


class JobLives:
    """The lives of the jobs of a fleet, and what its sessions report to."""

    def __init__(self) -> None:
        self._lives: dict[str, JobLife] = {}
        self._settled: WeakValueDictionary[str, JobLife] = WeakValueDictionary()
        """Those that may still be read: they keep the journals of their sessions."""
        self._answers: AnswerWatch | None = None

    def connect(self, answers: AnswerWatch) -> None:
        """Watch the inboxes of parked jobs from now on."""
        self._answers = answers

    def of(self, spec: JobSpec, result: JsonObject | None) -> JobLife:
        """Return the life of a job, which may have settled with `result`."""
        known = self._lives.get(spec.id) or self._settled.get(spec.id)
        if known is None and result is None:
            known = self._lives[spec.id] = JobLife()
        elif known is None:
            known = JobLife()
            known.settled(_read(result))
        return known

    def get(self, job: str) -> JobLife | None:
        """Return the life of a job that has not settled."""
        return self._lives.get(job)

    def ended(self, spec: JobSpec, result: JsonObject) -> None:
        """Give the result of a job to those who wait for it."""
        life = self._lives.pop(spec.id, None)
        if life is not None:
            self._settled[spec.id] = life
            life.settled(life.last or _read(result))

    # What sessions report

    def began(self, job: str, session: Session, turn: Turn, after: int) -> None:
        """Record that the prompt of a job was sent."""
        life = self._lives.get(job)
        if life is not None:
            life.began(session, turn, after)

    def settled(self, job: str, result: TurnResult) -> None:
        """Record the result of a turn."""
        life = self._lives.get(job)
        if life is None:
            return
        life.last = result
        if result.outcome == "parked" and life.turns and self._answers is not None:
            self._answers.watch(life.turns[-1].session.options.inbox)


def _read(result: JsonObject | None) -> TurnResult:
    return result_from_json(_json.dumps(result))


class LocalJob:
    """The `JobSource` of a job in this process."""

    def __init__(self, queue: JobQueue, spec: JobSpec, life: JobLife, clock: Clock) -> None:
        self._queue = queue
        self._spec = spec
        self._life = life
        self._clock = clock
        self.result = life.ended
        self.text = life.text
        self.entries = life.entries

    @property
    def state(self) -> JobState:
        """The state of the job."""
        return "settled" if self._life.result is not None else self._queue.hold(self._spec.id).state

    @property
    def why(self) -> str:
        """What the job waits for, in words."""
        return self._queue.hold(self._spec.id).words(self._clock())

    async def withdraw(self) -> bool:
        """Cancel the job if the model has not seen its prompt."""
        turn = self._life.turn
        if turn is not None:
            return not turn.is_settled and await turn.withdraw()
        return await self._queue.cancel(self._spec.id)

    async def interrupt(self) -> None:
        """Stop the turn if it runs; otherwise the job ends: as cancelled, or as it was parked."""
        turn = self._life.turn
        if turn is not None and not turn.is_settled:
            await turn.interrupt()
        else:
            await self._queue.cancel(self._spec.id)
