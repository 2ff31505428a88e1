"""One session in a store: its lease, the rows of its turns, and the calls that it holds."""

from __future__ import annotations

import platform
from collections.abc import Callable

from steersman._session.durability import NO_HELD_CALLS
from steersman._session.requests.policy_hook import PolicyHook
from steersman._session.setup import DurableHost
from steersman.durable.holding import HoldingHook
from steersman.durable.leases import LeasedTransport, Leases, Own, SessionWork, new_lease
from steersman.durable.turns import DurableTurns
from steersman.errors import UsageError
from steersman.options import Options
from steersman.ports import (
    DurableWork,
    HeldCalls,
    StoredAsk,
    StoredTurn,
    SupportsAwaitAnswer,
    Transport,
)


class StoredDurability:
    """The port `Durability` over the leases and turns of a store."""

    keeps_turns = True

    def __init__(
        self,
        options: Options,
        work: DurableWork,
        key: str | None,
        policy: PolicyHook | None,
        host: DurableHost,
    ) -> None:
        """`key` is what the conversation was opened with, if it was."""
        machine = platform.node()
        owner, token = new_lease(machine)
        self._host = host
        self._work = SessionWork(work, key, owner, machine, token, options.park.lease)
        inbox = options.inbox
        own: Own = _own_nothing
        self.holding: HeldCalls = NO_HELD_CALLS
        if isinstance(inbox, SupportsAwaitAnswer):
            own = inbox.own
            self.holding = HoldingHook(options, policy, inbox, host)
        self._leases = Leases(self._work, host.slot.fail, own, host.background)
        self._turns = DurableTurns(
            self._work, lambda: host.slot.session_id, host.report, host.background
        )

    def transport(self, inner: Transport) -> Transport:
        """Return a transport whose CLIs can only be used while the session has its lease."""
        return LeasedTransport(inner, self._leases, self._launched)

    def _launched(self) -> None:
        self._turns.launched(self._host.journal.clock())

    async def take(
        self, session_id: str | None, is_ending: Callable[[], bool] = bool, *, wait: float = 0.0
    ) -> None:
        """Take the lease, and check that the conversation can be continued on this machine."""
        if await self._leases.take(session_id, is_ending, wait=wait):
            setup, place = self._host.setup, self._host.slot.place
            if place is not None and setup.options.session_store is None:
                refuse_other_machine(self._work, place, is_here=setup.is_saved(place))

    async def begin(self, turn: StoredTurn) -> None:
        """Store a turn."""
        await self._turns.begin(turn)

    def settled(self, uuid: str, outcome: str) -> None:
        """Write how a turn has ended, in the background."""
        self._turns.settled(uuid, outcome)

    async def unsettled(self) -> list[StoredTurn]:
        """Return the turns of the conversation that are not settled."""
        session_id = self._host.slot.session_id
        return [] if session_id is None else await self._work.store.unsettled(session_id)

    async def asks_of(self, uuid: str) -> list[StoredAsk]:
        """Return the asks of a turn that wait, or whose answer is unused."""
        session_id = self._host.slot.session_id
        return [] if session_id is None else await self._work.store.asks_of(session_id, uuid)

    async def close(self) -> None:
        """Write the last ends of turns, and release the lease."""
        await self._turns.close()
        await self._leases.release()


def refuse_other_machine(work: SessionWork, place: str, *, is_here: bool | None) -> None:
    """Raise `UsageError` if the CLI's file of the conversation is on another machine.

    `is_here` is whether it is on this one. On the machine that began the conversation, a file
    that is missing was never written: the CLI was killed before, and the prompts are sent again.
    """
    before = work.before
    if before is None or not before.begun or is_here is not False:
        return
    if before.machine not in ("", work.machine):
        raise UsageError(
            "conversation",
            before.key,
            f"one whose files are on this machine, {work.machine}: those of {place} are on"
            f" {before.machine}",
            hint="open it there, or give all machines a session_store= that keeps conversations",
        )


def _own_nothing(_session: str, _is_owner: Callable[[], bool] | None, _token: str) -> None:
    """Inform no one: the inbox does not use what is owned."""
