"""The faults, as data: what goes wrong, and at which line.

A fault of a line says what becomes of its bytes; a fault of a process says what is done to it.
Pure: `faults` carries them out, `fault_plan` draws them.
"""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass
from typing import ClassVar, Protocol

__all__ = [
    "CloseOutput",
    "Corrupt",
    "Delay",
    "DelayInput",
    "Drop",
    "Duplicate",
    "Exit",
    "Fault",
    "InputFault",
    "Join",
    "Kill",
    "LineFault",
    "Noise",
    "ProcessFault",
    "Segment",
    "Split",
    "SplitInput",
    "StderrFlood",
    "Suspend",
    "Target",
    "Truncate",
    "Wait",
]

At = int | str
"""A line by its number, the first is 1; or the first one that contains a text."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What is behind it goes on after so many rounds of the event loop, then so many seconds."""

    rounds: int = 0
    seconds: float = 0.0
    joins: bool = False
    """What has gathered behind it by then goes on in one chunk."""

    def __str__(self) -> str:
        rounds = [f"{self.rounds} rounds"] if self.rounds else []
        seconds = [f"{self.seconds:g} s"] if self.seconds else []
        return " and ".join((*rounds, *seconds)) or "no time"


FOR_EVER = Wait(seconds=math.inf)

Segment = bytes | Wait


class Target(Protocol):
    """The process that a fault strikes."""

    def kill(self, status: int, later: float) -> None:
        """End it in so many seconds; `status` is told in the place of its own."""
        ...

    def suspend(self, wait: Wait) -> None:
        """Stop it for so long."""
        ...

    def flood(self, size: int) -> None:
        """Have it write so many bytes on stderr."""
        ...

    def mute(self) -> None:
        """Have it say nothing more on stdout."""
        ...


# --- On the way from the CLI ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineFault:
    """Changes one line from the CLI."""

    loses: ClassVar[bool] = False
    """Whether something that the CLI said is gone, or is not what it said."""

    at: At

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """What becomes of `line`, its newline included."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Delay(LineFault):
    """The line, and all behind it, come later."""

    rounds: int = 3
    seconds: float = 0.0

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Wait first."""
        return Wait(self.rounds, self.seconds), line

    def __str__(self) -> str:
        return f"{place(self.at)} delayed by {Wait(self.rounds, self.seconds)}"


@dataclass(frozen=True, slots=True)
class Join(LineFault):
    """The line comes in one chunk with all that is said in the next rounds."""

    rounds: int = 5

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Wait for the others."""
        return Wait(self.rounds, joins=True), line

    def __str__(self) -> str:
        return f"{place(self.at)} joined with those of the next {self.rounds} rounds"


@dataclass(frozen=True, slots=True)
class Split(LineFault):
    """The line comes in two segments, with a pause between them."""

    where: float = 0.5
    """How much of it is in the first segment; from 0 to 1."""
    rounds: int = 1

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Break it."""
        edge = cut_at(line, self.where)
        return line[:edge], Wait(self.rounds), line[edge:]

    def __str__(self) -> str:
        return f"{place(self.at)} split at {self.where:.0%}"


@dataclass(frozen=True, slots=True)
class Duplicate(LineFault):
    """The line comes twice."""

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Say it again."""
        return line, line

    def __str__(self) -> str:
        return f"{place(self.at)} duplicated"


@dataclass(frozen=True, slots=True)
class Drop(LineFault):
    """The line never comes."""

    loses: ClassVar[bool] = True

    def change(self, line: bytes) -> tuple[Segment, ...]:  # noqa: ARG002 - whatever it says
        """Nothing is left."""
        return ()

    def __str__(self) -> str:
        return f"{place(self.at)} dropped"


@dataclass(frozen=True, slots=True)
class Corrupt(LineFault):
    """A byte of the line is another one."""

    loses: ClassVar[bool] = True

    where: float = 0.5
    byte: int = 0xFF

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Put the byte in; the newline stays."""
        edge = min(cut_at(line, self.where), max(0, len(line) - 2))
        return (line[:edge] + bytes([self.byte]) + line[edge + 1 :],)

    def __str__(self) -> str:
        return f"{place(self.at)} corrupted at {self.where:.0%} by 0x{self.byte:02x}"


