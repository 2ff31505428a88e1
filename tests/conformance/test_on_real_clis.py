"""Every scene on the stock CLI, those that go otherwise on an older one; and on broken ones.

`make conform CONFORM_ARGS="--cli PATH"` plays every scene on any CLI.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steersman.testing.cli_releases import find_cli
from steersman.testing.older_cli import OLDER_VERSION, find_older_cli
from steersman_conformance import baselines, catalogue, runner
from steersman_conformance.checks import Scene
from steersman_conformance.report import Report
from steersman_conformance.scenes import (
    cancelling,
    control,
    ends,
    failures,
    handshake,
    hooks,
    names,
    permissions,
    queue,
    sessions,
    turns,
)
from steersman_conformance.verdicts import Verdict, judge
from tests.live.test_harness import stock_cli

# Many scenes each: seconds on an idle machine, minutes on a busy one.
pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

GROUPS: dict[str, tuple[Scene[Any], ...]] = {
    module.__name__.rpartition(".")[2]: module.SCENES
    for module in (
        *(cancelling, control, ends, failures, handshake, hooks),
        *(names, permissions, queue, sessions, turns),
    )
}
NEWEST = baselines.nearest("999.0.0")
OLDER = baselines.load(baselines.SHIPPED / f"{OLDER_VERSION}.json")


async def report_on(program: Path, scenes: list[Scene[Any]]) -> Report:
    version = await runner.version_of(str(program))
    baseline = baselines.nearest(version)
    observed = await runner.play(scenes, str(program))
    findings = [
        judge(check, observed[check.name], baseline, version=version)
        for scene in scenes
        for check in scene.checks
    ]
    return Report(str(program), version, baseline.version if baseline else None, 0, findings)


def bad_names(report: Report) -> set[str]:
    bad = (Verdict.BROKEN, Verdict.CHANGED, Verdict.FIXED)
    return {finding.check.name for verdict in bad for finding in report.of(verdict)}


def test_no_scene_is_left_out() -> None:
    assert sum(map(len, GROUPS.values())) == len(catalogue.ALL)


IN_SUITE = "names"
"""The group that `make test` plays. What the others look at, tests/live look at, too."""

ON_NEWEST = [
    pytest.param(group, marks=() if group == IN_SUITE else pytest.mark.ci_only) for group in GROUPS
]


@pytest.mark.parametrize("group", ON_NEWEST)
async def test_all_that_we_depend_on_holds_and_nothing_has_changed(group: str) -> None:
    report = await report_on(stock_cli(), list(GROUPS[group]))

    assert report.is_good, "\n".join(report.lines())
    assert report.baseline == report.version


def goes_otherwise(scene: Scene[Any]) -> bool:
    """Whether the older CLI was seen to do something else there than the newest."""
    assert NEWEST is not None
    names = [check.name for check in scene.checks]
    return any(OLDER.observed[name] != NEWEST.observed[name] for name in names)


DIFFERENT = {
    group: found
    for group, scenes in GROUPS.items()
    if (found := [scene for scene in scenes if goes_otherwise(scene)])
}


def test_scenes_of_most_groups_go_otherwise_on_the_older_cli() -> None:
    assert len(DIFFERENT) >= 7
    assert sum(map(len, DIFFERENT.values())) >= 20


@pytest.mark.ci_only
@pytest.mark.parametrize("group", DIFFERENT)
async def test_what_an_older_cli_does_otherwise_is_known(group: str) -> None:
    report = await report_on(stock_cli(find_older_cli), DIFFERENT[group])

    assert report.is_good, "\n".join(report.lines())
    assert report.baseline == report.version == OLDER_VERSION


@pytest.mark.ci_only
async def test_a_release_with_another_mode_of_its_own_still_asks_once_it_is_given_ours() -> None:
    """2.1.300 starts in `auto`: only the scene that gives no mode goes otherwise."""
    program = stock_cli(partial(find_cli, "2.1.300"))

    report = await report_on(program, list(GROUPS["permissions"]))

    assert {each.check.name for each in report.of(Verdict.CHANGED)} == {
        "a-mode-that-is-not-given-is-default",
        "without-a-mode-writes-are-asked",
    }
    assert report.of(Verdict.BROKEN) == []


async def test_what_the_older_cli_lacks_is_said_to_be_absent_and_handled() -> None:
    found = [
        judge(check, OLDER.observed[check.name], OLDER, version=OLDER_VERSION)
        for scene in catalogue.ALL
        for check in scene.checks
    ]

    absent = {each.check.name for each in found if each.verdict is Verdict.ABSENT}

    assert absent >= {
        "initialize-lists-capabilities",
        "lifecycle-follows-a-prompt",
        "results-name-their-prompts",
        "the-interrupt-receipt-lists-waiting-prompts",
        "on-failure-block-holds-the-tool-back",
        "composed-prompts-run-no-commands",
        "await-initialize-refuses-an-early-prompt",
        "list-models-is-served",
    }


# --- CLIs that were broken on purpose ---------------------------------------------------

FILTER = """\
#!{python} -IS
import json, subprocess, sys

def spoilt(frame):
    {spoil}
    return frame

with subprocess.Popen([{cli!r}, *sys.argv[1:]], stdout=subprocess.PIPE) as cli:
    for line in cli.stdout:
        if line.startswith(b"{{"):
            frame = spoilt(json.loads(line))
            line = json.dumps(frame).encode() + b"\\n" if frame else b""
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
sys.exit(cli.returncode)
"""

SPOILT: dict[str, tuple[str, set[str]]] = {
    "drops command_lifecycle": (
        'if frame["type"] == "command_lifecycle": return None',
        {"lifecycle-follows-a-prompt", "lifecycle-tells-what-was-taken-back"},
    ),
    "drops control_cancel_request": (
        'if frame["type"] == "control_cancel_request": return None',
        {
            "an-open-question-is-cancelled",
            "an-open-hook-is-cancelled",
            "the-loser-of-two-questions-is-cancelled",
        },
    ),
    "answers interrupts without a receipt": (
        'if "still_queued" in str(frame): frame["response"].pop("response")',
        {
            "the-interrupt-receipt-lists-waiting-prompts",
            "an-interrupt-can-take-waiting-prompts-along",
            "an-idle-interrupt-has-a-receipt",
        },
    ),
}

EVERYTHING_ELSE = "two-turns"
"""The scene with most checks: what is not broken is seen there to be whole."""


@pytest.mark.parametrize("how", SPOILT)
async def test_a_broken_feature_is_named_and_nothing_else(tmp_path: Path, how: str) -> None:
    spoil, features = SPOILT[how]
    program = tmp_path / "claude"
    program.write_text(FILTER.format(python=sys.executable, cli=str(stock_cli()), spoil=spoil))
    program.chmod(0o755)
    scenes = [
        scene
        for scene in catalogue.ALL
        if scene.name == EVERYTHING_ELSE or features & {check.name for check in scene.checks}
    ]

    report = await report_on(program, scenes)

    assert bad_names(report) == features
    assert not report.is_good
