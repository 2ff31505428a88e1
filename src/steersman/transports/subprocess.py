"""A CLI on this machine, as a child process.

`SubprocessTransport.open` lets the supervisor start the CLI behind a guard. From then on a pump
moves bytes between its pipes and the receiver, in the caller's event loop. Knows pipes and errno,
but not framing, the stop sequence or signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from steersman.errors import (
    CliNotExecutable,
    CliNotFound,
    LaunchError,
    UsageError,
    WorkingDirectoryMissing,
)
from steersman.ports import FileArgument, Launch, Receiver
from steersman.transports import kernel
from steersman.transports.guarded_process import GuardedProcess
from steersman.transports.guards import SpawnRequest
from steersman.transports.leftovers import new_private_path
from steersman.transports.pipes import PipeEnd, pipe
from steersman.transports.supervisor import Supervisor

SMALL_READ = 64 * 1024
LARGE_READ = 256 * 1024
"""Only inside a long line: the system allocates a buffer of this size anew, page by page."""
NEWLINE = ord("\n")
STDOUT_SIZE = 256 * 1024
"""Size of the pipe, where it can be set. A larger one would exhaust the user's limit on Linux."""
DRAIN_PATIENCE = 1.0
"""Seconds that the pipes may stay open after the tree has ended: other processes may hold them."""
BUFFERS_PER_WRITE = 64
KILL_PATIENCE = 10.0
"""Seconds to wait for the end of a start that was cancelled. SIGKILL needs far less."""

HINTS = {
    "guard": "check SubprocessTransport(python=...) and the limits on processes",
    "files": "check the temporary directory (TMPDIR)",
    "fork": "raise the limit on processes (ulimit -u, or pids.max of the container), or end some",
    "user": "run this program as root, or leave user= out",
}


@dataclass(frozen=True, slots=True)
class SubprocessTransport:
    """Runs the CLI as a child process. Its whole process tree ends with the CLI or this process."""

    python: str = sys.executable
    """The interpreter that runs the guard. Set it where `sys.executable` is not Python."""

    files_in: str | None = None
    """Directory for private files while the CLI runs; None for the system's temporary one."""

    def __post_init__(self) -> None:
        if not (isinstance(self.python, str) and self.python):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("python", self.python, "the path of a Python interpreter")

    async def open(self, launch: Launch, receiver: Receiver) -> SubprocessChannel:
        loop = asyncio.get_running_loop()
        directory = _private_path(self.files_in) if launch.files else None
        argv = resolve(launch, directory)
        user = user_ids(launch.user)
        observer = _LoopObserver(loop, argv[0], launch.cwd)
        try:
            (stdin, ours), (out, stdout), (err, stderr) = pipe(), pipe(), pipe()
            supervisor = Supervisor.current()
        except (OSError, RuntimeError) as error:
            raise launch_error("guard", error, argv[0], launch.cwd) from error
        kernel.enlarge_pipe(out.number, STDOUT_SIZE)
        ends = (stdin, stdout, stderr)
        request = SpawnRequest(
            argv, launch.env, launch.cwd, directory, launch.files, ends, self.python, user
        )
        process = supervisor.spawn(request, observer)
        try:
            pid = await observer.start
        except BaseException:
            process.kill()
            for end in (ours, out, err):
                end.close()
            await asyncio.wait([observer.end], timeout=KILL_PATIENCE)
            raise
        pump = _Pump(loop, receiver, ours, out, err)
        observer.on_exit(pump.process_exited)
        return SubprocessChannel(pump, process, pid, observer.expect_suspension)


class SubprocessChannel:
    """The channel to one child process. Kills its tree when it is garbage collected."""

    def __init__(
        self,
        pump: _Pump,
        process: GuardedProcess,
        pid: int,
        expect_suspension: Callable[[], asyncio.Future[None]],
    ) -> None:
        self._pump = pump
        self._expect_suspension = expect_suspension
        self._suspension: asyncio.Future[None] | None = None
        self.write = pump.write
        self._process = process
        self._pid = pid
        self._is_suspended = False
        # Weak: the process leads to the receiver, and the receiver usually to this channel. While
        # the CLI runs, the supervisor holds the process.
        # At interpreter exit the supervisor kills all CLIs, after the program's exit handlers.
        weakref.finalize(self, _kill, weakref.ref(process)).atexit = False

    @property
    def pid(self) -> int:
        return self._pid

    def end_input(self) -> None:
        self._pump.end_input()

    def suspend(self) -> None:
        self._is_suspended = True
        self._suspension = self._expect_suspension()
        self._process.suspend()

    async def suspended(self) -> None:
        if self._suspension is not None:
            await asyncio.wait([self._suspension])

    def resume(self) -> None:
        self._is_suspended = False
        self._process.resume()

    def end_after(self, seconds: float) -> None:
        self._process.end_after(seconds)

    def close(self, grace: float) -> None:
        # A suspended tree must not read the end of its input and continue when SIGCONT comes.
        if not self._is_suspended:
            self._pump.end_input()
        self._process.close(grace)

    def kill(self) -> None:
        self._process.kill()


