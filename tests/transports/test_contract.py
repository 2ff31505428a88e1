"""Every transport fulfils the contract in `steersman.ports`.

A new transport adds a function and a line to `ADAPTERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from steersman.journal.files import EXITED, INPUT_ENDED, STDERR, Header, Record, Track
from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.testing.cassettes import Recorder
from steersman.testing.contracts.transports import (
    TRANSPORT_CONTRACTS,
    CannotRun,
    Exit,
    Hang,
    Missing,
    Prepare,
    Program,
    Read,
    ReadToEnd,
    Spawn,
    Step,
    TransportContract,
    Write,
    every_method_may_be_called_after_the_exit,
    output_arrives_in_order_and_before_the_exit,
    shell_launch,
)
from steersman.testing.faults import FaultyTransport
from steersman.transports.command import CommandTransport
from steersman.transports.memory import MemoryTransport, Wire
from steersman.transports.replay import ReplayTransport
from steersman.transports.subprocess import SubprocessTransport

LAUNCH = Launch(("claude",))

Prepared = tuple[Transport, Launch]


def a_subprocess(program: Program) -> Prepared:
    return SubprocessTransport(), shell_launch(program)


def a_command(program: Program) -> Prepared:
    launch = shell_launch(program)
    return CommandTransport(("env",), program=str(launch.argv[0])), launch


def a_command_through_a_shell(program: Program) -> Prepared:
    launch = shell_launch(program)
    prefix = ("sh", "-c", 'exec "$@"', "sh")
    return CommandTransport(prefix, program=str(launch.argv[0])), launch


def a_local_command(program: Program) -> Prepared:
    # If the program behind a prefix is missing, the prefix starts and then fails.
    prefix = "/no/such/prefix" if program == (Missing(),) else "env"
    return CommandTransport((prefix,), local=True), shell_launch(program)


def faults_that_never_happen(program: Program) -> Prepared:
    return FaultyTransport(SubprocessTransport()), shell_launch(program)


def a_recorder(program: Program) -> Prepared:
    return Recorder("cassette.jsonl", SubprocessTransport()), shell_launch(program)


def a_peer_in_memory(program: Program) -> Prepared:
    if program == (Missing(),) or Spawn() in program:
        raise CannotRun("runs no process")
    return MemoryTransport(StepPeer(program)), LAUNCH


def a_replay(program: Program) -> Prepared:
    if Spawn() in program:
        raise CannotRun("runs no process")
    if program == (Missing(),):
        return ReplayTransport(()), LAUNCH
    return ReplayTransport([track_of(program)], patience=None), LAUNCH


ADAPTERS = [
    a_subprocess,
    a_command,
    a_command_through_a_shell,
    a_local_command,
    faults_that_never_happen,
    a_recorder,
    a_peer_in_memory,
    a_replay,
]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("contract", TRANSPORT_CONTRACTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("prepare", ADAPTERS, ids=lambda each: each.__name__)
async def test_transport_contract(prepare: Prepare, contract: TransportContract) -> None:
    try:
        await contract(prepare)
    except CannotRun as why:
        pytest.skip(str(why))


@dataclass(frozen=True)
class Twice:
    """A transport that reports every chunk and every exit twice."""

    inner: Transport

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        return await self.inner.open(launch, _Doubled(receiver))


@dataclass(frozen=True)
class _Doubled:
    inner: Receiver

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)
        self.inner.data_received(data)

    def stderr_received(self, data: bytes) -> None:
        self.inner.stderr_received(data)

    def exited(self, status: int) -> None:
        self.inner.exited(status)
        self.inner.exited(status)


@pytest.mark.parametrize(
    "contract",
    [output_arrives_in_order_and_before_the_exit, every_method_may_be_called_after_the_exit],
)
async def test_a_transport_that_breaks_the_contract_is_found(contract: TransportContract) -> None:
    def prepare(program: Program) -> Prepared:
        transport, launch = a_peer_in_memory(program)
        return Twice(transport), launch

    with pytest.raises(AssertionError):
        await contract(prepare)


class StepPeer:
    """Runs a program in memory."""

    def __init__(self, program: Program) -> None:
        self._steps = list(program)
        self._input = b""
        self._input_has_ended = False
        self._wire: Wire | None = None

    def connected(self, launch: Launch, wire: Wire) -> None:
        self._wire = wire
        self._run()

    def data_received(self, data: bytes) -> None:
        self._input += data
        self._run()

    def input_ended(self) -> None:
        self._input_has_ended = True
        self._run()

    def killed(self) -> None:
        self._steps.clear()

    def _run(self) -> None:
        while self._steps and self._can_do(self._steps[0]):
            self._do(self._steps.pop(0))

    def _can_do(self, step: Step) -> bool:
        if isinstance(step, Read):
            return b"\n" in self._input
        return self._input_has_ended if isinstance(step, ReadToEnd) else not isinstance(step, Hang)

    def _do(self, step: Step) -> None:
        assert self._wire is not None
        match step:
            case Write(out, err):
                self._wire.write(out)
                self._wire.write_stderr(err)
            case Read(line):
                assert self._input.startswith(line)
                self._input = self._input.removeprefix(line)
            case Exit(status):
                assert not self._input
                self._wire.exit(status)
            case _:
                pass


def track_of(program: Program) -> Track:
    """The recording of a program that was run once."""
    records: list[Record] = []
    for number, step in enumerate(program, start=1):
        at = float(number)
        match step:
            case Write(out, err):
                records += [Record(number, at, "message", line) for line in out.splitlines()]
                records += [Record(number, at, STDERR, err)] if err else []
            case Read(line):
                records.append(Record(number, at, "sent", line.rstrip(b"\n")))
            case ReadToEnd():
                records.append(Record(number, at, INPUT_ENDED))
            case Exit(status):
                records.append(Record(number, at, EXITED, details={"status": status}))
            case _:
                # The recording was cut off: the CLI waits for a line that never comes.
                records.append(Record(number, at, "sent", b'{"type":"never"}'))
    return Track(Header(), tuple(records))
