"""Writes `docs/releases.md` and `src/steersman/_release_table.py` from what was found. Pure.

What was found is kept in `found.json`, so both can be written again without running a CLI.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from tests.releases.choosing import changes_in, holds_since, ordered, runs_of
from tests.releases.promises import PROMISES, Promise, Verdict


class Heart(Struct, frozen=True):
    """The live tests of one topic, on one release."""

    passed: int
    failed: tuple[str, ...] = ()
    """Those that did not pass, by name."""
    lacks: str = ""
    """The promise that the tests need and that this release does not keep: they were not run."""


class Row(Struct, frozen=True):
    """What one release was seen to do."""

    why: str
    """Why it was chosen."""
    promises: Mapping[str, Verdict]
    heart: Mapping[str, Heart] = field(default_factory=dict[str, Heart])
    """Empty if only the promises were looked at."""
    checks: int = 0
    """How many checks `steersman conform` made."""
    seconds: float = 0.0
    """How long they took."""
    bad: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The checks that are BROKEN, CHANGED or FIXED."""

    @property
    def is_good(self) -> bool:
        """Whether everything was looked at and nothing that steersman depends on is broken."""
        has_passed = not any(each.failed for each in self.heart.values())
        return self.is_whole and has_passed and "BROKEN" not in self.bad

    @property
    def is_whole(self) -> bool:
        """Whether more than the promises was looked at."""
        return bool(self.checks and self.heart)


class Found(Struct, frozen=True):
    """One run of `make conform-range`."""

    day: str
    minutes: int
    machine: str
    floor: str
    rows: Mapping[str, Row]
    probed: Mapping[str, Mapping[str, Verdict]]
    """What each release that was asked does with each promise: more releases than rows."""
    later: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was measured again after that run, and the day."""


# --- The table in the library ------------------------------------------------------------


def newest_good(found: Found) -> str:
    """Return the newest release that keeps every promise of the library, and breaks nothing."""
    ours = [each.name for each in PROMISES if each.is_capability]
    for version in reversed(ordered(found.rows)):
        row = found.rows[version]
        if row.is_good and all(row.promises[name] == Verdict.YES for name in ours):
            return version
    raise ValueError("no release keeps every promise: look at tests/releases/found.json")


MODULE = '''\
"""Which release of the CLI keeps which promise. Written by `make conform-range`; do not edit."""

FLOOR = "{floor}"
NEWEST_TESTED = "{newest}"
TESTED: tuple[str, ...] = {tested}
HOLDS_SINCE: dict[str, str] = {since}
"""The first release from which a promise holds."""
UNSAFE: tuple[tuple[str, str, str], ...] = {unsafe}
"""First and last release of a range whose guards are broken, and what is broken."""
'''


def module_of(found: Found) -> str:
    """Return the source of `_release_table.py`."""
    newest = newest_good(found)
    since = {
        each.name: holds_since(_until(newest, found.probed[each.name]), Verdict.YES)
        for each in PROMISES
        if each.is_capability
    }
    return MODULE.format(
        floor=found.floor,
        newest=newest,
        tested=_source("()", (f'"{each}"' for each in ordered(found.rows))),
        since=_source("{}", (f'"{name}": "{first}"' for name, first in since.items())),
        unsafe=_source("()", (f'("{a}", "{b}", "{what}")' for a, b, what in _unsafe(found))),
    )


def _until(newest: str, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    known = ordered([*verdicts, newest])
    return {each: verdicts[each] for each in known[: known.index(newest) + 1] if each in verdicts}


def _unsafe(found: Found) -> list[tuple[str, str, str]]:
    return [
        (first, last, f"not so: {promise.means}")
        for promise in PROMISES
        if promise.is_guard
        for first, last in runs_of(found.probed[promise.name], Verdict.YES)
    ]


def _source(brackets: str, items: Iterable[str]) -> str:
    """Return a tuple or a dictionary as the formatter writes it, an item on each line."""
    lines = "".join(f"    {each},\n" for each in items)
    return f"{brackets[0]}\n{lines}{brackets[1]}" if lines else brackets


# --- The page ---------------------------------------------------------------------------

PAGE = """\
# Which release of the CLI keeps which promise

Measured on {day} by `make conform-range`, in {minutes} minutes on {machine}{later}. Do not edit
this page: it is written from `tests/releases/found.json`.

The oldest supported release is {floor}; the newest on which everything below holds is {newest}.
A session reads the same table: `session.describe()` and `steersman doctor` name what the running
CLI lacks. To judge a release that is not in the table, run `steersman conform`; see
[conformance.md](conformance.md).

{promises}

"yes" and "no" are what a short conversation on that release showed, with the stock CLI and a
scripted model; "in part" is some of it, "refused" means that steersman says so and does nothing
else instead.