def _kill(found: weakref.ref[GuardedProcess]) -> None:
    process = found()
    if process is not None:
        process.kill()


def resolve(launch: Launch, directory: str | None) -> tuple[str, ...]:
    """Return the command line, with the paths of the launch's files inserted.

    Raises `UsageError` for a file that is missing or whose name is a path.
    """
    for name in launch.files:
        if "/" in name or name in ("", ".", ".."):
            raise UsageError("files", name, "a plain file name")
    return tuple(_argument(part, launch.files, directory) for part in launch.argv)


def user_ids(user: str | None) -> tuple[int, ...]:
    """Return the ids to run as `user`: user, group, supplementary groups. Empty for None."""
    if user is None:
        return ()
    import pwd  # noqa: PLC0415 - rarely needed

    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise UsageError("user", user, "the name of a user of this machine") from None
    groups = os.getgrouplist(user, found.pw_gid)
    return (found.pw_uid, found.pw_gid, *(each for each in groups if each != found.pw_gid))


def launch_error(stage: str, error: Exception, program: str, cwd: str | None) -> LaunchError:
    """Return the error for a start that failed at `stage`."""
    code = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(code) if code else str(error)
    if stage == "cwd":
        return WorkingDirectoryMissing(cwd or "", reason)
    if stage != "exec":
        return LaunchError(f"{program} could not be started: {stage}: {reason}", hint=HINTS[stage])
    if code in (errno.ENOENT, errno.ENOTDIR):
        if "/" in program and Path(cwd or ".", program).exists():
            return CliNotExecutable(program, "its interpreter or loader is missing")
        return CliNotFound((program,))
    if code in (errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ELOOP, errno.EISDIR):
        return CliNotExecutable(program, reason)
    return LaunchError(f"{program} could not be started: {reason}")


