"""Measures which release of the CLI keeps which promise: `make conform-range`.

Looks for the releases at which a promise begins or ends to hold, fetches twelve, runs everything on
each, and writes `found.json`, `docs/releases.md` and `src/steersman/_release_table.py`. `--write`
runs nothing and writes the page and the table again; `--again` measures a promise, a check of
`steersman conform` or a topic of live tests again on the releases that are kept. A release whose
package is not known yet is added to `cli_hashes.txt`: a person reviews that.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import logging
import os
import signal
import sys
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import msgspec

from steersman.testing.cli_releases import (
    fetch_cli,
    known_hashes,
    learn_hash,
    platform_here,
    published,
)
from steersman.testing.older_cli import OLDER_VERSION
from steersman.testing.sandbox import find_stock_cli
from steersman_conformance import catalogue
from steersman_conformance.runner import version_of
from tests.releases.choosing import Ask, changes_in, chosen, find_changes, since
from tests.releases.pages import Found, Row, module_of, page_of
from tests.releases.promises import PROMISES, Promise, Verdict, probe
from tests.releases.running import HEART, checked_again, heart_again, promises_of, row_of

ROOT = Path(__file__).parents[2]
FOUND = Path(__file__).with_name("found.json")
PAGE = ROOT / "docs/releases.md"
TABLE = ROOT / "src/steersman/_release_table.py"

POINTS = ("2.1.260", "2.1.285", "2.1.290", "2.1.300", "2.1.303")
"""Releases between the ends from which the search begins: one in each range that is known."""
COUNT = 12
BY_CHANCE = 3
AT_ONCE = 2
"""How many releases are looked at side by side: their tests wait more than they compute."""


def main(arguments: argparse.Namespace) -> int:
    """Measure or only write, and return the exit status."""
    # As an exception, so that the CLIs and tests that run are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # What a release lacks, and the guards that are made to fail, are in the verdicts.
    logging.getLogger("steersman").setLevel(logging.CRITICAL + 1)
    try:
        if not arguments.write:
            if arguments.again:
                found = asyncio.run(measured_again(kept(), arguments.again, arguments.day))
            else:
                found = asyncio.run(measured(arguments.day, arguments.cli, quick=arguments.quick))
            FOUND.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        write(kept())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"conform-range: {error}\n")
        return 1
    return 0


def kept(file: Path = FOUND) -> Found:
    """Return the findings of the last run."""
    return msgspec.json.decode(file.read_bytes(), type=Found)


def write(found: Found) -> None:
    """Write the page and the table."""
    PAGE.write_text(page_of(found), encoding="utf-8")
    TABLE.write_text(module_of(found), encoding="utf-8")


async def measured(day: str, named: Sequence[str] = (), *, quick: bool = False) -> Found:
    """Choose the releases and run everything on each. Raises `OSError` if one cannot be had."""
    begun, load = time.monotonic(), os.getloadavg()[1]
    versions = since(OLDER_VERSION, published())
    stock = await version_of(str(find_stock_cli()))
    points = {versions[0], *POINTS, stock, versions[-1]} & set(versions)
    probed: dict[str, dict[str, Verdict]] = {}
    for promise in PROMISES:
        probed[promise.name] = await find_changes(versions, points, _asker(promise))
        _tell(f"{promise.name}: changes at {changes_in(probed[promise.name])}")
    wanted = wanted_of(versions, stock, probed, named)
    picked = chosen(versions, wanted, count=COUNT, by_chance=BY_CHANCE, day=day)
    rows = await rows_of(picked, probed, {versions[0], stock, versions[-1]} if quick else picked)
    for version, row in rows.items():
        for name, verdict in row.promises.items():
            probed[name][version] = verdict
    for promise in PROMISES:
        # What was drawn by chance may lie in a hole, whose ends are not known yet.
        seen = probed[promise.name]
        probed[promise.name] = await find_changes(versions, seen, _asker(promise), seen)
    return Found(
        day=day,
        minutes=round((time.monotonic() - begun) / 60),
        machine=f"{os.cpu_count()} cores, with a load of {load:.0f} to {os.getloadavg()[1]:.0f}",
        floor=versions[0],
        rows=rows,
        probed=probed,
    )


async def measured_again(found: Found, parts: Sequence[str], day: str) -> Found:
    """Measure these promises, checks and topics again on the kept releases. Raises `OSError`."""
    promises = [each for each in PROMISES if each.name in parts]
    checks = {*parts} - {each.name for each in promises} - HEART.keys()
    if unknown := checks - {each.name for scene in catalogue.ALL for each in scene.checks}:
        raise ValueError(f"--again: no such promise, check or topic: {', '.join(sorted(unknown))}")
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(version: str) -> Row:
        row, program = found.rows[version], fetched(version)
        async with turnstile:
            again = {each.name: await probe(each, program) for each in promises}
            row = msgspec.structs.replace(row, promises={**row.promises, **again})
            row = await checked_again(row, program, version, checks)
            row = await heart_again(row, program, parts)
            _tell(f"{version}: {again} {dict(row.bad)}")
            return row

    rows = dict(zip(found.rows, await asyncio.gather(*map(one, found.rows)), strict=True))
    probed = {**found.probed}
    for promise in promises:
        seen = {version: row.promises[promise.name] for version, row in rows.items()}
        versions = since(OLDER_VERSION, published())
        probed[promise.name] = await find_changes(versions, seen, _asker(promise), seen)
    later = {**found.later, **dict.fromkeys(parts, day)}
    return msgspec.structs.replace(found, rows=rows, probed=probed, later=later)


async def rows_of(
    picked: Mapping[str, str], probed: Mapping[str, Mapping[str, Verdict]], whole: Container[str]
) -> dict[str, Row]:
    """Run everything on the `whole` releases, and the probes on all that are `picked`.

    Raises `OSError` if one cannot be had.
    """
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(version: str) -> Row:
        async with turnstile:
            begun = time.monotonic()
            known = {name: seen[version] for name, seen in probed.items() if version in seen}
            why, program = picked[version], fetched(version)
            run = row_of if version in whole else promises_of
            row = await run(program, version, why, known)
            _tell(f"{version} ({row.why}): {time.monotonic() - begun:.0f} s, {row}")
            return row

    # If one fails, the end of the loop cancels the others, and they end what they have started.
    rows = await asyncio.gather(*map(one, picked))
    return dict(zip(picked, rows, strict=True))


def wanted_of(
    versions: Sequence[str],
    stock: str,
    probed: Mapping[str, Mapping[str, Verdict]],
    named: Sequence[str] = (),
) -> dict[str, str]:
    """Return the releases that must be there and why, the most important first."""
    wanted = {versions[0]: "the floor", versions[-1]: "the newest"}
    wanted.setdefault(stock, "the stock CLI of the tests")
    for version in named:
        wanted.setdefault(version, "named")
    for promise in PROMISES:
        for version in changes_in(probed[promise.name]):
            wanted.setdefault(version, f"{promise.title} changes")
    return wanted


def _asker(promise: Promise) -> Ask[Verdict]:
    async def ask(version: str) -> Verdict:
        verdict = await probe(promise, fetched(version))
        _tell(f"{promise.name} on {version}: {verdict}")
        return verdict

    return ask


def fetched(version: str) -> Path:
    """Return the path of a release, fetched if it is not here. Raises `OSError`."""
    if (version, platform_here()) not in known_hashes():
        _tell(f"new in cli_hashes.txt, to be reviewed: {version} {learn_hash(version)}")
    return fetch_cli(version)


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.releases", description=__doc__)
    parser.add_argument("--write", action="store_true", help="only write the page and the table")
    parser.add_argument(
        "--again",
        action="append",
        default=[],
        help="a promise, a check or a topic: measure only this, on the kept releases",
    )
    parser.add_argument("--cli", action="append", default=[], help="a release that must be there")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run only the probes, except on the ends and the stock CLI",
    )
    parser.add_argument(
        "--day",
        default=dt.datetime.now(dt.UTC).date().isoformat(),
        help="the day by which three releases are drawn",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(_arguments()))
