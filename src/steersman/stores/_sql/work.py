"""The tables of conversations and turns: leases, turns, and which conversations can be continued.

A lease is part of the row of its conversation. Every write names the token of the lease, and is
made only if that lease is valid at that moment, by the time of the database. All writes but
`renew` take the next change number first, so they wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from steersman import _json
from steersman.errors import LeaseLost, SessionInUse, StoreError, StoreTooNew, UsageError
from steersman.ports import Conversation, StoredAsk, StoredTurn
from steersman.stores._sql.asks import AskTable, close_asks, is_owner
from steersman.stores._sql.database import Database, Transaction, from_plain, to_plain

log = logging.getLogger("steersman.inbox")

VERSION = 1
"""The version of the rows that this release writes; it leaves later ones alone."""

REMEMBERED = 10_000
"""Of how many conversations the last state is kept, so that none is yielded twice for it."""
FRESH = 1.0
"""Seconds after which what was read is read again before it is yielded."""
RETRY = 1.0
"""Seconds until a store that failed is looked at again."""
AT_ONCE = 20
"""Of how many conversations the turns are read at once."""
SHORTEST_WAIT, LONGEST_WAIT = 0.01, 3600.0

CONVERSATION = (
    "SELECT session, name, machine, begun, version, created_by, lease_owner, lease_token,"
    " lease_until + (:now - :lease) FROM steersman_conversations WHERE session = ?"
)
ADD_CONVERSATION = (
    "INSERT INTO steersman_conversations (session, name, version, created, created_by)"
    " VALUES (?, ?, ?, :now, ?) ON CONFLICT DO NOTHING"
)
# The condition is looked at again if a renewal was committed while this waited for the row.
TAKE = (
    "UPDATE steersman_conversations SET name = ?, lease_owner = ?, lease_machine = ?,"
    " lease_change = CASE WHEN lease_token = ? THEN lease_change ELSE ? END,"
    " lease_token = ?, lease_until = :lease + ?"
    " WHERE session = ? AND version <= 1 AND (lease_token = ? OR lease_until <= :lease)"
)
RENEW = (
    "UPDATE steersman_conversations SET lease_until = :lease + ?"
    " WHERE session = ? AND lease_token = ? AND lease_until > :lease AND version <= 1"
)
RELEASE = (
    "UPDATE steersman_conversations SET lease_owner = '', lease_token = '', lease_until = 0"
    " WHERE session = ? AND lease_token = ? AND version <= 1"
)
TURN = (
    "SELECT uuid, name, prompt, send_when, state, outcome, ended_by, begun_change"
    " FROM steersman_turns WHERE version <= 1 AND session = ?"
)
ADD_TURN = (
    "INSERT INTO steersman_turns (session, uuid, name, prompt, send_when, version, state, created,"
    " begun_change, last_change) VALUES (?, ?, ?, ?, ?, ?, 'open', :now, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
REOPEN = (
    "UPDATE steersman_turns SET state = 'open', outcome = '', ended_by = '', ended_at = NULL,"
    " last_change = ? WHERE session = ? AND uuid = ? AND version <= 1"
    " AND (state = 'parked' OR (state = 'settled' AND outcome = 'cancelled'))"
)
SETTLE = (
    "UPDATE steersman_turns SET state = ?, outcome = ?, ended_by = ?, ended_at = :now,"
    " last_change = ? WHERE session = ? AND uuid = ? AND state <> 'settled' AND version <= 1"
)

# The asks `a` of a conversation `c` are those of its unsettled turns `t`; those of no turn count if
# they are not older than the turn. An answer that was there when the last owner took the
# conversation, and that is unused although this owner has parked it, does not count: the model has
# not made the call again.
READY = """
    SELECT c.session, c.name, c.machine, c.begun, c.lease_token,
        (SELECT max(t.last_change) FROM steersman_turns t
            WHERE t.session = c.session AND t.state <> 'settled'),
        (SELECT max(a.last_change) FROM steersman_asks a WHERE a.session = c.session)
    FROM steersman_conversations c
    WHERE c.session IN (
            SELECT session FROM steersman_turns WHERE state <> 'settled' AND version <= 1)
        AND c.version <= 1 AND c.lease_until <= :lease
        AND (NOT EXISTS (
                SELECT 1 FROM steersman_turns t JOIN steersman_asks a ON a.session = t.session
                    AND (a.turn = t.uuid OR (a.turn IS NULL AND a.created >= t.created))
                WHERE t.session = c.session AND t.state <> 'settled' AND a.state = 'open')
            OR EXISTS (
                SELECT 1 FROM steersman_turns t JOIN steersman_asks a ON a.session = t.session
                    AND (a.turn = t.uuid OR (a.turn IS NULL AND a.created >= t.created))
                WHERE t.session = c.session AND t.state <> 'settled'
                    AND a.state IN ('answered', 'expired') AND a.used_mark IS NULL
                    AND a.version <= 1 AND (t.state = 'open' OR a.ended_change > c.lease_change)))
    ORDER BY 6, c.number