class _LoopObserver:
    """Carries the supervisor's notifications into the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, program: str, cwd: str | None) -> None:
        self.start: asyncio.Future[int] = loop.create_future()
        self.end: asyncio.Future[None] = loop.create_future()
        """Done when the CLI has exited, or when nothing is left of a failed start."""
        self._loop = loop
        self._program = program
        self._cwd = cwd
        self._status: int | None = None
        self._on_exit: Callable[[int], None] | None = None
        self._suspensions: deque[asyncio.Future[None]] = deque()
        """One for each report of a stopped tree that the guard owes."""

    def started(self, pid: int) -> None:
        self._post(lambda: self._settle(lambda: self.start.set_result(pid)))

    def failed(self, stage: str, error: Exception) -> None:
        failure = launch_error(stage, error, self._program, self._cwd)
        self._post(lambda: self._note_failure(failure))

    def exited(self, status: int) -> None:
        self._post(lambda: self._note_exit(status))

    def suspended(self) -> None:
        self._post(self._note_suspension)

    def expect_suspension(self) -> asyncio.Future[None]:
        """Return what is done when the guard has reported one more stopped tree, or its end."""
        expected: asyncio.Future[None] = self._loop.create_future()
        self._suspensions.append(expected)
        if self.end.done():
            self._note_suspension()
        return expected

    def _note_suspension(self) -> None:
        if self._suspensions:
            self._suspensions.popleft().set_result(None)

    @property
    def home(self) -> object:
        return self._loop

    def is_lost(self) -> bool:
        return self._loop.is_closed()

    def on_exit(self, callback: Callable[[int], None]) -> None:
        self._on_exit = callback
        if self._status is not None:
            # Not before `open` has returned the channel.
            self._loop.call_soon(callback, self._status)

    def _settle(self, settle: Callable[[], None]) -> None:
        if not self.start.done():
            settle()

    def _note_failure(self, error: LaunchError) -> None:
        self._settle(lambda: self.start.set_exception(error))
        self._note_end()

    def _note_end(self) -> None:
        while self._suspensions:
            self._note_suspension()
        if not self.end.done():
            self.end.set_result(None)

    def _note_exit(self, status: int) -> None:
        self._status = status
        self._note_end()
        callback, self._on_exit = self._on_exit, None
        if callback is not None:
            callback(status)

    def _post(self, job: Callable[[], object]) -> None:
        # A closed loop is reported by `is_lost`.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(job)


class _Pump:
    """Moves bytes between three pipes and a receiver, in the event loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receiver: Receiver,
        stdin: PipeEnd,
        stdout: PipeEnd,
        stderr: PipeEnd,
    ) -> None:
        self._loop = loop
        self._receiver: Receiver | None = receiver
        self._stdin = stdin
        self._queue: deque[memoryview] = deque()
        self._is_ending = False
        self._is_waiting = False
        self._status: int | None = None
        self._sources = [
            _Source(loop, stdout, receiver.data_received, self._finish),
            _Source(loop, stderr, receiver.stderr_received, self._finish),
        ]
        os.set_blocking(stdin.number, False)

    def write(self, data: bytes) -> None:
        number = self._stdin.number
        if self._is_ending or not data or number < 0:
            return
        if self._queue:
            self._queue.append(memoryview(data))
            return
        try:
            written = os.write(number, data)
        except BlockingIOError:
            written = 0
        except OSError:
            # The CLI no longer reads. Its exit is reported separately.
            self._close_stdin()
            return
        if written < len(data):
            self._queue.append(memoryview(data)[written:])
            self._wait_for_room(is_needed=True)

    def end_input(self) -> None:
        self._is_ending = True
        if not self._queue:
            self._close_stdin()

    def process_exited(self, status: int) -> None:
        """Deliver what is left in the pipes after the tree has ended, then report the exit."""
        self._status = status
        self._close_stdin()
        for source in self._sources:
            source.drain()
        if any(source.is_open for source in self._sources):
            self._loop.call_later(DRAIN_PATIENCE, self._give_up)
        self._finish()

    def _flush(self) -> None:
        try:
            chunk = list(itertools.islice(self._queue, BUFFERS_PER_WRITE))
            self._drop_written(os.writev(self._stdin.number, chunk))
        except BlockingIOError:
            pass
        except OSError:
            # The CLI no longer reads. Its exit is reported separately.
            self._close_stdin()
            return
        self._wait_for_room(is_needed=bool(self._queue))
        if self._is_ending and not self._queue:
            self._close_stdin()

    def _drop_written(self, written: int) -> None:
        while self._queue and written >= len(self._queue[0]):
            written -= len(self._queue.popleft())
        if written:
            self._queue[0] = self._queue[0][written:]

    def _wait_for_room(self, *, is_needed: bool) -> None:
        if is_needed == self._is_waiting or self._loop.is_closed():
            return
        self._is_waiting = is_needed
        if is_needed:
            self._loop.add_writer(self._stdin.number, self._flush)
        else:
            self._loop.remove_writer(self._stdin.number)

    def _close_stdin(self) -> None:
        self._is_ending = True
        self._queue.clear()
        if self._stdin.is_open:
            self._wait_for_room(is_needed=False)
            self._stdin.close()

    def _give_up(self) -> None:
        for source in self._sources:
            source.close()
        self._finish()

    def _finish(self) -> None:
        if self._status is None or any(source.is_open for source in self._sources):
            return
        status, self._status = self._status, None
        # Freed with its last user, without the garbage collector: a session holds its journal.
        self._sources.clear()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.exited(status)


class _Source:
    """One pipe that the CLI writes to. Delivers each chunk as it comes."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        end: PipeEnd,
        deliver: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._end = end
        self._deliver = deliver
        self._ended = ended
        self._size = SMALL_READ
        os.set_blocking(end.number, False)
        loop.add_reader(end.number, self._read)

    @property
    def is_open(self) -> bool:
        return self._end.is_open

    def drain(self) -> None:
        while self.is_open and self._read():
            pass

    def close(self) -> None:
        if self.is_open:
            self._loop.remove_reader(self._end.number)
            self._end.close()

    def _read(self) -> bool:
        try:
            data = os.read(self._end.number, self._size)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            self._ended()
            return False
        is_long = len(data) == self._size and NEWLINE not in data
        self._size = LARGE_READ if is_long else SMALL_READ
        self._deliver(data)
        return True


def _argument(part: str | FileArgument, files: Mapping[str, bytes], directory: str | None) -> str:
    if isinstance(part, str):
        return part
    if part.name not in files:
        raise UsageError("argv", part, f"one of the launch's files: {', '.join(files) or 'none'}")
    return f"{part.prefix}{directory}/{part.name}"


def _private_path(place: str | None) -> str:
    import tempfile  # noqa: PLC0415 - slow to import, and not every launch has files

    return new_private_path(place or tempfile.gettempdir())
