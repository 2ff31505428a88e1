"""Runs on one release: the probes, `steersman conform`, and the live tests of the heart."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec

from steersman._json import JsonDict
from steersman_conformance import baselines, catalogue, runner
from steersman_conformance.checks import Scene
from steersman_conformance.verdicts import GOOD, judge
from tests.live.test_harness import LIVE_CLI
from tests.releases.pages import Heart, Row
from tests.releases.promises import PROMISES, Verdict, probe

ROOT = Path(__file__).parents[2]
LIVE = "tests/live/"
PATIENCE = 1200
"""Seconds for the live tests of one release; a quiet machine needs one minute."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Live tests that show one thing, and the promise that they need, if any."""

    tests: Sequence[str]
    needs: str = ""


def _in(file: str, *names: str) -> tuple[str, ...]:
    """Return the names of tests of one file."""
    return tuple(f"{file}::{name}" for name in names)


HEART: Mapping[str, Topic] = {
    "revival": Topic(
        _in(
            "test_revival.py",
            "test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once",
            "test_killed_while_a_permission_is_open_the_person_is_asked_again",
        ),
        needs="continues_turns",
    ),
    "lost for good": Topic(
        (
            "test_revival.py::test_without_revival_a_dead_cli_ends_the_session",
            "test_process_life.py::test_a_host_that_is_killed_takes_the_whole_tree_along",
        )
    ),
    "states": Topic(
        _in(
            "test_states.py",
            "test_cancelled_in_the_middle_of_a_text",
            "test_cancelled_while_a_tool_of_ours_and_bash_run",
            "test_cancelled_while_idle",
        )
    ),
    "keys": Topic(
        _in(
            "test_keys.py",
            "test_an_interrupted_turn_stays_interrupted_in_the_next_process",
            "test_a_key_is_the_same_for_a_conversation_that_is_continued_or_resumed",
        )
    ),
    "asking": Topic(
        _in(
            "test_asking.py",
            "test_a_permission_callback_decides_what_is_written",
            "test_without_an_approver_the_model_reads_how_to_register_one",
            "test_hooks_see_deny_change_and_fail_closed",
        )
    ),
    "guards": Topic(
        _in(
            "test_guards_hold.py",
            "test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure",
            "test_no_tool_runs_if_the_program_is_killed_while_its_guard_is_asked",
        )
    ),
    "resume": Topic(
        (
            "test_going_on.py::test_a_closed_conversation_can_be_resumed_continued_and_forked",
            "test_going_back.py::test_a_fork_goes_its_own_way",
        )
    ),
    "deferred": Topic(
        (
            *_in(
                "test_resume_handshake.py",
                "test_a_guard_that_denies_or_fails_holds_in_every_resume_of_a_deferred_call",
            ),
            "test_exact_parking.py::test_a_permission_is_parked_exactly",
        ),
        needs="deferral",
    ),
}
"""What is run on each release."""


async def row_of(program: Path, version: str, why: str, known: Mapping[str, Verdict]) -> Row:
    """Run everything on one release but the probes whose verdict is known.

    Raises `OSError` if the live tests cannot be run.
    """
    row = await promises_of(program, version, why, known)
    begun = time.monotonic()
    bad, checks = await _conform(program, version)
    seconds = time.monotonic() - begun
    heart = await _heart(program, row.promises)
    return Row(why, row.promises, heart, checks, round(seconds, 1), bad)


async def promises_of(program: Path, _version: str, why: str, known: Mapping[str, Verdict]) -> Row:
    """Run on one release only the probes whose verdict is not known."""
    promises = {each.name: known.get(each.name) or await probe(each, program) for each in PROMISES}
    return Row(why, promises)


async def checked_again(row: Row, program: Path, version: str, names: Collection[str]) -> Row:
    """Return the row with these checks as they are now. Names that no check has any more go."""
    known = {each.name for scene in catalogue.ALL for each in scene.checks} - {*names}
    bad = {verdict: [*filter(known.__contains__, each)] for verdict, each in row.bad.items()}
    again, _ = await _conform(program, version, catalogue.chosen([*names]) if names else ())
    for verdict, found in again.items():
        bad[verdict] = [*bad.get(verdict, ()), *(each for each in found if each in names)]
    kept = {verdict: tuple(each) for verdict, each in bad.items() if each}
    return msgspec.structs.replace(row, bad=kept)


