"""`steersman conform`: checks a CLI against the protocol that steersman relies on."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from steersman._json import JsonDict
from steersman._terminal import printable
from steersman.cli.commands import Commands
from steersman.cli.conform_store import add_store_form
from steersman.cli.output import complain
from steersman.errors import SteersmanError
from steersman.testing.sandbox import find_any_cli
from steersman.transports.locate import locate
from steersman_conformance import baselines, catalogue, runner
from steersman_conformance.checks import Scene
from steersman_conformance.report import Report
from steersman_conformance.verdicts import Baseline, judge

__all__ = ["ConformArguments", "add_command", "conform"]

GOOD, BAD, CANNOT = 0, 1, 2
INTERRUPTED = 130
WIDEST = 100


@dataclass(frozen=True, slots=True)
class ConformArguments:
    """The arguments of `steersman conform`."""

    cli: str | None = None
    only: Sequence[str] = ()
    json: Path | None = None
    baseline: Path | None = None
    record: bool = False
    jobs: int = 2
    patience: float = runner.PATIENCE


def add_command(commands: Commands) -> None:
    """Add `steersman conform` and its arguments."""
    conform = commands.add_parser("conform", help="check a CLI against the protocol, offline")
    add = conform.add_argument
    add("--cli", metavar="PATH", help="the CLI to check; by default the stock CLI that is found")
    add("--only", metavar="NAME", action="append", default=[], help="a check, scene or pattern")
    add("--json", metavar="FILE", type=Path, help="also write the findings as JSON; - is stdout")
    add(
        "--baseline",
        metavar="FILE",
        type=Path,
        help="compare with this baseline, not with a shipped one",
    )
    add("--record", action="store_true", help="write the observations as the version's baseline")
    add("--jobs", metavar="N", type=_count, default=2, help="how many scenes at a time (2)")
    add(
        "--patience", metavar="S", type=float, default=runner.PATIENCE,
        help=f"seconds to wait for anything that is expected ({runner.PATIENCE:g})",
    )  # fmt: skip
    conform.set_defaults(run=_run)
    add_store_form(conform)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _run(chosen: argparse.Namespace) -> int:
    fields: JsonDict = {name: getattr(chosen, name) for name in ConformArguments.__slots__}
    try:
        return asyncio.run(conform(ConformArguments(**fields)))
    except SteersmanError as error:
        complain(error)
        return CANNOT
    except KeyboardInterrupt:
        return INTERRUPTED


async def conform(
    arguments: ConformArguments, out: TextIO | None = None, progress: TextIO | None = None
) -> int:
    """Play the scenes, print the table, and return the exit status. Raises `SteersmanError`."""
    screen = sys.stdout if out is None else out
    scenes = catalogue.chosen(arguments.only)
    program = find_any_cli() if arguments.cli is None else locate(_as_path(arguments.cli))
    version = await runner.version_of(program, arguments.patience)
    baseline = _baseline(arguments, version)
    begun = time.monotonic()
    bar = _Progress(sys.stderr if progress is None else progress, scenes)
    observed = await runner.play(
        scenes, program, jobs=arguments.jobs, patience=arguments.patience, on_done=bar.advance
    )
    bar.clear()
    if arguments.record:
        return _record(arguments, version, observed, screen)
    report = Report(
        program=program,
        version=version,
        baseline=None if baseline is None else baseline.version,
        seconds=time.monotonic() - begun,
        findings=[
            judge(check, observed[check.name], baseline, version=version)
            for scene in scenes
            for check in scene.checks
        ],
    )
    _print_report(report, arguments, screen)
    return GOOD if report.is_good else BAD


def _as_path(named: str) -> str:
    """Return the path of a file that exists here; other names are looked up in PATH."""
    return str(Path(named).absolute()) if os.sep in named or Path(named).exists() else named


def _baseline(arguments: ConformArguments, version: str) -> Baseline | None:
    if arguments.record:
        return None
    return (
        baselines.nearest(version)
        if arguments.baseline is None
        else baselines.load(arguments.baseline)
    )


def _record(arguments: ConformArguments, version: str, observed: JsonDict, out: TextIO) -> int:
    path = arguments.baseline or baselines.SHIPPED / f"{version}.json"
    is_partial = arguments.only and path.exists()
    kept = dict(baselines.load(path).observed) if is_partial else JsonDict()
    baselines.save(path, version, {**kept, **observed})
    print(f"recorded {len(observed)} observations of {version} in {path}", file=out)
    return GOOD


def _print_report(report: Report, arguments: ConformArguments, out: TextIO) -> None:
    if arguments.json is not None and str(arguments.json) == "-":
        print(report.json(), file=out)
        return
    if arguments.json is not None:
        arguments.json.write_text(report.json() + "\n", encoding="utf-8")
    width = min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)
    for line in report.lines(width):
        print(printable(line), file=out)


class _Progress:
    """A progress line on a terminal; writes nothing if `out` is not a terminal."""

    def __init__(self, out: TextIO, scenes: Sequence[Scene[Any]]) -> None:
        self._out = out
        self._all = len(scenes)
        self._done = 0
        self._is_shown = out.isatty()

    def advance(self, scene: Scene[Any]) -> None:
        self._done += 1
        if self._is_shown:
            text = f"{self._done}/{self._all} scenes, {scene.name}"
            self._out.write(f"\r\x1b[K{text[:78]}")
            self._out.flush()

    def clear(self) -> None:
        if self._is_shown:
            self._out.write("\r\x1b[K")
            self._out.flush()
