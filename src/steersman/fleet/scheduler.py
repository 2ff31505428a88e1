"""Which turn begins next, on which slot, and what holds the others.

Pure: no I/O, no clock, no await. `Slots` drives it with real sessions, the simulation in virtual
time. Turns of one conversation run one after the other. Among conversations the higher priority is
first; those of one priority take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman.fleet.budgets import Budgets
from steersman.fleet.conversations import (
    Action,
    Begin,
    Close,
    ConversationState,
    Leave,
    Line,
    Order,
    Prepare,
    Refuse,
    SlotTable,
)
from steersman.fleet.holds import Hold, RateControl, behind, memory_hold, rate_hold
from steersman.fleet.ports import NO_SLOT


class Scheduler:
    """The turns and sessions of one process. Every method takes the time as `now`."""

    def __init__(  # noqa: PLR0913 - one for each rule
        self,
        slots: int,
        *,
        idle: float = 20.0,
        quiet: float = 10.0,
        memory_free: int = 0,
        cli_memory: int = 0,
        warm: int = 0,
        keeps_order: bool = True,
        budgets: Budgets | None = None,
    ) -> None:
        self.slots = slots
        self.idle = idle
        self.memory_free = memory_free
        self._cli_memory = cli_memory
        self.warm = warm
        self.rate = RateControl(slots, quiet)
        self.budgets = budgets or Budgets()
        self.is_draining = False
        self._keeps_order = keeps_order
        """Whether the later turns of a conversation wait for one that is parked."""
        self._all: dict[str, ConversationState] = {}
        self.table = SlotTable(slots)
        self._line = Line()
        self._aside: dict[str, dict[str, None]] = {}
        """Conversations whose next turn waits for money, by budget."""
        self._orders: dict[str, Order] = {}
        self._spent: dict[str, float] = {}
        """What parked turns have cost so far."""
        self._free_memory: int | None = None
        """How much memory was free at the last decision, if that is known."""
        self._starting = 0

    # What happens

    def submit(self, order: Order) -> None:
        """Add a turn; or one that was parked, which is the next one of its conversation."""
        conversation = self._of(order.conversation)
        is_again = conversation.head == order.id
        if is_again:
            conversation.head, conversation.is_parked = None, False
        if is_again:
            conversation.turns.appendleft(order)
        elif order.is_next:
            at = next((n for n, each in enumerate(conversation.turns) if not each.is_next), None)
            at = len(conversation.turns) if at is None else at
            conversation.turns.insert(at, order)
        else:
            conversation.turns.append(order)
        self._orders[order.id] = order
        self._enter(conversation)

    def ended(
        self, order: str, now: float, *, is_parked: bool, keeps_session: bool, cost: float = 0.0
    ) -> None:
        """Record that a turn that was begun has settled or is parked."""
        conversation = self._all[self._orders[order].conversation]
        cost += self._spent.pop(order, 0.0)
        if is_parked and self._keeps_order:
            conversation.is_parked = True
            self._spent[order] = cost
        else:
            conversation.head = None
            self._settle(order, cost)
        self.table.set_waiting(conversation, None)
        conversation.since = now
        # One that is being parked is reported as closed.
        if conversation.session == "working":
            self.table.set(conversation, "warm" if keeps_session else "none")
        self._enter(conversation)
        self._tidy(conversation)

    def closed(self, conversation: str) -> None:
        """Record that the session of a conversation has exited."""
        known = self._all.get(conversation)
        if known is not None and known.session in ("warm", "closing"):
            self.table.set(known, "none")
            self._enter(known)
            self._tidy(known)

    def forget(self, order: str) -> bool:
        """Remove a turn that does not run. Returns False if it runs, or is not there."""
        known = self._orders.get(order)
        if known is None:
            return False
        conversation = self._all[known.conversation]
        if conversation.head == order and not conversation.is_parked:
            return False
        if conversation.head == order:
            conversation.head, conversation.is_parked = None, False
        else:
            conversation.turns.remove(known)
        if not conversation.turns:
            conversation.entered = None
        self._settle(order, self._spent.pop(order, 0.0))
        self._enter(conversation)
        self._tidy(conversation)
        return True

    def waits(self, conversation: str, now: float, *, is_waiting: bool) -> None:
        """Record that a session that works waits only for the user, and could be parked."""
        known = self._all.get(conversation)
        if known is None or known.session != "working":
            return
        if not is_waiting:
            self.table.set_waiting(known, None)
        elif known.waits_since is None:
            self.table.set_waiting(known, now)

    def background(self, conversation: str, now: float, *, has_work: bool) -> None:
        """Record whether a warm session has work of its own; it counts as used until it has not."""
        known = self._all.get(conversation)
        if known is not None and known.session == "warm":
            if known.has_background or has_work:
                known.since = now
            known.has_background = has_work

    def limited(self, now: float, until: float, conversation: str) -> None:
        """Record that the API has refused a request of this conversation until a time."""
        known = self._all.get(conversation)
        began = now if known is None else known.since
        self.rate.hit(now, until, began=began, working=max(self.table.working, 1))

    def prepared(self, conversation: str | None, now: float) -> None:
        """Record that a session is ready for a conversation to come; None if it failed."""
        self.table.preparing -= 1
        if conversation is not None:
            known = self._of(conversation)
            known.is_spare, known.since = True, now
            self.table.set(known, "warm")

    def claim(self, now: float) -> str | None:
        """Return the name of a conversation whose session is ready, for a new one."""
        for each in self.table.in_state("warm"):
            if each.is_spare:
                each.is_spare, each.since = False, now
                return each.name
        return None

    # Decisions

    def decide(self, now: float, free_memory: int | None = None, starting: int = 0) -> list[Action]:
        """Return the actions to take now; each is recorded as begun.

        `starting` CLIs have not taken the memory that they need, which is counted as free.
        """
        self.rate.at(now)
        self._starting, self._free_memory = starting, free_memory
        actions = list(self._expire(now))
        if not (self.is_draining or self.rate.is_closed(now)):
            if self.is_short_of_memory:
                actions += self._begin_warm(now)
            else:
                actions += self._begin_in_order(now)
        is_low = free_memory is not None and free_memory < self.memory_free
        actions += self._relieve() if is_low else self._prepare(now)
        return actions

    def _expire(self, now: float) -> Iterator[Action]:
        for each in self.table.in_state("warm"):
            is_used = each.turns or each.has_background or each.is_spare
            is_due = now >= each.since + self.idle and not is_used
            if is_due or self.is_draining:
                yield self._close(each)

    def _begin_in_order(self, now: float) -> Iterator[Action]:
        """Begin turns in the order of the line, and free slots for those that have none."""
        kept: list[ConversationState] = []
        promised = 0
        while self.table.busy + promised < self.rate.limit:
            conversation = self._line.pop()
            if conversation is None:
                break
            if conversation.session == "closing":
                kept.append(conversation)
                promised += 1
                continue
            room = self._reserve(conversation)
            if room == "out":
                yield self._refuse(conversation)
            elif room == "wait":
                self._put_aside(conversation)
            elif conversation.session == "warm" or self.table.free > 0:
                yield self._begin(conversation, now)
                if self.is_short_of_memory:
                    break
            else:
                kept.append(conversation)
                promised += 1
                yield from self._room_for(promised)
        for each in kept:
            self._enter(each)

    def _room_for(self, promised: int) -> Iterator[Action]:
        """Free a slot, unless as many are being freed as were promised."""
        leaving = self._make_room() if promised > self.table.closing else None
        if leaving is not None:
            yield leaving

    def _begin_warm(self, now: float) -> Iterator[Action]:
        """Begin turns for which no CLI is started."""
        ready = [each for each in self.table.in_state("warm") if each.turns]
        for each in sorted(ready, key=lambda each: (each.entered or (0, 0), each.name)):
            if self.table.busy >= self.rate.limit:
                return
            if self._reserve(each) == "reserved":
                yield self._begin(each, now)

    def _relieve(self) -> Iterator[Action]:
        """Give memory back: one session at a time, until there is enough."""
        if not self.table.closing:
            leaving = self._make_room()
            if leaving is not None:
                yield leaving

    def _prepare(self, now: float) -> Iterator[Action]:
        spares = self.table.spares
        is_calm = not (self.is_draining or self.rate.is_closed(now)) and self._line.first is None
        while is_calm and spares + self.table.preparing < self.warm and self.table.free > 0:
            self.table.preparing += 1
            yield Prepare(self.table.preparing)

    def _begin(self, conversation: ConversationState, now: float) -> Begin:
        order = conversation.turns.popleft()
        is_warm = conversation.session == "warm"
        self._starting += not is_warm
        conversation.head, conversation.entered = order.id, None
        conversation.since, conversation.has_background = now, False
        conversation.is_spare = False
        self.table.set(conversation, "working")
        return Begin(order, is_warm)

    def _make_room(self) -> Close | Leave | None:
        """Give up the session that is missed least; None if all are in use."""
        found = self.table.least_missed()
        if found is None or found.session == "warm":
            return None if found is None else self._close(found)
        self.table.set(found, "closing")
        return Leave(found.name)

    def _close(self, conversation: ConversationState) -> Close:
        conversation.is_spare = False
        self.table.set(conversation, "closing")
        return Close(conversation.name)

    # Money

    def _reserve(self, conversation: ConversationState) -> str:
        order = conversation.turns[0]
        if order.budget is None:
            return "reserved"
        return self.budgets.reserve(order.budget, order.id, order.amount)

    def _settle(self, order: str, cost: float) -> None:
        known = self._orders.pop(order)
        if known.budget is None:
            return
        self.budgets.settle(known.budget, order, cost)
        for name in self._aside.pop(known.budget, ()):
            self._enter(self._all[name])

    def review(self, budget: str) -> None:
        """Look again at the turns that wait for money: the budget was changed."""
        for name in self._aside.pop(budget, ()):
            self._enter(self._all[name])

    def _refuse(self, conversation: ConversationState) -> Refuse:
        order = conversation.turns.popleft()
        del self._orders[order.id]
        conversation.entered = None
        self._enter(conversation)
        return Refuse(order)

    def _put_aside(self, conversation: ConversationState) -> None:
        conversation.entered = None
        budget = conversation.turns[0].budget or ""
        self._aside.setdefault(budget, {})[conversation.name] = None

    # What is so

    @property
    def is_short_of_memory(self) -> bool:
        """Whether too little memory is free to start a CLI, as far as is known."""
        free = self._free_memory
        return free is not None and free - self._starting * self._cli_memory < self.memory_free

    def hold(self, order: str, now: float) -> Hold | None:
        """Return the state of a turn and why it waits; None if it is not here."""
        known = self._orders.get(order)
        if known is None:
            return None
        conversation = self._all[known.conversation]
        if conversation.head == order:
            return Hold("parked" if conversation.is_parked else "running", "")
        place = conversation.turns.index(known) + (conversation.head is not None)
        if place:
            return Hold("queued", behind(place))
        return self._global_hold(now) or self._own_hold(conversation, known)

    def _global_hold(self, now: float) -> Hold | None:
        if self.is_draining:
            return Hold("held", "the fleet is being drained")
        if self.rate.is_closed(now):
            return rate_hold(self.rate.closed_until - now)
        if self.table.busy >= self.rate.limit < self.slots:
            return rate_hold(None, self.rate.limit)
        if self.is_short_of_memory:
            starting = self._starting * self._cli_memory
            return memory_hold(self._free_memory or 0, self.memory_free, starting)
        return None

    def _own_hold(self, conversation: ConversationState, order: Order) -> Hold:
        if conversation.name in self._aside.get(order.budget or "", ()):
            return Hold("held", f"budget {order.budget!r}: other turns have reserved what is left")
        return Hold("queued", NO_SLOT)

    def changes_at(self, now: float) -> float | None:
        """Return when something is to be decided although nothing happens."""
        times = [self.rate.changes_at(now)] if self._line.first is not None or self.warm else []
        times += [
            each.since + self.idle
            for each in self.table.in_state("warm")
            if not (each.is_spare or each.has_background)
        ]
        return min((each for each in times if each is not None), default=None)

    # The line

    def _of(self, name: str) -> ConversationState:
        known = self._all.get(name)
        if known is None:
            known = self._all[name] = ConversationState(name)
        return known

    def _enter(self, conversation: ConversationState) -> None:
        """Put a conversation into the line if it could begin a turn."""
        if conversation.turns and conversation.head is None:
            for names in self._aside.values():
                names.pop(conversation.name, None)
            self._line.enter(conversation)

    def _tidy(self, conversation: ConversationState) -> None:
        """Forget a conversation that has nothing here."""
        is_empty = not conversation.turns and conversation.head is None
        if is_empty and conversation.session == "none":
            self._all.pop(conversation.name, None)