async def _conform(
    program: Path, version: str, scenes: Sequence[Scene[Any]] = catalogue.ALL
) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return the checks that are not good, by verdict, and how many checks there are."""
    observed = await runner.play(scenes, str(program))
    bad = _bad(observed, version)
    if bad:
        # What goes otherwise beside others on a busy machine gets one more try, by itself.
        scenes = catalogue.chosen([name for names in bad.values() for name in names])
        bad = _bad(observed | await runner.play(scenes, str(program), jobs=1), version)
    return bad, len(observed)


def _bad(observed: JsonDict, version: str) -> dict[str, tuple[str, ...]]:
    baseline = baselines.nearest(version)
    bad: dict[str, tuple[str, ...]] = {}
    checks = (each for scene in catalogue.ALL for each in scene.checks)
    for check in (each for each in checks if each.name in observed):
        verdict = judge(check, observed[check.name], baseline, version=version).verdict
        if verdict not in GOOD:
            bad[verdict.value] = (*bad.get(verdict.value, ()), check.name)
    return bad


# --- The live tests ---------------------------------------------------------------------


async def heart_again(row: Row, program: Path, topics: Collection[str]) -> Row:
    """Return the row with what the live tests of these topics do now. Raises `OSError`."""
    chosen = {name: topic for name, topic in HEART.items() if name in topics}
    found = await _heart(program, row.promises, chosen) if chosen else {}
    return msgspec.structs.replace(row, heart={**row.heart, **found})


async def _heart(
    program: Path, promises: Mapping[str, Verdict], topics: Mapping[str, Topic] = HEART
) -> dict[str, Heart]:
    lacking = {
        name: Heart(0, lacks=topic.needs)
        for name, topic in topics.items()
        if topic.needs and promises[topic.needs] != Verdict.YES
    }
    wanted = {name: topic.tests for name, topic in topics.items() if name not in lacking}
    with tempfile.TemporaryDirectory() as folder:
        tests = [LIVE + test for tests in wanted.values() for test in tests]
        ran = await _pytest(program, Path(folder), *tests, *_not_older(tests))
        if not all(ran.values()):
            ran |= await _pytest(program, Path(folder), "--last-failed", LIVE)
    found = {name: passed_and_failed(ran, topic) for name, topic in wanted.items()} | lacking
    return {name: found[name] for name in topics}


def passed_and_failed(ran: Mapping[str, bool], tests: Sequence[str]) -> Heart:
    """Return the part of the tests that ran that belongs to a topic."""
    own = {
        name: has_passed
        for name, has_passed in ran.items()
        if any(re.split(r"[\[]", name)[0] == test or name.startswith(f"{test}::") for test in tests)
    }
    if not own:
        raise OSError(f"none of these tests ran: {', '.join(tests)}")
    failed = tuple(sorted(name for name, has_passed in own.items() if not has_passed))
    return Heart(len(own) - len(failed), failed)


def _not_older(tests: Sequence[str]) -> list[str]:
    """Leave out what runs on the floor, whatever CLI is named."""
    return [f"--deselect={test}[older" for test in tests]


async def _pytest(program: Path, folder: Path, *arguments: str) -> dict[str, bool]:
    """Return which tests have passed with this CLI. Raises `OSError` if pytest itself fails."""
    report = folder / "report.xml"
    quiet = ("-q", "-o", f"cache_dir={folder / 'cache'}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", *quiet, f"--junitxml={report}", *arguments),
        cwd=ROOT,
        # With CI set, a test that cannot find its CLI fails instead of being skipped.
        env={**os.environ, "CI": "1", LIVE_CLI: str(program)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            told, _ = await process.communicate()
    finally:
        # Its workers too, if it did not end by itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode not in (0, 1):
        raise OSError(f"pytest ended with status {process.returncode}: {told[-500:].decode()}")
    return _results_in(ET.parse(report).getroot())


def _results_in(report: ET.Element) -> dict[str, bool]:
    """Return whether each test of a report has passed, by its name below `tests/live`."""
    return {
        f"{case.attrib['classname'].rpartition('.')[2]}.py::{case.attrib['name']}": not any(
            outcome.tag in ("failure", "error", "skipped") for outcome in case
        )
        for case in report.iter("testcase")
    }
