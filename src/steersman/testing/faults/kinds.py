"""The faults, as data: what goes wrong, and at which line; and the plan of a run.

A fault of a line changes its bytes; a fault of a process acts on a `Target`. A `FaultPlan` is given
them one by one, or draws them from a seed. Pure: `FaultyTransport` carries them out.
"""

from __future__ import annotations

import math
import random
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

At = int | str
"""The number of a line, from 1, or a text: the first line that contains it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Delays everything after it by `rounds` of the event loop, then by `seconds`."""

    rounds: int = 0
    seconds: float = 0.0
    joins: bool = False
    """If true, the chunks that were put meanwhile are delivered as one."""

    def __str__(self) -> str:
        rounds = [f"{self.rounds} rounds"] if self.rounds else []
        seconds = [f"{self.seconds:g} s"] if self.seconds else []
        return " and ".join((*rounds, *seconds)) or "no time"


FOR_EVER = Wait(seconds=math.inf)

Segment = bytes | Wait


class Target(Protocol):
    """The process that a fault acts on."""

    def kill(self, status: int, later: float) -> None:
        """Kill the process after `later` seconds, and report `status` as its exit status."""
        ...

    def suspend(self, wait: Wait) -> None:
        """Stop the process for the duration of `wait`."""
        ...

    def flood(self, size: int) -> None:
        """Write `size` bytes to stderr."""
        ...

    def mute(self) -> None:
        """Discard everything that the process writes to stdout from now on."""
        ...


# --- On the way from the CLI ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineFault:
    """A fault that changes one line from the CLI."""

    loses: ClassVar[bool] = False
    """True if output of the CLI is lost or altered."""

    at: At

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the segments that replace `line`, which ends in a newline."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Delay(LineFault):
    """Delays the line and everything after it."""

    rounds: int = 3
    seconds: float = 0.0

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return a wait, then the bytes."""
        return Wait(self.rounds, self.seconds), line

    def __str__(self) -> str:
        return f"{place(self.at)} delayed by {Wait(self.rounds, self.seconds)}"


@dataclass(frozen=True, slots=True)
class Join(LineFault):
    """Delivers the line in one chunk with the output of the next rounds."""

    rounds: int = 5

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return a joining wait, then the line."""
        return Wait(self.rounds, joins=True), line

    def __str__(self) -> str:
        return f"{place(self.at)} joined with those of the next {self.rounds} rounds"


@dataclass(frozen=True, slots=True)
class Split(LineFault):
    """Delivers the line in two chunks, with a pause between them."""

    where: float = 0.5
    """The share of the line in the first chunk, from 0 to 1."""
    rounds: int = 1

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the two parts with a wait between them."""
        edge = cut_at(line, self.where)
        return line[:edge], Wait(self.rounds), line[edge:]

    def __str__(self) -> str:
        return f"{place(self.at)} split at {self.where:.0%}"


@dataclass(frozen=True, slots=True)
class Duplicate(LineFault):
    """Delivers the line twice."""

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the line twice."""
        return line, line

    def __str__(self) -> str:
        return f"{place(self.at)} duplicated"


@dataclass(frozen=True, slots=True)
class Drop(LineFault):
    """Discards the line."""

    loses: ClassVar[bool] = True

    def change(self, line: bytes) -> tuple[Segment, ...]:  # noqa: ARG002 - the content does not matter
        """Return nothing."""
        return ()

    def __str__(self) -> str:
        return f"{place(self.at)} dropped"


@dataclass(frozen=True, slots=True)
class Corrupt(LineFault):
    """Replaces one byte of the line."""

    loses: ClassVar[bool] = True

    where: float = 0.5
    byte: int = 0xFF

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the line with the byte replaced; the newline stays."""
        edge = min(cut_at(line, self.where), max(0, len(line) - 2))
        return (line[:edge] + bytes([self.byte]) + line[edge + 1 :],)

    def __str__(self) -> str:
        return f"{place(self.at)} corrupted at {self.where:.0%} by 0x{self.byte:02x}"


@dataclass(frozen=True, slots=True)
class Truncate(LineFault):
    """Cuts the line short; the next line is whole."""

    loses: ClassVar[bool] = True

    where: float = 0.5

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the beginning of the line and a newline."""
        return (line[: cut_at(line, self.where)] + b"\n",)

    def __str__(self) -> str:
        return f"{place(self.at)} truncated at {self.where:.0%}"