"""
NEXT_FREE = """
    SELECT min(lease_until) - :lease FROM steersman_conversations
    WHERE version <= 1 AND lease_until > :lease AND session IN (
        SELECT session FROM steersman_turns WHERE state <> 'settled' AND version <= 1)
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """A conversation that can be continued."""

    conversation: Conversation
    """Without turns, which are read later."""
    state: tuple[object, ...]
    """Is another one after each change of its turns and asks, and after a lease has expired."""


class WorkTable:
    """The port `DurableWork` over a database."""

    def __init__(self, database: Database, asks: AskTable) -> None:
        self._database = database
        self._asks = asks

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease, and return the conversation as it was; None if it is new."""
        _check_seconds(seconds)
        place = to_plain(session)

        async def work(tx: Transaction) -> Conversation | SessionInUse | StoreError | None:
            change = await tx.next_change()
            await tx.run(ADD_CONVERSATION, place, to_plain(key), VERSION, token)
            before = await _conversation(tx, session)
            name = before.key if key == session else key
            await tx.run(
                TAKE,
                *(to_plain(name), to_plain(owner), to_plain(machine), token, change, token),
                *(seconds, place, token),
            )
            ((*_, version, creator, has_it, now_token, until),) = await tx.run(CONVERSATION, place)
            if version > VERSION:
                return StoreError(f"a later release of steersman wrote the conversation {session}")
            if now_token != token:
                return _in_use(before, from_plain(has_it), until)
            is_new = creator == token and not before.begun
            return None if is_new else before

        found = await self._database.write(work)
        # Raised here: an error within the work costs a database its connection.
        if isinstance(found, SessionInUse | StoreError):
            raise found
        return found

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost."""
        _check_seconds(seconds)

        async def work(tx: Transaction) -> bool:
            await tx.run(RENEW, seconds, to_plain(session), token)
            return await is_owner(tx, session, token)

        return await self._database.write(work)

    async def release(self, session: str, token: str) -> None:
        """Give the lease up."""

        async def work(tx: Transaction) -> None:
            await tx.next_change()
            await tx.run(RELEASE, to_plain(session), token)

        await self._database.write(work)

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        """Store a turn. Raises `LeaseLost`."""
        place, uuid = to_plain(session), to_plain(turn.uuid)
        name = None if turn.key is None else to_plain(turn.key)
        prompt = _json.dumps({"content": turn.content, "fields": dict(turn.fields)}).decode()

        async def work(tx: Transaction) -> bool:
            change = await tx.next_change()
            if not await is_owner(tx, session, token):
                return False
            await tx.run(
                ADD_TURN,
                *(place, uuid, name, prompt, turn.when, VERSION, change, change),
            )
            await tx.run(REOPEN, change, place, uuid)
            (found,) = await tx.run(f"{TURN} AND uuid = ?", place, uuid)
            await tx.run(
                "UPDATE steersman_conversations SET machine = lease_machine, begun = begun + ?"
                " WHERE session = ?",
                *(1 if found[-1] == change else 0, place),
            )
            return True

        if not await self._database.write(work, is_vital=True):
            raise LeaseLost(session, "it was not renewed in time, or another process has it")

    async def settle(
        self, session: str, token: str, uuid: str, state: str, outcome: str, *, since: float = 0.0
    ) -> bool:
        """Write that a turn is `parked` or `settled`.

        The asks of a settled turn are closed: no request follows, also not with an answer that came
        meanwhile. Only a background subagent outlives a turn that was completed, with its asks:
        those of this owner that were created at `since` or later, when its CLI began. What an
        earlier CLI had asked was lost with it.
        """
        if state not in {"parked", "settled"}:
            raise UsageError("state", state, "parked or settled")
        place, name = to_plain(session), to_plain(uuid)

        async def work(tx: Transaction) -> bool:
            change = await tx.next_change()
            if not await is_owner(tx, session, token):
                return False
            await tx.run(SETTLE, state, to_plain(outcome), token, change, place, name)
            if state == "settled":
                await close_asks(tx, place, name, (outcome, since), change)
            found = await tx.run(f"{TURN} AND uuid = ?", place, name)
            return [each[4:7] for each in found] == [(state, to_plain(outcome), token)]

        return await self._database.write(work, is_vital=True)

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""

        async def work(tx: Transaction) -> list[StoredTurn]:
            return await _unsettled(tx, session)

        return await self._database.read(work)

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        """Return the asks of a turn that are open, or have an unused answer; the oldest first."""
        return [row.stored() for row in await self._asks.of_turn(session, turn)]

    async def ready(self) -> AsyncGenerator[Conversation]:
        """Yield each conversation that can be continued, and again after each change.

        While the store cannot be reached, it waits. Ends when the store is closed.
        """
        if self._database.is_closed:
            return
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def changed() -> None:
            loop.call_soon_threadsafe(news.set)

        seen: OrderedDict[str, object] = OrderedDict()
        is_failing, last = False, -1
        self._database.observe(changed)
        try:
            while not self._database.is_closed:
                news.clear()
                try:
                    last = await self._asks.last_change()
                    found, wait = await self._look(last, seen)
                    is_failing = False
                except StoreTooNew:
                    raise
                except StoreError as error:
                    if not (is_failing or self._database.is_closed):
                        log.warning("it cannot be seen which conversations are ready: %s", error)
                    found, wait, is_failing = [], RETRY, True
                looked = loop.time()
                for each in found:
                    _remember(seen, each)
                    yield each.conversation
                    if news.is_set() or loop.time() > looked + FRESH:
                        # Another process may have taken the others meanwhile.
                        break
                else:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self._change_after(last, news)
        finally:
            self._database.stop_observing(changed)

    async def _change_after(self, last: int, news: asyncio.Event) -> None:
        """Return at the next change. Not every write of another process is one."""
        while True:
            await news.wait()
            news.clear()
            with suppress(StoreError):
                if not self._database.is_closed and await self._asks.last_change() == last:
                    continue
            return

    async def _look(self, last: int, seen: Mapping[str, object]) -> tuple[list[Ready], float]:
        """Return the conversations to yield now, and how long to wait for an expiry."""
        # This lets asks expire whose time has come.
        _, expiry = await self._asks.changed(last)
        found, free = await self.ready_now()
        new = [each for each in found if seen.get(each.conversation.session) != each.state]
        waits = [each for each in (expiry, free) if each is not None]
        wait = min(max(min(waits, default=LONGEST_WAIT), SHORTEST_WAIT), LONGEST_WAIT)
        if len(new) > AT_ONCE:
            wait = SHORTEST_WAIT
        return [await self._with_turns(each) for each in new[:AT_ONCE]], wait

    async def _with_turns(self, ready: Ready) -> Ready:
        turns = await self.unsettled(ready.conversation.session)
        return replace(ready, conversation=replace(ready.conversation, turns=tuple(turns)))

    async def ready_now(self) -> tuple[list[Ready], float | None]:
        """Return the conversations that can be continued, and when the next lease may end."""

        async def work(tx: Transaction) -> tuple[list[Ready], float | None]:
            ((free,),) = await tx.run(NEXT_FREE)
            found = [
                Ready(
                    Conversation(
                        from_plain(name), from_plain(session), from_plain(machine), (), begun
                    ),
                    (token, turns, asks),
                )
                for session, name, machine, begun, token, turns, asks in await tx.run(READY)
            ]
            return found, free

        return await self._database.read(work)


