"""Draws what happens in a run of durable work from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

KEY, OTHER_KEY = "invoice 7", "invoice 8"

Leave = Literal["stays", "park", "aclose", "term", "kill", "kill at call", "store away", "stop"]
Deed = Literal["", "interrupt", "cancel", "withdraw", "CLI dies", "another key"]
"""What else happens to a host, or what it does, before it leaves."""


@dataclass(frozen=True)
class Life:
    """One host: what it does, when it leaves and how."""

    begins: Literal["send", "take up"]
    leave: Leave
    after: float
    """Seconds from its begin, or from the ask that it waits for if `by_ask`."""
    by_ask: bool
    call: int
    parks: float | None
    """Its `Park.after`."""
    pause: float
    """Seconds until the next host begins; below zero, it begins while this one lives."""
    waits: bool = True
    """Whether the next host begins only when this one has ended."""
    by_tool: bool = False
    """Whether times count from the begin of a tool, and not from its ask."""
    deed: Deed = ""
    deed_after: float = 0.0
    """Seconds from the ask that it waits for if `by_ask`, else from its begin."""
    stopped: float = 0.0
    """Seconds that it is stopped, as by a SIGSTOP; it stays after that."""

    def __str__(self) -> str:
        of = "its tool" if self.by_tool else "its ask" if self.by_ask else "its begin"
        more = {"kill at call": f" {self.call}", "stop": f" for {self.stopped:.3f}"}
        deed = f", {self.deed} after {self.deed_after:.3f}" if self.deed else ""
        left = f"{self.leave}{more.get(self.leave, '')} {self.after:.3f} after {of}"
        return f"{self.begins}, {left}, Park({self.parks}){deed}"


@dataclass(frozen=True)
class Plan:
    seed: int
    is_exact: bool
    think: float
    work: float
    calls: int
    lives: tuple[Life, ...]
    delays: tuple[float, ...]
    """After which seconds each ask is answered; the last one for all others."""
    denies: bool
    grace: float
    is_at_once: bool = False
    """Whether the model makes its calls in one message."""
    delegates: bool = False
    """Whether the model has a subagent make each call."""
    is_fleet: bool = False
    """Whether each life is that of a worker, and each prompt a job."""
    expiring: int | None = None
    """Which of the asks is not answered but expires; None for none."""

    @property
    def commands(self) -> list[str]:
        """The commands of all turns that the run may have."""
        return [command for key in self.keys for command in self.commands_of(key)]

    @property
    def keys(self) -> list[str]:
        """The keys that the run may send."""
        has_other = any(each.deed == "another key" for each in self.lives)
        return [KEY, OTHER_KEY] if has_other else [KEY]

    def commands_of(self, key: str) -> list[str]:
        """The commands that the model runs in the turn with this key."""
        if key == OTHER_KEY:
            return ["pay 8"]
        return [f"pay {number}" for number in range(1, self.calls + 1)]

    def __str__(self) -> str:
        kind = "exact" if self.is_exact else "told"
        return (
            f"seed {self.seed}: {kind}, {self.calls} calls, thinks {self.think}, works {self.work},"
            f" answers after {[round(each, 3) for each in self.delays]}"
            f"{' (no)' if self.denies else ''}, grace {self.grace}"
            f"{', at once' if self.is_at_once else ''}"
            f"{', by subagents' if self.delegates else ''}{', in a fleet' if self.is_fleet else ''}"
            f"{'' if self.expiring is None else f', ask {self.expiring} expires'}\n    "
            + "\n    ".join(map(str, self.lives))
        )


def draw(seed: int) -> Plan:
    dice = random.Random(seed)
    is_exact = dice.random() < 0.6
    lives = tuple(_life(dice, number) for number in range(dice.randint(1, 4)))
    return Plan(
        seed,
        is_exact,
        think=dice.choice((0.0, 0.1, 2.0)),
        work=dice.choice((0.0, 0.3, 2.0)),
        calls=dice.choice((1, 1, 2)),
        lives=lives,
        delays=tuple(
            dice.choice((0.05, 0.3, 1.0, 5.0, 30.0)) * dice.uniform(0.8, 1.2) for _ in range(3)
        ),
        denies=dice.random() < 0.1,
        grace=5.0,
    )


LEAVES: dict[Leave, int] = {
    "stays": 2,
    "park": 3,
    "aclose": 3,
    "term": 3,
    "kill": 3,
    "kill at call": 3,
    "store away": 1,
}


def _life(dice: random.Random, number: int) -> Life:
    (leave,) = dice.choices(tuple(LEAVES), tuple(LEAVES.values()))
    return Life(
        "send" if number == 0 or dice.random() < 0.5 else "take up",
        leave,
        after=dice.choice((0.05, 0.3, 1.0, 2.5, 8.0)) * dice.uniform(0.7, 1.3),
        by_ask=dice.random() < 0.6,
        call=dice.randint(1, 60),
        parks=dice.choice((None, None, 0.5, 3.0)),
        pause=dice.choice((0.0, 0.1, 3.0, 10.0)),
        waits=dice.random() < 0.75,
    )


DEEDS: dict[Deed, int] = {
    "": 6,
    "interrupt": 2,
    "cancel": 1,
    "withdraw": 1,
    "CLI dies": 3,
    "another key": 3,
}


def draw_wide(seed: int) -> Plan:
    """Draw what `draw` does, and deeds, calls of one message, and asks that expire."""
    plan, dice = draw(seed), random.Random(f"wide {seed}")
    lives = tuple(
        replace(
            each,
            deed=dice.choices(tuple(DEEDS), tuple(DEEDS.values()))[0],
            deed_after=dice.choice((0.0, 0.05, 0.3, 1.0, 2.5)) * dice.uniform(0.7, 1.3),
            by_tool=dice.random() < 0.4,
        )
        for each in plan.lives
    )
    return replace(
        plan,
        lives=lives,
        is_at_once=plan.calls > 1 and dice.random() < 0.5,
        expiring=dice.choice((None, None, None, None, 0, 1)),
        work=dice.choice((0.0, 0.3, 2.0, 4.0)),
    )


def draw_far(seed: int) -> Plan:
    """Draw what `draw_wide` does, and hosts that are stopped, subagents, and workers of a fleet."""
    plan, dice = draw_wide(seed), random.Random(f"far {seed}")
    lives = tuple(_far_life(dice, each) for each in plan.lives)
    plan = replace(plan, lives=lives, delegates=dice.random() < 0.3)
    return _fleet(plan, dice) if dice.random() < 0.25 else plan


def _fleet(plan: Plan, dice: random.Random) -> Plan:
    """Make each host of a plan a worker. Several may work at a time."""
    lives = tuple(
        replace(each, deed=each.deed if each.deed in FLEET_DEEDS else "", waits=dice.random() < 0.4)
        for each in plan.lives
    )
    return replace(plan, lives=lives, is_fleet=True)


FLEET_DEEDS = {"", "CLI dies", "another key"}
"""The second key is the second job."""


def _far_life(dice: random.Random, life: Life) -> Life:
    stopped = dice.choice((0.5, 3.0, 6.0, 20.0)) * dice.uniform(0.8, 1.2)
    is_stopped, waits = dice.random() < 0.5, dice.random() < 0.4
    return replace(life, leave="stop", waits=waits, stopped=stopped) if is_stopped else life