@dataclass(frozen=True, slots=True)
class Noise(LineFault):
    """Inserts a line before it that is not part of the protocol."""

    text: bytes = b"warning: something is not as it should be"

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Return the noise as a line, then the line itself."""
        return self.text + b"\n", line

    def __str__(self) -> str:
        return f"noise before {place(self.at)}"


# --- On the way to the CLI --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputFault:
    """A fault that delays or splits one write to the CLI; nothing is lost."""

    loses: ClassVar[bool] = False

    at: At
    """The number of the write, from 1, or a text that it contains."""

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """Return the segments that replace the write."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class DelayInput(InputFault):
    """Delays the write and everything after it."""

    rounds: int = 3
    seconds: float = 0.0

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """Return a wait, then the bytes."""
        return Wait(self.rounds, self.seconds), data

    def __str__(self) -> str:
        return f"{place(self.at, 'write')} delayed by {Wait(self.rounds, self.seconds)}"


@dataclass(frozen=True, slots=True)
class SplitInput(InputFault):
    """Delivers the write in two chunks, with a pause between them."""

    where: float = 0.5
    rounds: int = 1

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """Return the two parts with a wait between them."""
        edge = cut_at(data, self.where)
        return data[:edge], Wait(self.rounds), data[edge:]

    def __str__(self) -> str:
        return f"{place(self.at, 'write')} split at {self.where:.0%}"


# --- The process ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProcessFault:
    """A fault of the process, at the moment when it writes a line."""

    loses: ClassVar[bool] = True

    at: At

    def strike(self, target: Target) -> None:
        """Act on the process."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Kill(ProcessFault):
    """Kills the process tree with SIGKILL; unless `later` is set, the line is lost."""

    later: float = 0.0
    """Seconds from the line to the kill."""

    def strike(self, target: Target) -> None:
        """Kill the process."""
        target.kill(-signal.SIGKILL, self.later)

    def __str__(self) -> str:
        return f"killed {moment(self.at, self.later)}"


@dataclass(frozen=True, slots=True)
class Exit(ProcessFault):
    """Ends the process with an exit status, as if it had exited by itself."""

    status: int = 1
    later: float = 0.0

    def strike(self, target: Target) -> None:
        """Kill the process, and report the status of the fault."""
        target.kill(self.status, self.later)

    def __str__(self) -> str:
        return f"exited with {self.status} {moment(self.at, self.later)}"


@dataclass(frozen=True, slots=True)
class Suspend(ProcessFault):
    """Stops the process tree with SIGSTOP for a time, or for ever if no time is given."""

    rounds: int = 0
    seconds: float = 0.0

    @property
    def is_for_ever(self) -> bool:
        """True if no time is given, so the process is not resumed."""
        return not (self.rounds or self.seconds)

    def strike(self, target: Target) -> None:
        """Stop the process."""
        target.suspend(FOR_EVER if self.is_for_ever else Wait(self.rounds, self.seconds))

    def __str__(self) -> str:
        long = "for ever" if self.is_for_ever else f"for {Wait(self.rounds, self.seconds)}"
        return f"stopped {long} at {place(self.at)}"


@dataclass(frozen=True, slots=True)
class StderrFlood(ProcessFault):
    """Writes many bytes to stderr."""

    loses: ClassVar[bool] = False

    size: int = 1024 * 1024

    def strike(self, target: Target) -> None:
        """Write the bytes."""
        target.flood(self.size)

    def __str__(self) -> str:
        return f"{self.size} bytes on stderr at {place(self.at)}"


@dataclass(frozen=True, slots=True)
class CloseOutput(ProcessFault):
    """Closes stdout while the process continues: this line and all later ones are lost."""

    def strike(self, target: Target) -> None:
        """Discard the process's output."""
        target.mute()

    def __str__(self) -> str:
        return f"output closed at {place(self.at)}"


Fault = LineFault | InputFault | ProcessFault


def place(at: At, what: str = "line") -> str:
    """Return the description of a line or a write."""
    return f"{what} {at}" if isinstance(at, int) else f"the first {what} with {at!r}"


def moment(at: At, later: float) -> str:
    """Return the description of the time at a line, or after it."""
    return f"{later:g} s after {place(at)}" if later else f"at {place(at)}"


def cut_at(line: bytes, where: float) -> int:
    """Return the index at the share `where` of a line's length, without its newline."""
    return int(where * max(0, len(line) - 1))


USUAL_LINES = 60
"""About as many lines as a turn with two tool calls has."""
MOST = 4
"""Default for the largest number of faults in one plan."""
MARKED = 0.5
"""The share of the faults that occur at a mark, if there are marks."""

