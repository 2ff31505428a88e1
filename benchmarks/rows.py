"""The rows of the table: one per kind of work, and some by number or size.

A row holds the order for the contestants and the figure to compare. To add one, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OURS, OFFICIAL, TYPESCRIPT, BARE = (
    "steersman",
    "official Python",
    "official TypeScript",
    "bare loop",
)
EVERYONE = (OFFICIAL, TYPESCRIPT, BARE, OURS)
COMPAT = "steersman.compat"
"""Measured by `benchmarks.compat` only, beside the official package."""
PYTHONS = (OFFICIAL, BARE, OURS)
OWN = (OFFICIAL, OURS)

LARGE = 100_000
"""Bytes of text. The cost of a message of this size or more is shown in milliseconds."""
MANY = 100_000
"""Messages in a turn. With more, the slower contestants would take minutes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of work."""

    key: str
    title: str
    order: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `contestants.measuring.Order`."""
    figure: str = "cpu"
    """What is compared: `cpu` or `wall` per item, or another number of the report as it is."""
    target: float | None = None
    """The target of the design: our highest cost relative to the official Python SDK."""
    who: tuple[str, ...] = EVERYONE
    rounds: int = 5
    ways: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Variants of ours to compare instead of contestants, with what each adds to the order."""

    @property
    def scale(self) -> tuple[float, str]:
        """The factor and the unit in which figures are shown."""
        if self.figure in ("held", "beside"):
            return 1 / 1024, "KiB"
        if self.figure == "quiet":
            return 1e3, "ms/s"
        if self.order.get("size", 0) >= LARGE or self.order.get("shape") in (
            "connect",
            "import",
            "restart",
            "stored",
            "stock",
            "one-shot",
        ):
            return 1e3, "ms"
        return 1e6, "µs"


def _turn(key: str, title: str, target: float | None = None, **order: Any) -> Row:
    return Row(key, title, order, target=target)


STOCK = {"shape": "stock", "reading": "text"}
STREAMED = {**STOCK, "kind": "streamed"}
WHOLE = {**STOCK, "kind": "whole", "reading": "typed"}
ONE_SHOT = {"shape": "one-shot", "kind": "whole", "count": 3}
SDKS = (OFFICIAL, TYPESCRIPT, OURS)
FEW = 3
"""Rounds of the rows with the stock CLI, each of which takes seconds."""

USED = (
    Row(
        "stock-run",
        "`run()` and `query()`, 1,000 tokens, CPU of the host",
        ONE_SHOT,
        target=1.5,
        who=SDKS,
        rounds=FEW,
    ),
    Row("stock-run-cli", "- CPU of the CLI and helpers", ONE_SHOT, "cli", who=OWN, rounds=FEW),
    Row("stock-run-wall", "- from the call to the result", ONE_SHOT, "wall", who=SDKS, rounds=FEW),
    Row("stock-whole", "a turn without partial messages, CPU", WHOLE, who=SDKS, rounds=FEW),
    Row("stock-whole-cli", "- CPU of the CLI", WHOLE, "cli", who=OWN, rounds=FEW),
    Row("stock-text", "a turn whose text is read as it grows, CPU", STREAMED, who=SDKS, rounds=FEW),
    Row("stock-text-cli", "- CPU of the CLI", STREAMED, "cli", who=OWN, rounds=FEW),
    Row(
        "stock-first",
        "- until the first text",
        STREAMED,
        "first",
        who=SDKS,
        rounds=FEW,
    ),
    Row("stock-start", "start, until it can be used", STREAMED, "start", who=SDKS, rounds=FEW),
    Row("stock-close", "close", STREAMED, "close", who=OWN, rounds=FEW),
)

TRICKLED = tuple(
    Row(
        f"trickle-{gap}ms-{sessions}",
        f"token every {gap} ms, {sessions} session{'s' if sessions > 1 else ''}",
        {
            "kind": "trickle",
            "count": count,
            "warm": 20,
            "window": gap * 1000,
            "sessions": sessions,
        },
        target=0.55,
        rounds=3,
    )
    for gap, sessions, count in ((2, 1, 600), (12, 1, 200), (2, 50, 100), (12, 50, 50))
)

LATENCY = (
    Row(
        "latency",
        "latency added per token, every 2 ms",
        {"shape": "latency", "kind": "stamped", "count": 500, "window": 2000},
        "wall",
        target=1.0,
        rounds=5,
    ),
)

MESSAGES = (
    _turn("partial", "partial message, 40 bytes", 0.20, count=20_000, warm=2_000),
    _turn(
        "1kb", "assistant message, 1 KB", 0.33, kind="assistant", count=8_000, size=1024, warm=800
    ),
    _turn(
        "800kb", "assistant message, 800 KB", 1.0, kind="assistant", count=60, size=800_000, warm=5
    ),
    _turn("8mb", "assistant message, 8 MB", kind="assistant", count=8, size=8_000_000, warm=2),
    Row(
        "64mb",
        "one line of 64 MB",
        {"kind": "assistant", "count": 1, "size": 64_000_000, "warm": 2},
        rounds=3,
    ),
)

REQUESTS = (
    _turn("permission", "permission, one after the other", 0.50, kind="permission", count=2_000),
    _turn("hook", "hook, one after the other", 0.50, kind="hook", count=2_000),
    _turn("tool", "tool call, one after the other", 0.05, kind="tool", count=500),
    _turn(
        "permissions",
        "3,000 permissions at once",
        0.15,
        kind="permission",
        count=3_000,
        window=3_000,
    ),
    _turn("hooks", "3,000 hooks at once", kind="hook", count=3_000, window=3_000),
    _turn("tools", "2,000 tool calls at once", 0.015, kind="tool", count=2_000, window=2_000),
    _turn("mixed", "3,000 of the three kinds at once", kind="mixed", count=3_000, window=3_000),
)

LIFECYCLE = (
    Row("import", "`import`, over a bare interpreter", {"shape": "import"}, target=0.12, rounds=7),
    Row("connect", "connect, CPU of the host", {"shape": "connect", "count": 10}),
    Row("connect-wall", "connect, until it can be used", {"shape": "connect", "count": 10}, "wall"),
    Row("idle", "memory of an idle session", {"shape": "idle", "sessions": 30}, "held", rounds=3),
    Row(
        "idle-beside",
        "memory of an idle session, helpers",
        {"shape": "idle", "sessions": 30},
        "beside",
        rounds=3,
    ),
    Row(
        "backlog",
        "permission behind 20,000 unread",
        {"shape": "backlog", "kind": "backlog", "count": 20_000, "size": 200, "patience": 5},
        rounds=3,
    ),
    Row(
        "reading",
        "partial messages typed, as text, raw",
        {"count": 20_000, "warm": 2_000},
        who=(OURS,),
        ways={each: {"reading": each} for each in ("typed", "text", "raw")},
    ),
    Row(
        "journal",
        "partial message, journal in memory and on disk",
        {"count": 20_000, "warm": 2_000},
        who=(OURS,),
        ways={"in memory": {}, "on disk too": {"journal": True}},
    ),
    Row(
        "revival",
        "restart after the CLI was killed",
        {"shape": "restart", "count": 2, "kind": "assistant"},
        "wall",
        who=(OURS,),
        rounds=3,
    ),
)

SESSIONS = tuple(
    Row(
        f"sessions-{number}",
        f"partial message, {number} session{'s' if number > 1 else ''} at once",
        # Long turns, so that the cost of a turn itself does not matter.
        {"count": count, "warm": count // 10, "sessions": number},
        rounds=rounds,
    )
    for number, count, rounds in ((1, 20_000, 3), (10, 4_000, 3), (100, 1_000, 3), (500, 1_000, 2))
)

COUNTS = tuple(
    Row(
        f"messages-{count}",
        f"partial message, {count:,} in a turn",
        {"count": count, "warm": min(count, 2_000)},
        who=PYTHONS if count <= MANY else (BARE, OURS),
        rounds=3 if count <= MANY else 1,
    )
    for count in (10, 100, 1_000, 10_000, 100_000, 1_000_000)
)

SIZES = tuple(
    Row(
        f"sizes-{size}",
        f"assistant message, {size:,} bytes",
        {
            "kind": "assistant",
            "size": size,
            "warm": 5,
            "count": max(2, min(4_000, 40_000_000 // size)),
        },
        who=PYTHONS,
        rounds=3,
    )
    for size in (100, 10_000, 100_000, 1_000_000, 16_000_000)
)

MEMORY = (
    Row(
        "long-1kb",
        "assistant message, 1 KB, 200,000 in a turn",
        {"kind": "assistant", "size": 1024, "count": 200_000, "warm": 1_000},
        who=PYTHONS,
        rounds=1,
    ),
    Row(
        "quiet",
        "500 sessions that do nothing, CPU",
        {"shape": "quiet", "sessions": 500, "kind": "assistant", "warm": 1},
        "quiet",
        who=PYTHONS,
        rounds=1,
    ),
)

FILES = {"shape": "stored", "sessions": 10_000, "size": 26_000, "count": 1, "warm": 0}
ONE_FILE = {**FILES, "sessions": 1, "size": 100_000_000}
MANY_FILES = {**FILES, "sessions": 1_000, "size": 1_000_000, "journal": True, "warm": 1}

STORED = (
    Row(
        "list",
        "list 10,000 sessions of 26 KB",
        {**FILES, "kind": "list"},
        target=0.25,
        who=OWN,
    ),
    Row(
        "list-again",
        "list them again, with an index",
        {**FILES, "kind": "list", "journal": True, "warm": 1},
        who=OWN,
    ),
    Row(
        "newest",
        "list the newest 20 of them",
        {**FILES, "kind": "newest"},
        target=0.05,
        who=OWN,
    ),
    Row(
        "chain",
        "messages of a file of 100 MB",
        {**ONE_FILE, "kind": "chain"},
        who=OWN,
        rounds=3,
    ),
    Row("last", "last 20 messages of it", {**ONE_FILE, "kind": "last"}, who=OWN, rounds=3),
    Row(
        "search",
        "four searches in 1 GB, with an index",
        {**MANY_FILES, "kind": "search"},
        "wall",
        who=(OURS,),
        rounds=3,
    ),
)

GROUPS: Mapping[str, tuple[Row, ...]] = {
    "On the stock CLI": USED,
    "Tokens as a model writes them": (*TRICKLED, *LATENCY),
    "Memory and idle sessions": MEMORY,
    "Messages": MESSAGES,
    "Requests from the CLI": REQUESTS,
    "Lifecycle": LIFECYCLE,
    "Stored sessions": STORED,
    "Number of sessions": SESSIONS,
    "Number of messages": COUNTS,
    "Size of a message": SIZES,
}

ROWS: Mapping[str, Row] = {row.key: row for rows in GROUPS.values() for row in rows}


def chosen(keys: str) -> list[Row]:
    """Return the rows that `keys` names by key, or by the part before a number. Empty: all."""
    wanted = {key.strip() for key in keys.split(",") if key.strip()}
    known = set(ROWS) | {key.rsplit("-", 1)[0] for key in ROWS}
    if strange := wanted - known:
        raise SystemExit(f"no such rows: {', '.join(sorted(strange))}; known: {', '.join(ROWS)}")
    return [row for row in ROWS.values() if not wanted or _names(row) & wanted]


def _names(row: Row) -> set[str]:
    head, _, tail = row.key.rpartition("-")
    return {row.key, head} if tail.isdigit() else {row.key}
