"""Simulates a fleet of 1,000 workers in virtual time: fairness, recovery, and a rate-limit storm.

`python -m benchmarks.fleet_simulation` prints one line per figure. There is no CLI and no clock:
the `Scheduler` of `steersman.fleet` decides, and an event queue says what time it is. A turn takes
20 s on average, a CLI start 1 s.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from steersman.fleet.conversations import Action, Begin, Close, Order
from steersman.fleet.scheduler import Scheduler

WORKERS, SLOTS = 1000, 4
TURN, START, CLOSING = 20.0, 1.0, 0.2
BEGINS, ENDS = 100.0, 160.0
"""The storm, in seconds."""
CALM, STORMY = 400.0, 20.0
"""Turns per second that the API takes."""
FEW = 2
LEASE = 30.0
"""Seconds after which the jobs of a dead worker are given to others; the loop looks every 2 s."""


class Events:
    """What happens when, in virtual time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Do something at a time."""
        heapq.heappush(self._queue, (when, next(self._numbers), do))

    def run(self, until: float = float("inf")) -> None:
        """Let happen what happens before a time."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, do = heapq.heappop(self._queue)
            do()


@dataclass
class Sim:
    """One scheduler whose slots are those of all workers."""

    draw: random.Random
    slots: int = WORKERS * SLOTS
    events: Events = field(default_factory=Events)
    begun: dict[str, float] = field(default_factory=dict[str, float])
    running: dict[str, Order] = field(default_factory=dict[str, Order])
    ended: dict[str, float] = field(default_factory=dict[str, float])
    decided: int = 0

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.slots, idle=20.0)

    def submit(self, order: Order) -> None:
        """Send a turn."""
        self.scheduler.submit(order)
        self.decide()

    def decide(self) -> None:
        """Do what the scheduler says."""
        self.decided += 1
        for action in self.scheduler.decide(self.events.now):
            self._do(action)

    def _do(self, action: Action) -> None:
        now = self.events.now
        if isinstance(action, Begin):
            order, number = action.order, now
            self.begun[order.id] = now
            self.running[order.id] = order
            took = self.draw.expovariate(1 / TURN) + (0 if action.is_warm else START)
            self.events.at(now + took, lambda: self._end(order, number))
        elif isinstance(action, Close):
            name = action.conversation
            self.events.at(now + CLOSING, lambda: self._closed(name))

    def _end(self, order: Order, began: float) -> None:
        if self.begun.get(order.id) != began or order.id not in self.running:
            return
        del self.running[order.id]
        self.ended[order.id] = self.events.now
        self.scheduler.ended(order.id, self.events.now, is_parked=False, keeps_session=True)
        self.decide()

    def _closed(self, conversation: str) -> None:
        self.scheduler.closed(conversation)
        self.decide()


def fairness(conversations: int = 20_000, heavy: int = 100, seed: int = 1) -> dict[str, float]:
    """Let 1 in 200 conversations send 50 turns, the others 2, all at once. Waits in seconds."""
    sim = Sim(random.Random(seed))  # noqa: S311 - no secret
    turns = [
        Order(id=f"{number}/{turn}", conversation=str(number))
        for turn in range(50)
        for number in range(conversations)
        if turn < FEW or number < heavy
    ]
    for each in turns:
        sim.scheduler.submit(each)
    sim.decide()
    sim.events.run()
    light = [at for id_, at in sim.begun.items() if int(id_.split("/")[0]) >= heavy]
    first = [at for id_, at in sim.begun.items() if id_.endswith("/0")]
    done = max(sim.ended.values())
    return {
        "turns": len(turns),
        "longest wait for a first turn": max(first),
        "longest wait of a conversation with two turns": max(light),
        "all done": done,
        "all done at best, with one turn after the other": 50 * TURN,
    }