@dataclass(frozen=True, slots=True)
class Truncate(LineFault):
    """The line breaks off; the next one begins where it should."""

    loses: ClassVar[bool] = True

    where: float = 0.5

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Keep its beginning."""
        return (line[: cut_at(line, self.where)] + b"\n",)

    def __str__(self) -> str:
        return f"{place(self.at)} truncated at {self.where:.0%}"


@dataclass(frozen=True, slots=True)
class Noise(LineFault):
    """Something that is not the protocol stands before the line."""

    text: bytes = b"warning: something is not as it should be"

    def change(self, line: bytes) -> tuple[Segment, ...]:
        """Say it as a line of its own."""
        return self.text + b"\n", line

    def __str__(self) -> str:
        return f"noise before {place(self.at)}"


# --- On the way to the CLI --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputFault:
    """Changes the way of one write to the CLI; nothing is lost on it."""

    loses: ClassVar[bool] = False

    at: At
    """The number of the write, or a text that it contains."""

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """What becomes of the write."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class DelayInput(InputFault):
    """The write, and all behind it, reach the CLI later."""

    rounds: int = 3
    seconds: float = 0.0

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """Wait first."""
        return Wait(self.rounds, self.seconds), data

    def __str__(self) -> str:
        return f"{place(self.at, 'write')} delayed by {Wait(self.rounds, self.seconds)}"


@dataclass(frozen=True, slots=True)
class SplitInput(InputFault):
    """The write reaches the CLI in two segments, with a pause between them."""

    where: float = 0.5
    rounds: int = 1

    def change(self, data: bytes) -> tuple[Segment, ...]:
        """Break it."""
        edge = cut_at(data, self.where)
        return data[:edge], Wait(self.rounds), data[edge:]

    def __str__(self) -> str:
        return f"{place(self.at, 'write')} split at {self.where:.0%}"


# --- The process ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProcessFault:
    """Strikes the CLI as it is about to say a line."""

    loses: ClassVar[bool] = True

    at: At

    def strike(self, target: Target) -> None:
        """Do it."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Kill(ProcessFault):
    """SIGKILL for the whole tree: the line is not said any more, unless it comes `later`."""

    later: float = 0.0
    """Seconds from the line to the kill."""

    def strike(self, target: Target) -> None:
        """End it."""
        target.kill(-signal.SIGKILL, self.later)

    def __str__(self) -> str:
        return f"killed {moment(self.at, self.later)}"


@dataclass(frozen=True, slots=True)
class Exit(ProcessFault):
    """It ends by itself, with a status."""

    status: int = 1
    later: float = 0.0

    def strike(self, target: Target) -> None:
        """End it, and say that it did so itself."""
        target.kill(self.status, self.later)

    def __str__(self) -> str:
        return f"exited with {self.status} {moment(self.at, self.later)}"


@dataclass(frozen=True, slots=True)
class Suspend(ProcessFault):
    """SIGSTOP for the whole tree: for a while, or for ever if neither time is given."""

    rounds: int = 0
    seconds: float = 0.0

    @property
    def is_for_ever(self) -> bool:
        """Whether nobody lets it run on."""
        return not (self.rounds or self.seconds)

    def strike(self, target: Target) -> None:
        """Stop it."""
        target.suspend(FOR_EVER if self.is_for_ever else Wait(self.rounds, self.seconds))

    def __str__(self) -> str:
        long = "for ever" if self.is_for_ever else f"for {Wait(self.rounds, self.seconds)}"
        return f"stopped {long} at {place(self.at)}"


@dataclass(frozen=True, slots=True)
class StderrFlood(ProcessFault):
    """It floods stderr."""

    loses: ClassVar[bool] = False

    size: int = 1024 * 1024

    def strike(self, target: Target) -> None:
        """Write and write."""
        target.flood(self.size)

    def __str__(self) -> str:
        return f"{self.size} bytes on stderr at {place(self.at)}"


@dataclass(frozen=True, slots=True)
class CloseOutput(ProcessFault):
    """It closes its stdout and lives on: this line and all behind it are never heard."""

    def strike(self, target: Target) -> None:
        """Let it move its lips."""
        target.mute()

    def __str__(self) -> str:
        return f"output closed at {place(self.at)}"


Fault = LineFault | InputFault | ProcessFault


def place(at: At, what: str = "line") -> str:
    """Name a line or a write."""
    return f"{what} {at}" if isinstance(at, int) else f"the first {what} with {at!r}"


def moment(at: At, later: float) -> str:
    """Name the time at a line, or after it."""
    return f"{later:g} s after {place(at)}" if later else f"at {place(at)}"


def cut_at(line: bytes, where: float) -> int:
    """The byte at a share of a line's length, its newline left out."""
    return int(where * max(0, len(line) - 1))
