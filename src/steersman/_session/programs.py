"""What is known of the program of a CLI: its release, and whether it knows `--await-initialize`.

Recent CLIs report their version in the handshake. Others are asked with `--version`, once for each
program.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable

from steersman._launch.plan import (
    AWAIT_INITIALIZE,
    BELOW_MINIMUM,
    MINIMUM_VERSION,
    LaunchPlan,
    without_waiting,
)
from steersman._releases import MEANINGS, Release, ReleaseTable, numbers
from steersman.errors import CliTooOld, Evidence, OptionRefused, SteersmanError, UnsafeCli
from steersman.ports import Launch, Transport

log = logging.getLogger("steersman.session")

Program = tuple[str, int, int]
"""The path, the size and the time of the last change; zeros for a program on another machine."""


class AwaitFlag:
    """Removes `--await-initialize`, with which a resumed CLI waits for our hooks, where needed.

    Older CLIs refuse to start with the flag. They are started once more without it, and their
    program is remembered, so that the next start does not try the flag.
    """

    def __init__(self) -> None:
        self._refused_by: set[Program] = set()

    def adapt(self, plan: LaunchPlan) -> LaunchPlan:
        """Return the plan without the flag if its program is known to refuse it."""
        if not self._refused_by or program_of(plan) not in self._refused_by:
            return plan
        return without_waiting(plan) or plan

    def without_flag(self, plan: LaunchPlan, error: OptionRefused) -> LaunchPlan | None:
        """Return the plan for another start after `error`; None if another option was refused."""
        if f"unknown option '{AWAIT_INITIALIZE}'" not in str(error):
            return None
        self._refused_by.add(program_of(plan))
        return without_waiting(plan)


def program_of(plan: LaunchPlan) -> Program:
    """Return the identity of the program that the plan runs."""
    path = str(plan.launch.argv[0])
    try:
        found = os.stat(path)  # noqa: PTH116 - `pathlib` is slow to load
    except OSError:
        return path, 0, 0
    return path, found.st_size, found.st_mtime_ns


PATIENCE = 20.0
"""Seconds in which the CLI must print its version."""
REAPING = 10.0
LONGEST_ANSWER = 4096


class CliVersions:
    """Asks programs for their version, and remembers the answer until the program changes."""

    def __init__(self) -> None:
        self._known: dict[Program, str] = {}

    async def of(self, plan: LaunchPlan, transport: Transport) -> str:
        """Return the version of the plan's program; empty if it does not report one."""
        program = program_of(plan)
        found = self._known.get(program) or await _ask(plan.launch, transport)
        if found and program[1]:
            # A program on another machine has no size, and can change without being noticed.
            self._known[program] = found
        return found


def refuse_old(found: str, *, allow: bool, evidence: Callable[[], Evidence]) -> None:
    """Raise `CliTooOld` for a version that is not supported; if it is allowed, log a warning."""
    if not found or numbers(found) >= numbers(MINIMUM_VERSION):
        return
    if not allow:
        raise CliTooOld(found, MINIMUM_VERSION, evidence=evidence())
    log.warning(
        "this Claude Code CLI is version %s; steersman supports %s or newer. With older ones: %s",
        found,
        MINIMUM_VERSION,
        "; ".join(BELOW_MINIMUM),
    )


def refuse_unsafe(
    found: str, table: ReleaseTable, *, allow: bool, evidence: Callable[[], Evidence]
) -> None:
    """Raise `UnsafeCli` for a release whose guards are broken; if it is allowed, log a warning."""
    broken = table.find(found).broken
    if not broken:
        return
    if not allow:
        raise UnsafeCli(found, broken, table.good(), evidence=evidence())
    log.warning("guards do not hold on this Claude Code CLI, version %s: %s", found, broken)


def report(release: Release, table: ReleaseTable) -> None:
    """Log what does not hold on a release, and that it is newer than those that were tested."""
    if release.is_newer:
        log.warning(
            "this Claude Code CLI is version %s; the newest that steersman was tested with is %s."
            " What it reports is compared with what it was given; `steersman conform` tries the"
            " rest",
            release.version,
            table.newest,
        )
    if release.lacks and numbers(release.version) >= numbers(table.floor):
        log.warning(
            "on this Claude Code CLI, version %s, these do not hold: %s",
            release.version,
            "; ".join(MEANINGS.get(each, each) for each in release.lacks),
        )


async def _ask(launch: Launch, transport: Transport) -> str:
    answer = _Answer()
    asking = Launch((launch.argv[0], "--version"), launch.env, launch.cwd, launch.user)
    try:
        async with asyncio.timeout(PATIENCE):
            channel = await transport.open(asking, answer)
            try:
                channel.end_input()
                await asyncio.shield(answer.exit)
            finally:
                channel.kill()
                await asyncio.wait([answer.exit], timeout=REAPING)
    except (TimeoutError, SteersmanError):
        # The CLI itself has started, or its own error is raised: the version is secondary.
        return ""
    found = re.search(rb"\d+\.\d+\.\d+", answer.output)
    return "" if found is None else found[0].decode()


class _Answer:
    """Receives what a CLI prints."""

    def __init__(self) -> None:
        self.output = b""
        self.exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.output = (self.output + data)[:LONGEST_ANSWER]

    def stderr_received(self, data: bytes) -> None:
        """Ignore stderr."""

    def exited(self, status: int) -> None:
        if not self.exit.done():
            self.exit.set_result(status)