def recovery(dead: int = 100, seed: int = 1) -> dict[str, float]:
    """Kill 100 workers at once, 30 s after the beginning. Seconds until their turns run again."""
    sim = Sim(random.Random(seed))  # noqa: S311 - no secret
    for number in range(2 * sim.slots):
        sim.scheduler.submit(Order(id=f"{number}/0", conversation=str(number)))
    sim.decide()
    sim.events.run(30.0)
    lost = sim.draw.sample(sorted(sim.running), dead * SLOTS)
    killed = sim.events.now

    def take_over() -> None:
        for id_ in lost:
            order = sim.running.pop(id_)
            del sim.begun[id_]
            now = sim.events.now
            sim.scheduler.ended(id_, now, is_parked=True, keeps_session=False)
            sim.scheduler.submit(Order(id=id_, conversation=order.conversation, priority=1))
        # Their slots are gone.
        sim.scheduler.table.slots -= len(lost)
        sim.decide()

    found = killed + LEASE + sim.draw.random() * 2.0
    sim.events.at(found, take_over)
    # What a dead worker had does not end by itself.
    for id_ in lost:
        sim.begun[id_] = -1.0
    sim.events.run()
    waits = [sim.begun[id_] - killed for id_ in lost]
    return {
        "turns lost with their workers": len(lost),
        "taken over, median": sorted(waits)[len(waits) // 2],
        "taken over, last": max(waits),
        "never ended": len(lost) - sum(id_ in sim.ended for id_ in lost),
    }


class Storm:
    """1,000 workers, each with its own governor, on one API that takes fewer turns for a while."""

    def __init__(self, seed: int, *, governed: bool) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.events = Events()
        self.governed = governed
        self.workers = [Scheduler(SLOTS, idle=20.0, quiet=10.0) for _ in range(WORKERS)]
        self.numbers = count()
        self.requests = self.refused = self.done = 0
        self.tokens, self.filled = 0.0, 0.0
        self.log: list[tuple[float, int]] = []
        """Times of settled turns, and how many are at work."""
        self.at_work = 0
        self.timers: dict[Scheduler, float] = {}

    def rate(self, now: float) -> float:
        """Return the turns per second that the API takes now."""
        return STORMY if BEGINS <= now < ENDS else CALM

    def ask(self) -> bool:
        """Whether the API takes a request now."""
        now = self.events.now
        self.tokens = min(self.tokens + (now - self.filled) * self.rate(now), self.rate(now))
        self.filled = now
        self.requests += 1
        if self.tokens < 1:
            self.refused += 1
            return False
        self.tokens -= 1
        return True

    def feed(self, worker: Scheduler) -> None:
        """Keep a worker's queue filled, and begin what it may begin."""
        now = self.events.now
        while worker.table.free > 0 and self._room(worker):
            name = str(next(self.numbers))
            worker.submit(Order(id=name, conversation=name))
            begun = [each for each in worker.decide(now) if isinstance(each, Begin)]
            for each in begun:
                self._begin(worker, each.order)
            if not begun:
                worker.forget(name)
                break
        at = worker.rate.changes_at(now)
        if at is not None and self.timers.get(worker) != at:
            self.timers[worker] = at
            self.events.at(at, partial(self.feed, worker))

    def _room(self, worker: Scheduler) -> bool:
        now = self.events.now
        worker.rate.at(now)
        return not worker.rate.is_closed(now) and worker.table.busy < worker.rate.limit

    def _begin(self, worker: Scheduler, order: Order) -> None:
        self.at_work += 1
        self._request(worker, order, 1)

    def _request(self, worker: Scheduler, order: Order, attempt: int) -> None:
        now = self.events.now
        if self.ask():
            took = self.draw.expovariate(1 / TURN)
            self.events.at(now + took, lambda: self._end(worker, order))
            return
        delay = min(0.5 * 2**attempt, 32.0) * (0.75 + self.draw.random() / 2)
        if self.governed:
            worker.limited(now, now + max(delay, 1.0), order.conversation)
        self.events.at(now + delay, lambda: self._request(worker, order, attempt + 1))

    def _end(self, worker: Scheduler, order: Order) -> None:
        self.done += 1
        self.at_work -= 1
        self.log.append((self.events.now, self.at_work))
        worker.ended(order.id, self.events.now, is_parked=False, keeps_session=False)
        self.feed(worker)


def storm(seed: int = 1, *, governed: bool = True) -> dict[str, float]:
    """Let the API take a twentieth for a minute, from second 100 on."""
    sim = Storm(seed, governed=governed)
    for worker in sim.workers:
        sim.events.at(sim.draw.random() * TURN, partial(sim.feed, worker))
    sim.events.run(BEGINS)
    before = sim.refused, sim.requests
    sim.events.run(ENDS)
    during = sim.refused - before[0], sim.requests - before[1]
    sim.events.run(400.0)
    full = next(
        (at for at, working in sim.log if at > ENDS and working >= 0.95 * WORKERS * SLOTS), 0.0
    )
    lowest = min(working for at, working in sim.log if BEGINS <= at < ENDS)
    return {
        "requests in the minute of the storm": during[1],
        "of which refused": during[0],
        "fewest turns at work": lowest,
        "seconds until 95 % are at work again": full - ENDS if full else -1.0,
    }


def main(arguments: list[str]) -> int:
    """Print the figures of all three."""
    seed = int(arguments[0]) if arguments else 1
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "fairness": lambda: fairness(seed=seed),
        "recovery": lambda: recovery(seed=seed),
        "storm": lambda: storm(seed),
        "storm without a governor": lambda: storm(seed, governed=False),
    }
    for name, part in parts.items():
        for what, figure in part().items():
            print(f"{name}: {what}: {figure:,.1f}".removesuffix(".0"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
