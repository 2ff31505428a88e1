"""The table of journals: entries of conversations by number, for every database that knows SQL."""

from __future__ import annotations

from collections.abc import Sequence

from steersman.stores.databases import AskDatabase, Run
from steersman.stores.plain_text import to_plain

__all__ = ["JournalTable"]

AT_ONCE = 200
"""Rows in one statement."""
ADD = "INSERT INTO steersman_journals (conversation, seq, entry) VALUES "
RANGE = "SELECT seq, entry FROM steersman_journals WHERE conversation = ? AND seq BETWEEN ? AND ?"
READ = (
    "SELECT seq, entry FROM steersman_journals WHERE conversation = ? AND seq > ?"
    " ORDER BY seq LIMIT ?"
)


class JournalTable:
    """The port `JournalRows` over a database."""

    def __init__(self, database: AskDatabase) -> None:
        self._database = database

    async def append(self, conversation: str, entries: Sequence[tuple[int, str]]) -> int:
        """Store entries with their numbers. One whose number is there already is left out.

        Returns how many were left out because another entry has their number.
        """
        place = to_plain(conversation)
        returns_rows = self._database.returns_rows
        end = " ON CONFLICT DO NOTHING" + (" RETURNING seq" if returns_rows else "")

        async def work(run: Run) -> int:
            left_out = 0
            for begin in range(0, len(entries), AT_ONCE):
                some = entries[begin : begin + AT_ONCE]
                values = [value for seq, text in some for value in (place, seq, text)]
                rows = ", ".join(["(?, ?, ?)"] * len(some))
                added = await run(f"{ADD}{rows}{end}", *values)
                count = len(added) if returns_rows else (await run("SELECT changes()"))[0][0]
                if count < len(some):
                    found = await run(RANGE, place, some[0][0], some[-1][0])
                    known: dict[int, str] = dict(found)
                    left_out += sum(known.get(seq) != text for seq, text in some)
            return left_out

        return await self._database.write(work, is_vital=False)

    async def last_seq(self, conversation: str) -> int:
        """Return the greatest number; 0 if there is none."""

        async def work(run: Run) -> int:
            ((last,),) = await run(
                "SELECT max(seq) FROM steersman_journals WHERE conversation = ?",
                to_plain(conversation),
            )
            return int(last or 0)

        return await self._database.read(work)

    async def read(self, conversation: str, after: int, most: int) -> list[tuple[int, str]]:
        """Return the entries after number `after` with their numbers, in order, `most` at most."""

        async def work(run: Run) -> list[tuple[int, str]]:
            found = await run(READ, to_plain(conversation), after, most)
            return [(seq, text) for seq, text in found]

        return await self._database.read(work)
