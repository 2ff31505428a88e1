"""The contract of `Transport`, `Channel` and `Receiver`, as tests for any transport.

A contract describes a small program as a tuple of steps and asks the adapter's `Prepare` function
for a transport and a launch that run it. `shell_launch` is that launch for every transport that
runs processes. Knows the ports and no adapter.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from steersman.errors import LaunchError
from steersman.ports import Channel, Launch, Transport

__all__ = [
    "TRANSPORT_CONTRACTS",
    "CannotRun",
    "Exit",
    "Hang",
    "Missing",
    "Prepare",
    "Program",
    "Read",
    "ReadToEnd",
    "RecordingReceiver",
    "Spawn",
    "Step",
    "TransportContract",
    "Write",
    "shell_launch",
]

LIMIT = 20.0
"""Seconds that any wait of a contract may last."""
SHORT = 0.05
"""Grace period in seconds, for programs that do not use it."""

STATUS = 7
"""An exit status that no shell and no signal produces."""

# Valid lines of the CLI's protocol, because a replay matches lines by their content.
ONE = b'{"type":"user","message":{"role":"user","content":"one"},"uuid":"u1"}\n'
TWO = b'{"type":"user","message":{"role":"user","content":"two"},"uuid":"u2"}\n'
READY = b'{"type":"system","subtype":"ready"}\n'
DONE = b'{"type":"system","subtype":"done"}\n'


@dataclass(frozen=True, slots=True)
class Write:
    """Write `out` to stdout, then `err` to stderr. Both hold whole lines."""

    out: bytes = b""
    err: bytes = b""


@dataclass(frozen=True, slots=True)
class Read:
    """Wait for one line on stdin. Exit with status 91 if it is another line."""

    line: bytes


@dataclass(frozen=True, slots=True)
class ReadToEnd:
    """Wait for the end of stdin. Exit with status 92 if more input comes before it."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a process that runs for an hour, and write its pid to stdout, as a line."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Neither read nor exit, and ignore SIGTERM."""


@dataclass(frozen=True, slots=True)
class Exit:
    """Exit with `status`."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class Missing:
    """The program does not exist. Always the only step."""


Step = Write | Read | ReadToEnd | Spawn | Hang | Exit | Missing
Program = tuple[Step, ...]
"""The last step is `Exit`, `Hang` or `Missing`."""


class CannotRun(Exception):
    """Raised by a `Prepare` function for a program that its transport cannot run.

    The contract does not apply to that transport; a test should be skipped.
    """


Prepare = Callable[[Program], tuple[Transport, Launch]]
"""Returns a transport, and a launch with which it runs the program. May raise `CannotRun`."""

TransportContract = Callable[[Prepare], Awaitable[None]]


def shell_launch(program: Program) -> Launch:
    """Return a launch that runs `program` as a script of `/bin/sh`."""
    if program == (Missing(),):
        return Launch(("/no/such/program",))
    script = "\n".join(_shell_line(step) for step in program)
    return Launch(("/bin/sh", "-c", script), env={"PATH": os.environ["PATH"]})


def _shell_line(step: Step) -> str:
    match step:
        case Write(out, err):
            return f"{_print(out)}; {_print(err)} >&2"
        case Read(line):
            wanted = shlex.quote(line.decode().removesuffix("\n"))
            return f'IFS= read -r line; [ "$line" = {wanted} ] || exit 91'
        case ReadToEnd():
            return 'rest=$(cat); [ -z "$rest" ] || exit 92'
        case Spawn():
            return "sleep 3600 >/dev/null 2>&1 & echo $!"
        case Hang():
            return "trap '' TERM; while :; do sleep 3600; done"
        case Exit(status):
            return f"exit {status}"
        case Missing():
            raise ValueError("a program that is missing has no other steps")


def _print(text: bytes) -> str:
    return f"printf %s {shlex.quote(text.decode())}"


