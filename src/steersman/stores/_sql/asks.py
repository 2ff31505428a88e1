"""The table of asks: what is read and written.

One row with a counter numbers the changes. Each transaction that writes takes the next number
first, which also makes the writers wait for each other: numbers are in the order of the commits.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from steersman.errors import UsageError
from steersman.inbox.rows import AskRow, Ending
from steersman.permissions import Allow, Ask, CanUseTool, EarlierAnswer
from steersman.permissions.json_form import answer_from_json, ask_from_json, ask_to_json
from steersman.stores._sql.database import Database, Transaction, from_plain, to_plain

VERSION = 1
"""The version of the rows that this release writes; it leaves later ones alone."""

COLUMNS = (
    "number, ask_id, ask, state, expires, assignee, answered_by, answer, mark, used_mark,"
    " opened_change, delegated_change, ended_change, last_change"
)
SELECT = f"SELECT {COLUMNS} FROM steersman_asks WHERE version <= 1 AND"  # noqa: S608 - ours
NEXT_EXPIRY = (
    "SELECT min(expires) - :now FROM steersman_asks"
    " WHERE version <= 1 AND state = 'open' AND expires IS NOT NULL"
)
EXPIRE = (
    "UPDATE steersman_asks SET state = 'expired', answered_by = 'expiry', ended_at = :now,"
    " ended_change = (SELECT last FROM steersman_ask_changes),"
    " last_change = (SELECT last FROM steersman_ask_changes) WHERE version <= 1"
    " AND state = 'open' AND expires IS NOT NULL AND expires <= :now"
)
# A row that has expired has a change number of its own: one number is one change.
COUNT_EXPIRED = (
    "UPDATE steersman_ask_changes SET last = last + 1"
    " WHERE EXISTS (SELECT 1 FROM steersman_asks WHERE last_change = steersman_ask_changes.last)"
)
INSERT = (
    "INSERT INTO steersman_asks (session, ask_id, tool_use_id, turn, tool, digest, ask,"
    " opened_change, last_change, version, state, created, expires)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', :now, :now + ?) ON CONFLICT DO NOTHING"
)
INSERT_RETURNING = f"{INSERT} RETURNING {COLUMNS}"
# An answer that was spent because its turn ended has an empty mark.
EARLIER = (
    "SELECT answered_by, answer, ended_at, last_change, (SELECT lease_change"
    " FROM steersman_conversations c WHERE c.session = a.session AND c.lease_token = ?)"
    " FROM steersman_asks a WHERE version <= 1 AND session = ? AND digest = ? AND tool = ?"
    " AND turn = ? AND state = 'answered' AND used_mark IS NOT NULL AND used_mark <> ''"
    " ORDER BY number DESC LIMIT 1"
)
# Without a token there is no lease to be asked for.
OWNS = (
    "(? = '' OR EXISTS (SELECT 1 FROM steersman_conversations c WHERE c.lease_token = ?"
    " AND c.session = steersman_asks.session AND c.lease_until > :lease AND c.version <= 1))"
)
NO_OTHER = (
    "(? = '' OR NOT EXISTS (SELECT 1 FROM steersman_conversations c WHERE c.lease_token <> ?"
    " AND c.session = steersman_asks.session AND c.lease_token <> ''))"
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

OWNED = (
    "SELECT 1 FROM steersman_conversations"
    " WHERE session = ? AND lease_token = ? AND lease_until > :lease AND version <= 1"
)
UNUSED = "(state = 'open' OR (state IN ('answered', 'expired') AND used_mark IS NULL))"
"""The asks that wait, or whose answer is unused."""
LEFT = (
    "SELECT number, ask, opened_change > (SELECT c.lease_change FROM steersman_conversations c"  # noqa: S608 - ours
    " WHERE c.session = steersman_asks.session) FROM steersman_asks"
    f" WHERE session = ? AND turn = ? AND version <= 1 AND {UNUSED}"
)
TURN_END = (
    "SELECT outcome FROM steersman_turns WHERE session = ? AND uuid = ? AND state = 'settled'"
)

_NO_ASK = Ask(id="", session="", payload=CanUseTool(tool_name="", input={}), created=0.0)


class AskTable:
    """The port `AskRows` over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(
        self, ask: Ask, expires_after: float | None, awaited: Collection[int], token: str = ""
    ) -> AskRow | None:
        """Store `ask`, or find it again, and return its row.

        None if the lease is lost, or the turn of the ask has ended: nothing would close it.
        """

        async def work(tx: Transaction) -> AskRow | None:
            change = await self._begin(tx)
            if token and not await is_owner(tx, ask.session, token):
                return None
            known = [row for row in await _known(tx, ask) if row.number not in awaited]
            if known:
                return known[0]
            if await _has_ended(tx, ask):
                return None
            earlier = await _earlier(tx, ask, token)
            kept = ask if earlier is None else replace(ask, earlier=earlier.answer)
            returns = self._database.is_server
            row = await _insert(tx, kept, expires_after, change, returns=returns)
            if earlier is not None and ask.is_repeatable and earlier.may_repeat:
                return await _answer(tx, row.number, earlier, change)
            return row

        return await self._database.write(work)

    async def end(self, number: int, how: Ending, by: str, answer: str, mark: str) -> AskRow:
        """End an ask if it is open. Returns the row; it has the `mark` if this call ended it."""

        async def work(tx: Transaction) -> AskRow:
            change = await self._begin(tx)
            await tx.run(
                "UPDATE steersman_asks SET state = ?, answered_by = ?, answer = ?, mark = ?,"
                " ended_at = :now, ended_change = ?, last_change = ?"
                " WHERE number = ? AND state = 'open' AND version <= 1",
                *(how, to_plain(by), answer, mark, change, change, number),
            )
            return await _one(tx, number)

        return await self._database.write(work, is_vital=True)

    async def close(self, number: int, reason: str, mark: str, token: str = "") -> None:
        """Close an ask for good, unless another session has the conversation."""

        async def work(tx: Transaction) -> None:
            change = await self._begin(tx)
            told = to_plain(reason), change, change, number
            await tx.run(f"{CLOSE} AND number = ? AND {NO_OTHER}", *told, token, token)
            await tx.run(
                f"{SPEND} AND number = ? AND {NO_OTHER}", mark, change, number, token, token
            )

        await self._database.write(work, is_vital=True)

    async def use(self, number: int, mark: str, token: str = "") -> AskRow:
        """Use the answer if it is unused. Returns the row, with the mark that has used it."""

        async def work(tx: Transaction) -> AskRow:
            change = await self._begin(tx)
            await tx.run(f"{SPEND} AND number = ? AND {OWNS}", mark, change, number, token, token)
            return await _one(tx, number)

        return await self._database.write(work, is_vital=True)

    async def give_back(self, number: int, mark: str) -> None:
        """Make an answer unused again that was used with `mark`, and did not reach its session."""

        async def work(tx: Transaction) -> None:
            change = await self._begin(tx)
            await tx.run(
                "UPDATE steersman_asks SET used_mark = NULL, used_at = NULL, last_change = ?"
                " WHERE number = ? AND used_mark = ?",
                *(change, number, mark),
            )

        await self._database.write(work)

    async def delegate(self, number: int, to: str) -> AskRow:
        """Set the assignee, if the ask is open. Returns the row."""

        async def work(tx: Transaction) -> AskRow:
            change = await self._begin(tx)
            await tx.run(
                "UPDATE steersman_asks SET assignee = ?, delegated_change = ?, last_change = ?"
                " WHERE number = ? AND state = 'open' AND version <= 1",
                *(to_plain(to), change, change, number),
            )
            return await _one(tx, number)

        return await self._database.write(work)

    async def find(self, ask_id: str, session: str | None) -> list[AskRow]:
        """Return the rows with this id."""
        of_session = "" if session is None else " AND session = ?"
        values = (ask_id,) if session is None else (ask_id, session)
        return await self._look(
            f"{SELECT} ask_id = ?{of_session} ORDER BY number", *map(to_plain, values)
        )

    async def open_ones(self) -> list[AskRow]:
        """Return the open asks, the oldest first."""
        rows = await self._look(f"{SELECT} state = 'open' ORDER BY number")
        return [row for row in rows if row.state == "open"]

    async def of_turn(self, session: str, turn: str) -> list[AskRow]:
        """Return the asks of a turn that are open, or have an unused answer; the oldest first."""
        statement = f"{SELECT} session = ? AND turn = ? AND {UNUSED} ORDER BY number"
        rows = await self._look(statement, to_plain(session), to_plain(turn))
        return [row for row in rows if row.state == "open" or row.can_be_used]

    async def changed(self, since: int) -> tuple[list[AskRow], float | None]:
        """Return the rows with a change after number `since`, and when the next ask expires."""
        return await self._looked(f"{SELECT} last_change > ? ORDER BY last_change, number", since)

    async def last_change(self) -> int:
        """Return the number of the last change of all."""

        async def work(tx: Transaction) -> int:
            ((last,),) = await tx.run("SELECT last FROM steersman_ask_changes")
            return int(last)

        return await self._database.read(work)

    async def _look(self, statement: str, *values: object) -> list[AskRow]:
        return (await self._looked(statement, *values))[0]

    async def _looked(self, statement: str, *values: object) -> tuple[list[AskRow], float | None]:
        """Read rows, after those whose time has come have expired."""

        async def expire(tx: Transaction) -> None:
            await self._begin(tx)

        async def work(tx: Transaction) -> tuple[list[AskRow], float | None] | None:
            ((left,),) = await tx.run(NEXT_EXPIRY)
            if left is not None and left <= 0:
                return None
            return [_row(found) for found in await tx.run(statement, *values)], left

        while True:
            found = await self._database.read(work)
            if found is not None:
                return found
            await self._database.write(expire)

    async def _begin(self, tx: Transaction) -> int:
        """Return the number of this change, and let rows expire."""
        return await tx.next_change(EXPIRE, COUNT_EXPIRED)


