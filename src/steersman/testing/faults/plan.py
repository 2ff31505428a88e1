"""Chooses the faults of a run: given one by one, or drawn from a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from steersman.testing.faults.kinds import (
    CloseOutput,
    Corrupt,
    Delay,
    DelayInput,
    Drop,
    Duplicate,
    Exit,
    Fault,
    Join,
    Kill,
    Noise,
    Split,
    SplitInput,
    StderrFlood,
    Suspend,
    Truncate,
)

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

At = int | str

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
