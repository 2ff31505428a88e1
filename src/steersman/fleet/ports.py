"""The port between a fleet and the engine that keeps its jobs.

A job is one turn of a conversation. The engine keeps its row, runs one job of a conversation at a
time, and runs segments on slots: a segment is one life of a CLI, from its start until the turn is
settled or parked. `fleet.jobs.run_job` is the code of a job; it calls only this port.

Everything in a row is JSON, so that a row can be read by another process. A row has no environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from steersman._json import Json, JsonDict, JsonObject

LOWEST, HIGHEST = -1000, 1000
"""The range of priorities. A job of a higher one gets a slot first; 0 is usual."""

NO_SLOT = "waits for a slot"
"""Why a job is queued that is the next one of its conversation."""

JobState = Literal["queued", "running", "parked", "held", "settled"]
"""A `parked` job waits for a user and has no slot; a `held` one for money or a rate limit."""

SegmentState = Literal["settled", "parked", "again"]


def job_id(conversation: str, key: str) -> str:
    """Return the id of a job. It is known before the job is stored, so sending twice is safe."""
    return f"{conversation_prefix(conversation)}{_hashed(key)}"


def conversation_prefix(conversation: str) -> str:
    """Return the prefix of the ids of all jobs of a conversation."""
    return f"job-{_hashed(conversation)}-"


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What was asked for. Two specs with one `id` and different `fingerprint`s are a mistake."""

    conversation: str
    prompt: Json = field(repr=False)
    """The content of the prompt, as `prompt_content()` returns it: a text or a list of blocks."""
    key: str
    agent: str = "default"
    priority: int = 0
    budget: str | None = None
    limits: JsonObject | None = None
    """The fields of `Limits` that are not None."""

    @property
    def id(self) -> str:
        """The id of the job."""
        return job_id(self.conversation, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as the engine has it."""

    spec: JobSpec
    state: JobState
    result: JsonObject | None = field(default=None, repr=False)
    """Of a settled job: a `TurnResult` as JSON, as `result_to_json` writes it."""
    attempts: int = 0
    """How often a worker has begun the segment that runs, or ran last."""
    why: str = ""
    """What a parked or held job waits for, in words."""
    worker: str = ""
    """Which worker has it; empty if none has."""
    created: float = 0.0
    """Seconds since the epoch."""

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.spec.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEnd:
    """How a segment ended."""

    state: SegmentState
    """`again`: nothing was decided, such as while the store is away; run it again."""
    result: JsonObject | None = field(default=None, repr=False)
    """If it is settled: a `TurnResult` as JSON."""
    waits_for: tuple[str, ...] = ()
    """If it is parked: the ids of its asks. Without any, it is run again at once."""
    why: str = ""
    after: float = 0.0
    """Seconds until it is run again, if it is `again`."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event that a job has recorded about itself."""

    number: int
    """Counts from 1 for each job."""
    data: JsonObject


Segment: TypeAlias = Callable[[JobSpec, int], Awaitable[SegmentEnd]]
"""Runs one segment of a job on a slot; the number counts the segments of the job, from 0.

It may be called again with the same number, after a crash or beside a call in a process that was
stopped: `session.send(key=...)` makes sure that the turn runs once.
"""


class Engine(Protocol):
    """Keeps jobs, and runs them if it was made with a `Segment`.

    Every method raises `StoreError` if the database cannot be reached; a call that failed so can
    be made again. The ids are those of `job_id`.
    """

    async def submit(self, spec: JobSpec) -> JobRow:
        """Store a job and return its row; that of an earlier call if it is the same job.

        Raises `KeyTaken` if the job of this id has another prompt, agent or budget.
        """
        ...

    async def get(self, id_: str, *, wait: float = 0.0) -> JobRow | None:
        """Return a job; None if there is none. Waits up to `wait` seconds until it is settled."""
        ...

    async def list(
        self, *, conversation: str | None = None, states: Sequence[JobState] = (), most: int = 1000
    ) -> list[JobRow]:
        """Return jobs, the oldest first; without `states` those of all states."""
        ...

    async def cancel(self, id_: str) -> bool:
        """Have a job end as cancelled. Returns False if it is settled, or not there.

        A segment that runs is cancelled as a task; its `Segment` sees `CancelledError`.
        """
        ...

    async def signal(self, id_: str, message: JsonObject, *, once: str | None = None) -> None:
        """Give a message to a job, whether it waits already or not. It is kept until it is read.

        Of messages with the same `once` it gets the first.
        """
        ...

    async def wait(self, id_: str, timeout: float) -> JsonDict | None:
        """Return the next message to this job; None after `timeout`. Only in its code."""
        ...

    async def put_event(self, id_: str, data: JsonObject) -> None:
        """Add an event to a job. Only in the code of the job."""
        ...

    async def read_events(self, id_: str, after: int = 0) -> Sequence[JobEvent]:
        """Return the events of a job with a number above `after`."""
        ...

    async def run_segment(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Run a segment on a slot, here or elsewhere, and return how it ended.

        Only in the code of the job. A segment that has ended is not run again. Raises `PoisonedJob`
        if it has ended its worker three times.
        """
        ...

    async def recover(self, worker: str) -> int:
        """Give the jobs and segments of a worker that is dead to others; return how many."""
        ...