## What else is run

{whole}

{heart}

`conform` is everything that `steersman conform` checks: {checks} checks, in so many seconds. In the
other columns are live tests of this repository, run with that CLI: how many passed. "-" means that
the tests need a promise that the release does not keep. They are the tests that `HEART` names in
`tests/releases/running.py`, not the whole suite. Each has thirty seconds: under the load that is
named above, one that did not pass may only have been late.

{bad}

## What the columns mean

{columns}

## Where a promise begins or ends

Found by halving what lies between two releases that differ; {probed} releases were looked at.

{changes}

## Broken guards

{unsafe}
"""


def page_of(found: Found) -> str:
    """Return the text of `docs/releases.md`."""
    rows = {version: found.rows[version] for version in ordered(found.rows)}
    probed = {version for verdicts in found.probed.values() for version in verdicts}
    return PAGE.format(
        day=found.day,
        minutes=found.minutes,
        machine=found.machine,
        later="".join(f"; `{part}` again on {day}" for part, day in sorted(found.later.items())),
        floor=found.floor,
        newest=newest_good(found),
        promises="\n".join(_promise_table(rows)),
        whole=_whole_line(rows),
        heart="\n".join(_heart_table(rows)),
        checks=max(row.checks for row in rows.values()),
        bad="\n".join(_bad_lines(rows)) or "Nothing was BROKEN, CHANGED or FIXED.",
        columns="\n".join(_column_lines()),
        probed=len(probed),
        changes="\n".join(_change_lines(found)),
        unsafe="\n".join(_unsafe_lines(found)),
    )


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for cells in lines:
        yield f"| {' | '.join(cells)} |"


def _promise_table(rows: Mapping[str, Row]) -> Iterator[str]:
    return _table(
        ["CLI", *(each.title for each in PROMISES), "chosen as"],
        (
            [version, *(_cell(row.promises[each.name]) for each in PROMISES), row.why]
            for version, row in rows.items()
        ),
    )


def _cell(verdict: Verdict) -> str:
    return verdict if verdict == Verdict.YES else f"**{verdict}**"


def _whole_line(rows: Mapping[str, Row]) -> str:
    left = [version for version, row in rows.items() if not row.is_whole]
    return (
        f"Only the promises were looked at on: {', '.join(left)}." if left else "On each release:"
    )


def _heart_table(rows: Mapping[str, Row]) -> Iterator[str]:
    rows = {version: row for version, row in rows.items() if row.is_whole}
    topics = list(dict.fromkeys(topic for row in rows.values() for topic in row.heart))
    return _table(
        ["CLI", "conform", "seconds", *topics],
        (
            [
                version,
                _conform_cell(row),
                f"{row.seconds:.0f}",
                *(_heart_cell(row.heart[topic]) for topic in topics),
            ]
            for version, row in rows.items()
        ),
    )


def _conform_cell(row: Row) -> str:
    return ", ".join(f"**{len(names)} {verdict}**" for verdict, names in row.bad.items()) or "OK"


def _heart_cell(heart: Heart) -> str:
    if heart.lacks:
        return "-"
    if heart.failed:
        return f"**{heart.passed} of {heart.passed + len(heart.failed)}**"
    return f"{heart.passed} of {heart.passed}"


def _bad_lines(rows: Mapping[str, Row]) -> Iterator[str]:
    for version, row in rows.items():
        for verdict, names in row.bad.items():
            yield f"- {version}, {verdict}: {_listed(names)}."
        for topic, heart in row.heart.items():
            if heart.failed:
                yield f"- {version}, tests of {topic} that do not pass: {_listed(heart.failed)}."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _column_lines() -> Iterator[str]:
    return _table(
        ["column", "it holds if", "in detail"],
        ([each.title, each.means + _own(each), f"`tests/{each.held_by}`"] for each in PROMISES),
    )


def _own(promise: Promise) -> str:
    return "" if promise.is_ours else " (the CLI alone, whatever steersman does about it)"


def _change_lines(found: Found) -> Iterator[str]:
    lines: list[list[str]] = []
    for promise in PROMISES:
        verdicts = found.probed[promise.name]
        known = ordered(verdicts)
        for version in changes_in(verdicts):
            before = known[known.index(version) - 1]
            lines.append(
                [promise.title, f"{before}: {verdicts[before]}", f"{version}: {verdicts[version]}"]
            )
    return _table(["column", "up to", "from"], lines)


def _unsafe_lines(found: Found) -> Iterator[str]:
    unsafe = _unsafe(found)
    if not unsafe:
        yield "None: on every release that was looked at, no tool runs that nobody has allowed."
    for first, last, what in unsafe:
        yield f"- {first} to {last}: {what}. A session refuses these with `UnsafeCli`."
