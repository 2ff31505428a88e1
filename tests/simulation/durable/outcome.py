"""What came of a run: its log, and the rows that it left."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.simulation.durable.plans import Plan
from tests.simulation.durable.world import Event


class AskLeft(NamedTuple):
    """The row of an ask."""

    command: str
    state: str
    was_used: bool
    mark: str | None
    """What has used the answer; empty if its turn ended without it."""
    turn: str
    has_earlier: bool


@dataclass
class Outcome:
    plan: Plan
    log: list[Event] = field(default_factory=list[Event])
    results: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Host, outcome and text of each turn that settled in a host that lived."""
    rows: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Key, state and outcome of each turn."""
    asks: list[AskLeft] = field(default_factory=list[AskLeft])
    failure: str = ""
    complaints: list[str] = field(default_factory=list[str])

    def count(self, what: str, about: str = "") -> int:
        """Return how often something happened."""
        return sum(each.what == what and about in each.about for each in self.log)

    def read_rows(self, path: Path) -> None:
        """Read what stands in the file."""
        with contextlib.closing(sqlite3.connect(path)) as found:
            self.rows = found.execute(
                "SELECT name, state, outcome FROM steersman_turns ORDER BY number"
            ).fetchall()
            self.asks = [
                AskLeft(command, state, mark is not None, mark, turn, bool(earlier))
                for command, state, mark, turn, earlier in found.execute(
                    "SELECT json_extract(ask, '$.payload.input.command'), state, used_mark, turn,"
                    " json_extract(ask, '$.earlier') IS NOT NULL FROM steersman_asks"
                    " ORDER BY number"
                )
            ]

    def story(self, wrong: list[str]) -> str:
        """Return the whole run as text."""
        parts = [self.plan, *self.log, self.rows, self.asks, *wrong, *self.complaints[:3], ""]
        return "\n    ".join(map(str, parts))