async def is_owner(tx: Transaction, session: str, token: str) -> bool:
    """Return whether the lease of the conversation has this token, and is valid."""
    return bool(await tx.run(OWNED, to_plain(session), token))


async def close_asks(
    tx: Transaction, session: str, turn: str, end: tuple[str, float], change: int
) -> None:
    """Close the asks of a turn that has ended, but those of a subagent that outlives it.

    Both names are as they are stored. `end` is the outcome, and when the CLI of the owner began.
    """
    outcome, since = end
    for number, text, is_of_owner in await tx.run(LEFT, session, turn):
        if outcome == "completed" and is_of_owner and _is_of_subagent(text, since):
            continue
        await tx.run(f"{CLOSE} AND number = ?", f"the turn was {outcome}", change, change, number)
        await tx.run(f"{SPEND} AND number = ?", "", change, number)


def _is_of_subagent(text: str, since: float) -> bool:
    try:
        ask = ask_from_json(text)
    except UsageError:
        # Damaged, or of a later release: it cannot be answered.
        return False
    return ask.agent is not None and ask.created >= since


async def _has_ended(tx: Transaction, ask: Ask) -> bool:
    """Whether the turn of an ask is settled, and no background subagent of it continues."""
    if ask.turn is None:
        return False
    found = await tx.run(TURN_END, to_plain(ask.session), to_plain(ask.turn))
    return bool(found) and (ask.agent is None or found != [("completed",)])


