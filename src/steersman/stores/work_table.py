"""The tables of conversations and turns: what is read and written, for every database with SQL.

A lease is part of the row of its conversation. Every write names the token of the lease, and is
made only if that lease is valid at that moment, by the time of the database. All writes but `renew`
take the next change number first, so they wait for each other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from steersman import _json
from steersman.errors import LeaseLost, SessionInUse, StoreError, UsageError
from steersman.inbox.work_rows import Ready
from steersman.permissions.json_form import ask_from_json
from steersman.ports import Conversation, StoredTurn
from steersman.stores.databases import AskDatabase, Run
from steersman.stores.plain_text import from_plain, to_plain

__all__ = ["CLOSE", "SPEND", "UNUSED", "WorkTable", "is_owner"]

VERSION = 1
"""The version of the rows that this release writes; it leaves later ones alone."""

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
OWNED = (
    "SELECT 1 FROM steersman_conversations"
    " WHERE session = ? AND lease_token = ? AND lease_until > :lease AND version <= 1"
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

CLOSE = (
    "UPDATE steersman_asks SET state = 'closed', answered_by = ?, ended_at = :now,"
    " ended_change = ?, last_change = ? WHERE state = 'open' AND version <= 1"
)
"""Closes the asks that the rest of the statement names; without it, none may be."""
SPEND = (
    "UPDATE steersman_asks SET used_mark = ?, used_at = :now, last_change = ?"
    " WHERE used_mark IS NULL AND state IN ('answered', 'expired') AND version <= 1"
)
"""Uses the answers of the asks that the rest of the statement names."""

UNUSED = "(state = 'open' OR (state IN ('answered', 'expired') AND used_mark IS NULL))"
"""The asks that wait, or whose answer is unused."""
LEFT = (
    "SELECT number, ask, opened_change > (SELECT c.lease_change FROM steersman_conversations c"  # noqa: S608 - ours
    " WHERE c.session = steersman_asks.session) FROM steersman_asks"
    f" WHERE session = ? AND turn = ? AND version <= 1 AND {UNUSED}"
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


class WorkTable:
    """The port `WorkRows` over a database."""

    def __init__(self, database: AskDatabase) -> None:
        self._database = database

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease, and return the conversation as it was; None if it is new."""
        place = to_plain(session)

        async def work(run: Run) -> Conversation | SessionInUse | StoreError | None:
            change = await self._database.next_change(run)
            await run(ADD_CONVERSATION, place, to_plain(key), VERSION, token)
            before = await _conversation(run, session)
            name = before.key if key == session else key
            await run(
                TAKE,
                *(to_plain(name), to_plain(owner), to_plain(machine), token, change, token),
                *(seconds, place, token),
            )
            ((*_, version, creator, has_it, now_token, until),) = await run(CONVERSATION, place)
            if version > VERSION:
                return StoreError(f"a later release of steersman wrote the conversation {session}")
            if now_token != token:
                return _in_use(before, from_plain(has_it), until)
            is_new = creator == token and not before.begun
            return None if is_new else before

        found = await self._database.write(work, is_vital=False)
        # Raised here: an error within the work costs a database its connection.
        if isinstance(found, SessionInUse | StoreError):
            raise found
        return found

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost."""

        async def work(run: Run) -> bool:
            await run(RENEW, seconds, to_plain(session), token)
            return await is_owner(run, session, token)

        return await self._database.write(work, is_vital=False)

    async def release(self, session: str, token: str) -> None:
        """Give the lease up."""

        async def work(run: Run) -> None:
            await self._database.next_change(run)
            await run(RELEASE, to_plain(session), token)

        await self._database.write(work, is_vital=False)

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        """Store a turn. Raises `LeaseLost`."""
        place, uuid = to_plain(session), to_plain(turn.uuid)
        name = None if turn.key is None else to_plain(turn.key)
        prompt = _json.dumps({"content": turn.content, "fields": dict(turn.fields)}).decode()

        async def work(run: Run) -> bool:
            change = await self._database.next_change(run)
            if not await is_owner(run, session, token):
                return False
            await run(
                ADD_TURN,
                *(place, uuid, name, prompt, turn.when, VERSION, change, change),
            )
            await run(REOPEN, change, place, uuid)
            (found,) = await run(f"{TURN} AND uuid = ?", place, uuid)
            await run(
                "UPDATE steersman_conversations SET machine = lease_machine, begun = begun + ?"
                " WHERE session = ?",
                *(1 if found[-1] == change else 0, place),
            )
            return True

        if not await self._database.write(work, is_vital=True):
            raise LeaseLost(session, "it was not renewed in time, or another process has it")

    async def settle(self, session: str, token: str, uuid: str, state: str, outcome: str) -> bool:
        """Write that a turn is `parked` or `settled`.

        The asks of a settled turn are closed: no request follows, also not with an answer that came
        meanwhile. Only a background subagent outlives a turn that was completed, with its asks: one
        of this owner, since those of an earlier owner were lost with its CLI.
        """
        place, name = to_plain(session), to_plain(uuid)

        async def work(run: Run) -> bool:
            change = await self._database.next_change(run)
            if not await is_owner(run, session, token):
                return False
            await run(SETTLE, state, to_plain(outcome), token, change, place, name)
            if state == "settled":
                await _close_asks(run, place, name, outcome, change)
            found = await run(f"{TURN} AND uuid = ?", place, name)
            return [each[4:7] for each in found] == [(state, to_plain(outcome), token)]

        return await self._database.write(work, is_vital=True)

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""

        async def work(run: Run) -> list[StoredTurn]:
            return await _unsettled(run, session)

        return await self._database.read(work)

    async def ready(self) -> tuple[list[Ready], float | None]:
        """Return the conversations that can be continued, and when the next lease may end."""

        async def work(run: Run) -> tuple[list[Ready], float | None]:
            ((free,),) = await run(NEXT_FREE)
            found = [
                Ready(
                    Conversation(
                        from_plain(name), from_plain(session), from_plain(machine), (), begun
                    ),
                    (token, turns, asks),
                )
                for session, name, machine, begun, token, turns, asks in await run(READY)
            ]
            return found, free

        return await self._database.read(work)


async def _conversation(run: Run, session: str) -> Conversation:
    ((_, name, machine, begun, *_),) = await run(CONVERSATION, to_plain(session))
    turns = tuple(await _unsettled(run, session))
    return Conversation(from_plain(name), session, from_plain(machine), turns, begun)


async def _unsettled(run: Run, session: str) -> list[StoredTurn]:
    found = await run(f"{TURN} AND state <> 'settled' ORDER BY number", to_plain(session))
    return [_turn(each) for each in found]


async def is_owner(run: Run, session: str, token: str) -> bool:
    """Return whether the lease of the conversation has this token, and is valid."""
    return bool(await run(OWNED, to_plain(session), token))


async def _close_asks(run: Run, session: str, turn: str, outcome: str, change: int) -> None:
    for number, text, is_of_owner in await run(LEFT, session, turn):
        if outcome == "completed" and is_of_owner and _is_of_subagent(text):
            continue
        await run(f"{CLOSE} AND number = ?", f"the turn was {outcome}", change, change, number)
        await run(f"{SPEND} AND number = ?", "", change, number)


def _is_of_subagent(ask: str) -> bool:
    try:
        return bool(getattr(ask_from_json(ask).payload, "agent_id", None))
    except UsageError:
        # Damaged, or of a later release: it cannot be answered.
        return False


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