class RecordingReceiver:
    """Keeps what a channel delivers, and every call that breaks the contract of `Receiver`."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.statuses: list[int] = []
        self.violations: list[str] = []
        """What was wrong with calls so far. `exit` fails if there is anything."""
        self._thread = threading.get_ident()
        self._changed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Keep a chunk of stdout."""
        self._check()
        self.out += data

    def stderr_received(self, data: bytes) -> None:
        """Keep a chunk of stderr."""
        self._check()
        self.err += data

    def exited(self, status: int) -> None:
        """Keep the exit status."""
        self._check()
        self.statuses.append(status)

    @property
    def received(self) -> tuple[bytes, bytes, list[int]]:
        """All of stdout and stderr, and the exit statuses, so far."""
        return bytes(self.out), bytes(self.err), self.statuses

    async def line(self, seconds: float = LIMIT) -> str:
        """Return the first line of stdout without its newline, once it is complete."""
        await self._wait_until(lambda: b"\n" in self.out, seconds)
        return os.fsdecode(bytes(self.out.partition(b"\n")[0]))

    async def exit(self, seconds: float = LIMIT) -> int:
        """Return the exit status, once it is reported. Fails if a call broke the contract."""
        await self._wait_until(lambda: bool(self.statuses), seconds)
        # A second report, or a chunk that is too late, would come in the next rounds of the loop.
        for _ in range(5):
            await asyncio.sleep(0)
        assert self.violations == []
        return self.statuses[0]

    async def _wait_until(self, is_true: Callable[[], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not is_true():
                self._changed.clear()
                await self._changed.wait()

    def _check(self) -> None:
        # Not an assertion: a receiver must not raise, and the event loop would only log it.
        if self.statuses:
            self.violations.append("called after exited()")
        if threading.get_ident() != self._thread:
            self.violations.append("called in another thread")
        self._changed.set()


async def _open(prepare: Prepare, *steps: Step) -> tuple[Channel, RecordingReceiver]:
    transport, launch = prepare(steps)
    receiver = RecordingReceiver()
    async with asyncio.timeout(LIMIT):
        return await transport.open(launch, receiver), receiver


async def output_arrives_in_order_and_before_the_exit(prepare: Prepare) -> None:
    channel, receiver = await _open(
        prepare, Write(READY, b"a\n"), Write(ONE, b"b\n"), Write(DONE), Exit(STATUS)
    )

    assert await receiver.exit() == STATUS
    assert receiver.received == (READY + ONE + DONE, b"a\nb\n", [STATUS])
    del channel


async def nothing_is_delivered_before_open_returns(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY, b"a\n"), Exit(0))

    assert receiver.received == (b"", b"", [])
    assert await receiver.exit() == 0
    assert receiver.out == READY
    del channel


async def input_arrives_in_order_whatever_its_chunks(prepare: Prepare) -> None:
    channel, receiver = await _open(
        prepare, Read(ONE), Write(READY), Read(TWO), Write(DONE), ReadToEnd(), Exit(0)
    )

    for chunk in (ONE[:7], ONE[7:], TWO):
        channel.write(chunk)
    channel.end_input()

    assert await receiver.exit() == 0
    assert receiver.out == READY + DONE


async def a_conversation_alternates(prepare: Prepare) -> None:
    channel, receiver = await _open(
        prepare, Write(READY), Read(ONE), Write(DONE), ReadToEnd(), Exit(STATUS)
    )

    await receiver.line()
    assert receiver.out == READY
    channel.write(ONE)
    channel.end_input()

    assert await receiver.exit() == STATUS
    assert receiver.out == READY + DONE


async def input_after_its_end_is_dropped(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Read(ONE), ReadToEnd(), Write(DONE), Exit(0))

    channel.write(ONE)
    channel.end_input()
    channel.end_input()
    channel.write(TWO)

    assert await receiver.exit() == 0
    assert receiver.out == DONE


async def every_method_may_be_called_after_the_exit(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Exit(STATUS))
    await receiver.exit()

    channel.write(ONE)
    channel.suspend()
    channel.resume()
    channel.end_input()
    for _ in range(2):
        channel.close(0)
        channel.kill()

    assert await receiver.exit() == STATUS


async def kill_ends_a_program_that_ignores_everything(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    channel.kill()

    assert await receiver.exit() == -signal.SIGKILL


async def kill_ends_the_whole_tree(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Spawn(), Hang())
    spawned = int(await receiver.line())
    assert _is_alive(spawned)

    channel.kill()

    await receiver.exit()
    assert not _is_alive(spawned)


async def the_exit_is_reported_when_the_whole_tree_has_ended(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Spawn(), Exit(STATUS))

    assert await receiver.exit() == STATUS
    assert not _is_alive(int(receiver.out))
    del channel


async def close_ends_the_input_and_lets_the_program_exit(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), ReadToEnd(), Exit(STATUS))
    await receiver.line()

    channel.close(LIMIT)

    assert await receiver.exit() == STATUS


async def close_ends_a_program_that_ignores_the_end_of_its_input(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    channel.close(SHORT)

    await receiver.exit()


async def a_second_close_can_only_shorten_the_wait(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    channel.close(100 * LIMIT)
    channel.close(SHORT)
    channel.close(100 * LIMIT)

    await receiver.exit()


async def many_closes_and_kills_report_one_exit(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    for _ in range(10):
        channel.close(SHORT)
        channel.kill()

    await receiver.exit()


async def a_suspended_program_continues_when_it_is_resumed(prepare: Prepare) -> None:
    channel, receiver = await _open(
        prepare, Write(READY), Read(ONE), Write(DONE), ReadToEnd(), Exit(0)
    )
    await receiver.line()

    channel.suspend()
    channel.write(ONE)
    channel.end_input()
    channel.resume()

    assert await receiver.exit() == 0
    assert receiver.out == READY + DONE


async def a_suspended_program_can_be_killed(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    channel.suspend()
    channel.kill()

    assert await receiver.exit() == -signal.SIGKILL


async def a_suspended_program_can_be_closed(prepare: Prepare) -> None:
    channel, receiver = await _open(prepare, Write(READY), Hang())
    await receiver.line()

    channel.suspend()
    channel.close(SHORT)

    await receiver.exit()


async def a_missing_program_is_a_launch_error(prepare: Prepare) -> None:
    transport, launch = prepare((Missing(),))
    receiver = RecordingReceiver()

    try:
        async with asyncio.timeout(LIMIT):
            await transport.open(launch, receiver)
    except LaunchError:
        assert receiver.received == (b"", b"", [])
    else:
        raise AssertionError("open() returned a channel to a program that does not exist")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


TRANSPORT_CONTRACTS: tuple[TransportContract, ...] = (
    output_arrives_in_order_and_before_the_exit,
    nothing_is_delivered_before_open_returns,
    input_arrives_in_order_whatever_its_chunks,
    a_conversation_alternates,
    input_after_its_end_is_dropped,
    every_method_may_be_called_after_the_exit,
    kill_ends_a_program_that_ignores_everything,
    kill_ends_the_whole_tree,
    the_exit_is_reported_when_the_whole_tree_has_ended,
    close_ends_the_input_and_lets_the_program_exit,
    close_ends_a_program_that_ignores_the_end_of_its_input,
    a_second_close_can_only_shorten_the_wait,
    many_closes_and_kills_report_one_exit,
    a_suspended_program_continues_when_it_is_resumed,
    a_suspended_program_can_be_killed,
    a_suspended_program_can_be_closed,
    a_missing_program_is_a_launch_error,
)