def _check_seconds(given: float) -> None:
    if not 0 < given < math.inf:
        raise UsageError("seconds", given, "a number above 0")


def _remember(seen: OrderedDict[str, object], ready: Ready) -> None:
    session = ready.conversation.session
    seen[session] = ready.state
    seen.move_to_end(session)
    while len(seen) > REMEMBERED:
        seen.popitem(last=False)


async def _conversation(tx: Transaction, session: str) -> Conversation:
    ((_, name, machine, begun, *_),) = await tx.run(CONVERSATION, to_plain(session))
    turns = tuple(await _unsettled(tx, session))
    return Conversation(from_plain(name), session, from_plain(machine), turns, begun)


async def _unsettled(tx: Transaction, session: str) -> list[StoredTurn]:
    found = await tx.run(f"{TURN} AND state <> 'settled' ORDER BY number", to_plain(session))
    return [_turn(each) for each in found]


def _turn(found: Sequence[Any]) -> StoredTurn:
    uuid, name, prompt, when, state, outcome, *_ = found
    sent = _json.loads(prompt.encode())
    return StoredTurn(
        from_plain(uuid),
        None if name is None else from_plain(name),
        sent.get("content"),
        sent.get("fields") or {},
        when,
        state,
        from_plain(outcome),
    )


def _in_use(conversation: Conversation, owner: str, until: float) -> SessionInUse:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(until))
    return SessionInUse(
        f"the conversation {conversation.key!r} is open in another session: {owner} has it"
        f" until {clock} UTC, and may renew that",
        hint="close that session, or pass wait=; if its process was killed, wait until that time",
        owner=owner,
        until=until,
    )
