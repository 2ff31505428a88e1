"""Which turn begins next, and what holds the others. No clock: the tests say what time it is."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import count

import pytest

from steersman.fleet.budgets import Budgets
from steersman.fleet.conversations import Action, Begin, Close, Leave, Order, Prepare, Refuse
from steersman.fleet.scheduler import Scheduler

_numbers = count()


def order(conversation: str, key: str = "", **more: object) -> Order:
    name = f"{conversation}/{key or next(_numbers)}"
    return Order(id=name, conversation=conversation, **more)  # type: ignore[arg-type]  # in tests


def submitted(scheduler: Scheduler, *conversations: str) -> None:
    for each in conversations:
        scheduler.submit(order(each))


def begun(actions: list[Action]) -> list[str]:
    return [each.order.conversation for each in actions if isinstance(each, Begin)]


def end(scheduler: Scheduler, action: Action, now: float, **more: object) -> None:
    assert isinstance(action, Begin)
    given: dict[str, object] = {"is_parked": False, "keeps_session": True, **more}
    scheduler.ended(action.order.id, now, **given)  # type: ignore[arg-type]  # in tests


def words(scheduler: Scheduler, id_: str, now: float = 0.0) -> str:
    hold = scheduler.hold(id_, now)
    assert hold is not None
    return f"{hold.state}: {hold.words(0.0)}"


def test_conversations_of_one_priority_take_turns_and_a_higher_one_goes_first() -> None:
    scheduler = Scheduler(1)
    submitted(scheduler, "a", "a", "a", "b", "b", "c")
    scheduler.submit(order("vip", priority=5))

    seen: list[str] = []
    for now in range(20):
        for each in scheduler.decide(now):
            if isinstance(each, Close):
                scheduler.closed(each.conversation)
            else:
                seen += begun([each])
                end(scheduler, each, now)

    assert seen == ["vip", "a", "b", "c", "a", "b", "a"]


def test_turns_of_a_conversation_run_in_their_order_and_next_goes_before() -> None:
    scheduler = Scheduler(4)
    for key in ("1", "2", "3"):
        scheduler.submit(order("a", key))
    (first,) = scheduler.decide(0.0)
    scheduler.submit(order("a", "next", is_next=True))
    scheduler.submit(order("a", "after that", is_next=True))
    seen: list[str] = []
    for now in range(6):
        end(scheduler, first, now)
        actions = scheduler.decide(now)
        if actions:
            first = actions[0]
            assert isinstance(first, Begin)
            seen.append(first.order.id)
        else:
            break

    assert seen == ["a/next", "a/after that", "a/2", "a/3"]


def test_a_priority_counts_for_the_turns_that_stand_before_it() -> None:
    scheduler = Scheduler(1)
    scheduler.submit(order("busy"))
    (busy,) = scheduler.decide(0.0)
    submitted(scheduler, "b", "a")
    scheduler.submit(order("a", priority=9))
    end(scheduler, busy, 1.0, keeps_session=False)

    assert begun(scheduler.decide(1.0)) == ["a"]


def test_the_session_used_longest_ago_is_closed_first_and_one_with_background_work_last() -> None:
    scheduler = Scheduler(3, idle=100.0)
    submitted(scheduler, "a", "b", "c")
    for now, each in enumerate(scheduler.decide(0.0)):
        end(scheduler, each, float(now))
    scheduler.background("a", 3.0, has_work=True)
    closed: list[str] = []
    for name in ("x", "y", "z"):
        scheduler.submit(order(name))
        actions = scheduler.decide(4.0)
        closed += [each.conversation for each in actions if isinstance(each, Close)]

    assert closed == ["b", "c", "a"]
    assert scheduler.table.counts().closing == 3


def test_a_session_is_warm_for_its_time_and_not_longer() -> None:
    scheduler = Scheduler(1, idle=20.0)
    submitted(scheduler, "a")
    (first,) = scheduler.decide(0.0)
    end(scheduler, first, 1.0)

    assert scheduler.decide(20.9) == []
    assert scheduler.changes_at(20.9) == 21.0
    assert scheduler.decide(21.0) == [Close("a")]
    submitted(scheduler, "a")
    assert scheduler.decide(21.0) == []
    scheduler.closed("a")
    (again,) = scheduler.decide(21.1)
    assert isinstance(again, Begin)
    assert not again.is_warm


def test_a_session_that_waits_for_a_person_is_parked_when_its_slot_is_wanted() -> None:
    scheduler = Scheduler(1)
    scheduler.submit(order("a", "1"))
    (first,) = scheduler.decide(0.0)
    scheduler.waits("a", 1.0, is_waiting=True)
    assert scheduler.decide(2.0) == []
    scheduler.submit(order("b", "1"))
    assert scheduler.decide(3.0) == [Leave("a")]
    scheduler.submit(order("a", "2"))
    end(scheduler, first, 4.0, is_parked=True, keeps_session=False)
    scheduler.closed("a")
    (other,) = scheduler.decide(4.0)

    assert begun([other]) == ["b"]
    assert words(scheduler, "a/1") == "parked: "
    assert words(scheduler, "a/2") == "queued: behind 1 turn of its conversation"
    end(scheduler, other, 5.0, keeps_session=False)
    assert scheduler.decide(5.0) == []
    scheduler.submit(order("a", "1"))
    assert begun(scheduler.decide(6.0)) == ["a"]


def test_a_refusal_of_the_api_holds_turns_halves_them_and_raises_them_after_quiet() -> None:
    scheduler = Scheduler(4, quiet=10.0)
    submitted(scheduler, *"abcdef")
    running = scheduler.decide(0.0)
    for name in "abc":
        # One storm: each of them is refused, and is halved once.
        scheduler.limited(1.0, 6.0, name)
    for each in running:
        end(scheduler, each, 2.0, keeps_session=False)
    scheduler.submit(order("g", "1"))

    assert words(scheduler, "g/1", 2.0).startswith("held: rate limit until ")
    assert scheduler.decide(5.9) == []
    assert scheduler.changes_at(5.9) == 6.0
    assert begun(scheduler.decide(6.0)) == ["e", "f"]
    assert words(scheduler, "g/1", 6.0) == "held: rate limit: 2 turns at once for now"
    assert scheduler.decide(15.9) == []
    assert begun(scheduler.decide(16.0)) == ["g"]
    scheduler.decide(26.0)
    assert scheduler.rate.limit == 4
    assert scheduler.changes_at(26.0) is None


def test_a_turn_that_is_refused_at_the_lower_limit_halves_again() -> None:
    scheduler = Scheduler(8, quiet=10.0)
    submitted(scheduler, *"abcdefgh")
    for each in scheduler.decide(0.0):
        end(scheduler, each, 0.0, keeps_session=False)
    submitted(scheduler, *"abcdefgh")
    scheduler.decide(0.0)
    scheduler.limited(1.0, 2.0, "a")
    scheduler.limited(5.0, 6.0, "b")

    assert scheduler.rate.limit == 4


def test_without_memory_no_cli_starts_and_sessions_are_given_back_one_at_a_time() -> None:
    scheduler = Scheduler(4, memory_free=1000)
    submitted(scheduler, "a", "b")
    for each in scheduler.decide(0.0, 5000):
        end(scheduler, each, 0.0)
    scheduler.submit(order("new", "1"))
    scheduler.submit(order("b", "2"))

    actions = scheduler.decide(1.0, 999)

    assert [type(each).__name__ for each in actions] == ["Begin", "Close"]
    assert begun(actions) == ["b"]
    assert actions[1] == Close("a")
    assert words(scheduler, "new/1") == "held: memory: 0 MB free, 0 MB wanted"
    assert scheduler.decide(1.0, 999) == []
    scheduler.closed("a")
    assert begun(scheduler.decide(2.0, 1000)) == ["new"]


def test_sessions_are_started_ahead_and_given_up_first() -> None:
    scheduler = Scheduler(3, warm=1, memory_free=1000)
    assert scheduler.decide(0.0) == [Prepare(1)]
    assert scheduler.decide(0.0) == []
    scheduler.prepared("spare 1", 1.0)
    assert scheduler.claim(1.0) == "spare 1"
    assert scheduler.claim(1.0) is None
    scheduler.submit(order("spare 1"))
    (first, prepare) = scheduler.decide(1.0)
    assert isinstance(first, Begin)
    assert first.is_warm
    assert prepare == Prepare(1)
    scheduler.prepared("spare 2", 2.0)
    submitted(scheduler, "a", "b")

    assert [type(each).__name__ for each in scheduler.decide(3.0)] == ["Begin", "Close"]
    scheduler.closed("spare 2")
    assert begun(scheduler.decide(3.0)) == ["b"]


def test_a_budget_is_never_exceeded_by_more_than_what_runs_and_then_turns_are_refused() -> None:
    budgets = Budgets(lambda: 0.0)
    budgets.define("team", 1.0, "day")
    scheduler = Scheduler(8, budgets=budgets)
    for each in "abcd":
        scheduler.submit(order(each, "1", budget="team", amount=0.4))
    first, second = scheduler.decide(0.0)
    assert words(scheduler, "c/1").startswith("held: budget 'team'")
    end(scheduler, first, 1.0, cost=0.1)
    (third,) = scheduler.decide(1.0)
    end(scheduler, second, 2.0, cost=0.4)
    end(scheduler, third, 2.0, cost=0.4)

    assert [type(each) for each in scheduler.decide(2.0)] == [Refuse]
    assert scheduler.hold("d/1", 2.0) is None
    assert budgets.status()["team"].spent == pytest.approx(0.9)


def test_a_budget_counts_each_job_once_and_begins_anew_with_its_period() -> None:
    now = [0.0]
    budgets = Budgets(lambda: now[0])
    budgets.define("team", 1.0, "day")
    assert [budgets.reserve("team", "j", 0.6) for _ in range(2)] == ["reserved"] * 2
    assert [budgets.settle("team", "j", 0.6) for _ in range(2)] == [True, False]
    assert budgets.reserve("team", "k", None) == "out"
    assert budgets.left("team", None) is not None
    now[0] = 86_400.0

    assert budgets.left("team", None) is None
    assert budgets.reserve("team", "k", None) == "reserved"
    assert budgets.status()["team"].reserved == 0.6


def test_a_turn_that_is_withdrawn_while_it_waits_for_a_slot_is_in_nobodys_way() -> None:
    scheduler = Scheduler(1)
    submitted(scheduler, "a")
    (first,) = scheduler.decide(0.0)
    for each in "bc":
        scheduler.submit(order(each, "1"))
    assert scheduler.forget("b/1")
    end(scheduler, first, 1.0, keeps_session=False)

    assert begun(scheduler.decide(1.0)) == ["c"]


def test_a_turn_that_is_withdrawn_while_it_waits_for_money_is_in_nobodys_way() -> None:
    budgets = Budgets(lambda: 0.0)
    budgets.define("team", 1.0, "day")
    scheduler = Scheduler(4, budgets=budgets)
    for each in "abc":
        scheduler.submit(order(each, "1", budget="team", amount=0.6))
    (first,) = scheduler.decide(0.0)
    assert scheduler.forget("b/1")
    end(scheduler, first, 1.0, cost=0.1)

    assert begun(scheduler.decide(1.0)) == ["c"]


class Walk:
    """Plays events at random, and keeps what a fleet would know."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        slots = self.draw.randint(1, 4)
        self.scheduler = Scheduler(slots, idle=5.0, quiet=2.0, memory_free=10)
        priorities = (self.draw.randint(0, 1) for _ in range(60))
        self.wanted = [order(f"c{self.draw.randint(0, 6)}", priority=each) for each in priorities]
        self.waiting = list(self.wanted)
        self.running: list[Begin] = []
        self.closing: list[str] = []
        self.parked: list[Order] = []
        self.queued: list[Order] = []
        self.withdrawn: list[Order] = []
        self.seen: dict[str, list[str]] = defaultdict(list)
        self.now = 0.0

    @property
    def is_over(self) -> bool:
        ended = sum(map(len, self.seen.values())) + len(self.withdrawn)
        return ended == len(self.wanted)

    def step(self) -> None:
        self.now += self.draw.random()
        what = self.draw.random()
        if self.waiting and what < 0.3:
            self.queued.append(self.waiting.pop(0))
            self.scheduler.submit(self.queued[-1])
        elif self.running and what < 0.6:
            self.end(self.running.pop(self.draw.randrange(len(self.running))))
        elif self.closing and what < 0.8:
            self.scheduler.closed(self.closing.pop(self.draw.randrange(len(self.closing))))
        elif self.parked and what < 0.85:
            self.scheduler.submit(self.parked.pop(0))
        elif self.running and what < 0.87:
            name = self.running[0].order.conversation
            self.scheduler.limited(self.now, self.now + 1.0, name)
        if self.queued and what > 0.98:
            self.withdrawn.append(self.queued.pop(self.draw.randrange(len(self.queued))))
            assert self.scheduler.forget(self.withdrawn[-1].id)
        self.decide()

    def decide(self) -> None:
        for each in self.scheduler.decide(self.now, self.draw.choice([5, 50, 50, 50])):
            if isinstance(each, Begin):
                self.running.append(each)
                if each.order in self.queued:
                    self.queued.remove(each.order)
            elif isinstance(each, Close):
                self.closing.append(each.conversation)

    def end(self, done: Begin) -> None:
        is_parked = self.draw.random() < 0.2
        keeps = not is_parked and self.draw.random() < 0.8
        self.scheduler.ended(done.order.id, self.now, is_parked=is_parked, keeps_session=keeps)
        if is_parked:
            self.parked.append(done.order)
        else:
            self.seen[done.order.conversation].append(done.order.id)

    def check(self) -> None:
        counts = self.scheduler.table.counts()
        used = counts.working + counts.warm + counts.ready + counts.starting + counts.closing
        assert used + counts.free == counts.slots
        assert counts.free >= 0
        at_work = [each.order.conversation for each in self.running]
        assert len(set(at_work)) == len(at_work) == counts.working


@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_of_events_every_turn_runs_once_in_order_and_slots_add_up(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(5000):
        walk.step()
        walk.check()
        if walk.is_over:
            break

    expected: dict[str, list[str]] = defaultdict(list)
    for each in walk.wanted:
        if each in walk.withdrawn:
            continue
        expected[each.conversation].append(each.id)
    assert walk.seen == expected
