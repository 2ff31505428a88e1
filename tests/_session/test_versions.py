"""Asking a program for its version: bounded, remembered, and never the reason of a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman._launch.plan import LaunchPlan, plan
from steersman._session.programs import LONGEST_ANSWER, PATIENCE, CliVersions
from steersman.errors import LaunchError
from steersman.options import Options
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.faults import VirtualClockLoop
from steersman.transports.memory import MemoryTransport, Wire


class Program:
    """A program that writes, and exits when its input ends, unless it stays."""

    def __init__(self, *writes: bytes, stays: bool = False) -> None:
        self.launches: list[Launch] = []
        self.was_killed = False
        self._writes = writes
        self._stays = stays

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        return await MemoryTransport(self).open(launch, receiver)

    def connected(self, launch: Launch, wire: Wire) -> None:
        self.launches.append(launch)
        self._wire = wire
        for each in self._writes:
            wire.write(each)

    def data_received(self, data: bytes) -> None:
        raise AssertionError(data)

    def input_ended(self) -> None:
        if not self._stays:
            self._wire.exit(0)

    def killed(self) -> None:
        self.was_killed = True


class Refusing:
    """A place where no program can be started."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        raise LaunchError("no such program")


def plan_for(program: object) -> LaunchPlan:
    return plan(Options(), program=str(program), host_env={}, new_session_id="x")


def in_virtual_time(act: Callable[[], object]) -> tuple[object, float]:
    async def timed() -> tuple[object, float]:
        clock = asyncio.get_running_loop().time
        began = clock()
        return await act(), clock() - began  # type: ignore[misc]

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(timed())


@pytest.mark.parametrize(
    ("writes", "version"),
    [
        ([b"2.1.77 (Claude Code)\n"], "2.1.77"),
        ([b"2.1", b".77"], "2.1.77"),
        ([b"Claude Code\n"], ""),
        ([b"x" * LONGEST_ANSWER, b"2.1.77"], ""),
        ([], ""),
    ],
)
async def test_the_version_is_what_the_program_prints(writes: list[bytes], version: str) -> None:
    program, wanted = Program(*writes), plan_for("claude")

    assert await CliVersions().of(wanted, program) == version
    (asked,) = program.launches
    assert asked == Launch(
        ("claude", "--version"), wanted.launch.env, wanted.launch.cwd, wanted.launch.user
    )


async def test_a_program_of_this_machine_is_asked_once_until_it_changes(tmp_path: Path) -> None:
    path, program, versions = tmp_path / "claude", Program(b"2.1.77\n"), CliVersions()
    path.write_bytes(b"one")
    first = [await versions.of(plan_for(path), program) for _ in range(2)]
    path.write_bytes(b"another")

    again = await versions.of(plan_for(path), program)

    assert ([*first, again], len(program.launches)) == (["2.1.77"] * 3, 2)


async def test_a_program_of_another_machine_is_asked_each_time() -> None:
    program, versions = Program(b"2.1.77\n"), CliVersions()

    for _ in range(2):
        assert await versions.of(plan_for("/far/away/claude"), program) == "2.1.77"

    assert len(program.launches) == 2


def test_a_program_that_does_not_exit_is_killed_after_a_while() -> None:
    program = Program(b"2.1.77\n", stays=True)

    found, took = in_virtual_time(lambda: CliVersions().of(plan_for("claude"), program))

    assert (found, took, program.was_killed) == ("", PATIENCE, True)


async def test_a_program_that_cannot_be_started_has_no_version() -> None:
    assert await CliVersions().of(plan_for("claude"), Refusing()) == ""