_BYTES = (0x00, 0x22, 0x5C, 0x7B, 0x7D, 0xFF)
"""Bytes with a meaning in JSON, and one that is not UTF-8."""
_NOISE = (
    b"warning: something is not as it should be",
    b"",
    b"{",
    b"null",
    b"[1, 2]",
    b"\xff\xfe\x00",
    b'{"type": "no such type"}',
    b'{"type": "control_request"}',
    b'{"type": "control_response", "response": 5}',
    b'{"type": "control_cancel_request", "request_id": "nobody"}',
)


_Draw = Callable[[random.Random, At], Fault]

_DRAWS: Mapping[type[Fault], _Draw] = {
    Delay: lambda dice, at: Delay(at, dice.randint(1, 20), dice.choice((0.0, 0.0, 0.5, 5.0))),
    Join: lambda dice, at: Join(at, dice.randint(1, 20)),
    Split: lambda dice, at: Split(at, dice.random(), dice.randint(1, 5)),
    Duplicate: lambda _, at: Duplicate(at),
    Drop: lambda _, at: Drop(at),
    Corrupt: lambda dice, at: Corrupt(at, dice.random(), dice.choice(_BYTES)),
    Truncate: lambda dice, at: Truncate(at, dice.random()),
    Noise: lambda dice, at: Noise(at, dice.choice(_NOISE)),
    DelayInput: lambda dice, at: DelayInput(_early(at), dice.randint(1, 20)),
    SplitInput: lambda dice, at: SplitInput(_early(at), dice.random(), dice.randint(1, 5)),
    Kill: lambda dice, at: Kill(at, dice.choice((0.0, 0.0, 0.01, 1.0))),
    Exit: lambda dice, at: Exit(at, dice.choice((0, 1, 137))),
    Suspend: lambda dice, at: Suspend(at, dice.choice((0, 5, 50))),
    StderrFlood: lambda dice, at: StderrFlood(at, dice.choice((1, 70_000, 300_000))),
    CloseOutput: lambda _, at: CloseOutput(at),
}

KINDS: tuple[type[Fault], ...] = tuple(_DRAWS)
"""All kinds of faults."""

HARMLESS: tuple[type[Fault], ...] = (Delay, Join, Split, Noise, DelayInput, SplitInput, StderrFlood)
"""Faults that only change timing and chunks: nothing is lost, nothing arrives twice."""


class FaultPlan:
    """The faults of one process, the same on every run.

    `FaultPlan(17)` draws up to `most` faults of the kinds `among`, within the first `lines`, or
    at lines that contain one of `marks`. `FaultPlan(17, Kill(30))` contains exactly that fault.
    """

    def __init__(
        self,
        seed: int,
        *faults: Fault,
        among: Iterable[type[Fault]] = KINDS,
        lines: int = USUAL_LINES,
        most: int = MOST,
        marks: Sequence[str] = (),
    ) -> None:
        self.seed = seed
        dice = random.Random(seed)  # noqa: S311 - for tests, and the same on every run
        self.faults = faults or tuple(
            _DRAWS[kind](dice, at)
            for kind, at in _choices(dice, tuple(among), _places(dice, lines, most, marks))
        )

    @property
    def is_harmless(self) -> bool:
        """True if a session must end as it would without the faults."""
        return all(isinstance(fault, HARMLESS) for fault in self.faults)

    @property
    def loses(self) -> bool:
        """True if output of the CLI is lost or altered."""
        return any(fault.loses for fault in self.faults)

    def __str__(self) -> str:
        return f"FaultPlan(seed={self.seed}): {', '.join(map(str, self.faults)) or 'no fault'}"

    def __repr__(self) -> str:
        return f"<{self}>"


def _choices(
    dice: random.Random, kinds: Sequence[type[Fault]], places: Iterable[At]
) -> Iterator[tuple[type[Fault], At]]:
    return ((dice.choice(kinds), at) for at in places if kinds)


def _places(dice: random.Random, lines: int, most: int, marks: Sequence[str]) -> list[At]:
    """Draw different line numbers in ascending order, then some of the marks."""
    count = dice.randint(0, min(most, lines))
    marked = sum(dice.random() < MARKED for _ in range(count)) if marks else 0
    named: list[At] = [*dice.sample(marks, min(marked, len(marks)))]
    return [*sorted(dice.sample(range(1, lines + 1), count - len(named))), *named]


def _early(at: At) -> At:
    """Return an earlier number, because a host writes fewer lines than a CLI."""
    return 1 + at // 4 if isinstance(at, int) else at
