"""What is known of a release of the CLI: its promises, and whether its guards hold. Pure.

Reads `_release_table.py`, which is generated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct, field

from steersman._release_table import FLOOR, HOLDS_SINCE, NEWEST_TESTED, TESTED, UNSAFE

MEANINGS: Mapping[str, str] = {
    "continues_turns": "a turn continues after its CLI was lost",
    "soft_pause": "pause() stops the CLI between tools",
    "deferral": "a hook may defer a tool call",
    "background_tasks": "background tasks are reported until they end",
    "lifecycle": "the CLI reports on each prompt by its uuid",
    "interrupt_receipts": "interrupt() lists the prompts that it has stopped",
    "asks_by_default": "a tool call that no rule allows needs a permission",
}
"""Each promise of the table, as a sentence."""


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, by which releases are put in order."""
    return tuple(int(each) for each in re.findall(r"\d+", version)[:3])


class ReleaseTable(Struct, frozen=True):
    """What was measured of the releases."""

    floor: str = FLOOR
    newest: str = NEWEST_TESTED
    tested: tuple[str, ...] = TESTED
    holds_since: Mapping[str, str] = field(default_factory=lambda: HOLDS_SINCE)
    unsafe: tuple[tuple[str, str, str], ...] = UNSAFE

    def find(self, version: str) -> Release:
        """Return the facts about a release. Of an empty version nothing is known."""
        here = numbers(version)
        if not here:
            return Release(version)
        keeps = {name for name, since in self.holds_since.items() if here >= numbers(since)}
        return Release(
            version,
            keeps=frozenset(keeps),
            lacks=tuple(name for name in self.holds_since if name not in keeps),
            broken=self._broken(version),
            is_newer=here > numbers(self.newest),
        )

    def good(self) -> str:
        """Return the newest tested release whose guards hold."""
        safe = (each for each in self.tested if not self._broken(each))
        return max(safe, key=numbers, default=self.newest)

    def _broken(self, version: str) -> str:
        here = numbers(version)
        found = (
            what for first, last, what in self.unsafe if numbers(first) <= here <= numbers(last)
        )
        return "; ".join(found)


class Release(Struct, frozen=True):
    """What is known of one release."""

    version: str
    keeps: frozenset[str] = frozenset()
    """The promises that hold on it."""
    lacks: tuple[str, ...] = ()
    """The promises that do not."""
    broken: str = ""
    """What is broken about its guards; empty if nothing is."""
    is_newer: bool = False
    """Whether it is newer than the newest that was tested."""


TABLE = ReleaseTable()
"""What was measured of the releases of the stock CLI."""