async def _known(tx: Transaction, ask: Ask) -> list[AskRow]:
    """Return the rows that may be `ask` again; those with its `tool_use_id` first.

    An ask of no turn and no call is known by its id: it is stored again if the database has not
    confirmed that it was stored.
    """
    used_for, turn = to_plain(_tool_use_id(ask)), None if ask.turn is None else to_plain(ask.turn)
    name = to_plain(ask.id) if turn is None and not used_for else None
    found = await tx.run(
        f"{SELECT} session = ? AND digest = ? AND tool = ? AND {UNUSED}"
        " AND ((tool_use_id IS NOT NULL AND tool_use_id = ?) OR turn = ? OR ask_id = ?)"
        " ORDER BY CASE WHEN tool_use_id = ? THEN 0 ELSE 1 END, number",
        *(to_plain(ask.session), ask.digest, to_plain(_tool(ask)), used_for),
        *(turn, name, used_for),
    )
    return [row for row in map(_row, found) if row.state == "open" or row.can_be_used]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The answer that the same call of the same turn had before."""

    answer: EarlierAnswer
    text: str
    is_of_lost_owner: bool
    """Whether an earlier owner of the conversation has used it: the call may not have ended."""

    @property
    def may_repeat(self) -> bool:
        """Whether it is an approval that is good for a call that may run again."""
        return self.is_of_lost_owner and isinstance(self.answer.answer, Allow)


async def _earlier(tx: Transaction, ask: Ask, token: str) -> _Earlier | None:
    if ask.turn is None:
        return None
    found = await tx.run(
        EARLIER,
        *(token, to_plain(ask.session), ask.digest, to_plain(_tool(ask)), to_plain(ask.turn)),
    )
    if not found:
        return None
    by, text, at, last, taken = found[0]
    try:
        answer = EarlierAnswer(answer=answer_from_json(text), by=from_plain(by), at=at)
    except UsageError:
        # A later release wrote it; it is neither shown nor repeated.
        return None
    return _Earlier(answer, text, taken is not None and last <= taken)


async def _answer(tx: Transaction, number: int, earlier: _Earlier, change: int) -> AskRow:
    """Answer a row as the same call was answered before."""
    await tx.run(
        "UPDATE steersman_asks SET state = 'answered', answered_by = ?, answer = ?,"
        " ended_at = :now, ended_change = ?, last_change = ? WHERE number = ?",
        *(to_plain(earlier.answer.by), earlier.text, change, change, number),
    )
    return await _one(tx, number)


async def _insert(
    tx: Transaction, ask: Ask, expires_after: float | None, change: int, *, returns: bool
) -> AskRow:
    """Add a row. Its id is that of the ask, with a number if the session had that id before."""
    for count in itertools.count(1):
        kept = ask if count == 1 else replace(ask, id=f"{ask.id}~{count}")
        names = [kept.session, kept.id, _tool_use_id(kept) or None, kept.turn, _tool(kept)]
        plain = [None if each is None else to_plain(each) for each in names]
        found = await tx.run(
            INSERT_RETURNING if returns else INSERT,
            *(*plain, kept.digest, ask_to_json(kept).decode(), change, change, VERSION),
            expires_after,
        )
        row = _row(found[0]) if found else None if returns else await _by_id(tx, kept)
        if row is not None and row.opened == change:
            return row
    raise AssertionError("unreachable")


async def _by_id(tx: Transaction, ask: Ask) -> AskRow | None:
    found = await tx.run(
        f"{SELECT} session = ? AND ask_id = ?", to_plain(ask.session), to_plain(ask.id)
    )
    return _row(found[0]) if found else None


async def _one(tx: Transaction, number: int) -> AskRow:
    found = await tx.run(f"{SELECT} number = ?", number)
    return _row(found[0]) if found else AskRow(number, _NO_ASK, "removed")


def _row(found: tuple[Any, ...]) -> AskRow:
    number, name, text, state, expires, assignee, by, answer, mark, used, *changes = found
    try:
        ask = ask_from_json(text)
    except UsageError:
        # Written by hand, or damaged: nothing can be allowed that cannot be shown.
        ask, state = _NO_ASK, "unreadable"
    assigned = None if assignee is None else from_plain(assignee)
    ask = replace(ask, id=from_plain(name), expires=expires, assignee=assigned)
    return AskRow(number, ask, state, from_plain(by), answer, mark, used, *changes)


def _tool_use_id(ask: Ask) -> str:
    return str(getattr(ask.payload, "tool_use_id", None) or "")


def _tool(ask: Ask) -> str:
    return f"{ask.kind} {ask.tool_name or ''}"
