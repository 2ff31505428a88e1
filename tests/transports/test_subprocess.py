from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import os
import pwd
import random
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from steersman.errors import (
    CliNotExecutable,
    CliNotFound,
    LaunchError,
    UsageError,
    WorkingDirectoryMissing,
)
from steersman.ports import FileArgument, Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports import kernel
from steersman.transports.guarded_process import GuardedProcess
from steersman.transports.guards import Guards, GuardServer, SpawnRequest
from steersman.transports.kernel import below, children_of, row_of
from steersman.transports.leftovers import TREE
from steersman.transports.pipes import PipeEnd, pipe
from steersman.transports.subprocess import (
    SubprocessChannel,
    SubprocessTransport,
    launch_error,
    resolve,
)

ENV = {"PATH": os.environ["PATH"]}
IS_LINUX = kernel.IS_LINUX
HAS_SERVER = kernel.can_watch()
NEEDS_SERVER = pytest.mark.skipif(not HAS_SERVER, reason="guards are programs of their own here")


async def eventually(is_true: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.005)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def is_alive(pid: int) -> bool:
    """Return whether a process runs. Without subreapers, init waits for orphans when it likes."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


def python(code: str, *arguments: str | FileArgument) -> Launch:
    return Launch((sys.executable, "-I", "-S", "-c", code, *arguments), env=ENV)


HUNDRED_INTERVALS = 0.2
"""Seconds: a child that counts every two milliseconds would count a hundred times."""


def shell(code: str, *arguments: str | FileArgument) -> Launch:
    return Launch(("/bin/sh", "-c", code, "sh", *arguments), env=ENV)


async def start(launch: Launch) -> tuple[SubprocessChannel, RecordingReceiver]:
    receiver = RecordingReceiver()
    return await SubprocessTransport().open(launch, receiver), receiver


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """No test leaves a guard behind."""
    yield
    gc.collect()
    await eventually(lambda: not guards())


def guards() -> list[int]:
    """Return the guards of this process: children of it or of its guard servers."""
    found = [pid for pid in children_of(os.getpid()) if b"guard.py" in command_line(pid)]
    alone = [pid for pid in found if b"guard_server.py" not in command_line(pid)]
    return alone + [pid for server in servers() for pid in children_of(server)]


def servers() -> list[int]:
    """Return the guard servers of this process."""
    return [pid for pid in children_of(os.getpid()) if b"guard_server.py" in command_line(pid)]


def command_line(pid: int | str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def command_lines() -> list[bytes]:
    return [command_line(place.name) for place in Path("/proc").glob("[0-9]*")]


# --- output and input ----------------------------------------------------------------------------


async def test_64_megabytes_survive_the_way_there_and_back() -> None:
    data = os.urandom(1024 * 1024) * 64
    channel, receiver = await start(shell("cat"))

    channel.write(data)
    channel.end_input()

    await receiver.exit(60)
    assert hashlib.sha256(receiver.out).digest() == hashlib.sha256(data).digest()


async def test_many_small_writes_to_a_slow_reader_keep_their_order() -> None:
    lines = [b"%07d\n" % number for number in range(50_000)]
    channel, receiver = await start(shell("read start; echo go; cat"))

    for line in [b"start\n", *lines]:
        channel.write(line)
    channel.end_input()

    await receiver.exit(30)
    assert bytes(receiver.out) == b"go\n" + b"".join(lines)


async def test_writing_to_a_cli_that_does_not_read_is_no_error() -> None:
    channel, receiver = await start(shell("exec <&-; echo ready; sleep 60"))
    await receiver.line()

    channel.write(b"x" * 1_000_000)
    channel.write(b"y")
    channel.kill()

    assert await receiver.exit() == -signal.SIGKILL


async def test_all_output_arrives_before_the_exit() -> None:
    channel, receiver = await start(
        python("import os; os.write(1, b'x' * 60000); os.write(2, b'y' * 60000)")
    )

    await receiver.exit()
    assert (len(receiver.out), len(receiver.err)) == (60000, 60000)
    assert channel.pid > 0


async def test_the_pid_is_the_clis_own() -> None:
    channel, receiver = await start(shell("echo $$; cat"))

    assert int(await receiver.line()) == channel.pid
    channel.end_input()
    await receiver.exit()


# --- environment ---------------------------------------------------------------------------


async def test_the_environment_is_the_launchs_and_the_name_of_the_tree() -> None:
    env = {"A": "1\n2", "LC_CTYPE": "C", "EMPTY": "", "E": "ünï\udcff", "HOME": "/nowhere"}

    _, receiver = await start(Launch(("/usr/bin/env", "-0"), env=env))

    await receiver.exit()
    found = dict(entry.split(b"=", 1) for entry in bytes(receiver.out).split(b"\0") if entry)
    assert found.pop(TREE.encode()).startswith(b"%d-" % os.getpid())
    assert found == {os.fsencode(name): os.fsencode(value) for name, value in env.items()}


async def test_the_arguments_arrive_unchanged() -> None:
    arguments = ("", "two words", "a\nb", "ü\udcff", "--", "-c", "$HOME")
    _, receiver = await start(
        shell('for word in "$@"; do printf "%s\\0" "$word"; done', *arguments)
    )

    await receiver.exit()
    assert bytes(receiver.out) == b"".join(os.fsencode(each) + b"\0" for each in arguments)


async def test_it_runs_in_the_working_directory_of_the_launch(tmp_path: Path) -> None:
    _, receiver = await start(Launch(("/bin/pwd",), env=ENV, cwd=str(tmp_path)))

    await receiver.exit()
    assert Path(receiver.out.decode().strip()) == tmp_path


async def test_a_bare_name_is_found_in_the_path_of_the_launch(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    _, receiver = await start(Launch(("mine",), env={"PATH": str(tmp_path)}))

    await receiver.exit()
    assert bytes(receiver.out) == b"mine\n"


@pytest.mark.skipif(not IS_LINUX, reason="/proc")
async def test_it_gets_only_the_three_pipes_and_no_strange_signals() -> None:
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)  # noqa: FBT003
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        # Keep both channels: a channel without references is killed.
        one, files = await start(shell("ls /proc/$$/fd; exit"))
        two, masks = await start(Launch(("grep", "^Sig", "/proc/self/status"), env=ENV))
        await asyncio.gather(files.exit(), masks.exit())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(leaked)
        del one, two

    kept = dict(line.split(":\t") for line in masks.out.decode().splitlines())
    assert files.out.split() == [b"0", b"1", b"2"]
    assert int(kept["SigBlk"], 16) == 0
    # Signals 32 and 33 belong to the C library, whose posix_spawn leaves them ignored.
    assert int(kept["SigIgn"], 16) & ~(0b11 << 31) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
async def test_it_can_run_as_another_user_who_alone_can_read_the_files() -> None:
    launch = replace(
        shell('id -u; stat -c "%u %a" "$1" "$(dirname "$1")"', FileArgument("", "secret")),
        files={"secret": b"x"},
        user="nobody",
    )

    channel, receiver = await start(launch)
    await receiver.exit()

    number = pwd.getpwnam("nobody").pw_uid
    assert receiver.out.decode().split("\n")[:3] == [str(number), f"{number} 600", f"{number} 700"]
    del channel


async def test_an_unknown_user_is_refused() -> None:
    with pytest.raises(UsageError, match="user: got 'no-such-user'"):
        await start(replace(shell("true"), user="no-such-user"))


# --- failing to start -----------------------------------------------------------------------------


async def test_a_program_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(CliNotFound) as caught:
        await start(Launch(("/no/such/claude",)))
    assert caught.value.looked_in == ("/no/such/claude",)

    with pytest.raises(CliNotFound) as caught:
        await start(Launch(("no-such-claude",), env=ENV))
    assert caught.value.looked_in == ("no-such-claude",)


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        pytest.param(b"#!/bin/sh\n", 0o644, id="mode"),
        pytest.param(b"#!/no/such/interpreter\n", 0o755, id="interpreter"),
        pytest.param(b"plain text", 0o755, id="format"),
    ],
)
async def test_a_file_that_cannot_run_is_not_executable(
    tmp_path: Path, content: bytes, mode: int
) -> None:
    program = tmp_path / "claude"
    program.write_bytes(content)
    program.chmod(mode)

    with pytest.raises(CliNotExecutable) as caught:
        await start(Launch((str(program),)))

    assert caught.value.path == str(program)


async def test_a_directory_is_not_executable(tmp_path: Path) -> None:
    with pytest.raises(CliNotExecutable):
        await start(Launch((str(tmp_path),)))


@pytest.mark.parametrize("name", ["missing", "file"])
async def test_a_working_directory_that_cannot_be_entered_is_missing(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WorkingDirectoryMissing) as caught:
        await start(Launch(("/bin/cat",), cwd=str(tmp_path / name)))

    assert caught.value.path == str(tmp_path / name)


async def test_a_command_line_that_is_too_long_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="too long"):
        await start(Launch(("/bin/echo", *["x" * 100_000] * 100)))


async def test_a_null_byte_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="null"):
        await start(Launch(("/bin/echo", "a\0b")))


async def test_a_missing_interpreter_for_the_guard_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="guard") as caught:
        await SubprocessTransport(python="/no/python").open(
            Launch(("/bin/cat",)), RecordingReceiver()
        )

    assert "python=" in caught.value.hint


async def test_an_interpreter_that_is_none_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="guard"):
        await SubprocessTransport(python="/bin/false").open(
            Launch(("/bin/cat",)), RecordingReceiver()
        )


NO_FORK = """#!{python}
import os, sys
code = sys.argv[sys.argv.index("-c") + 1]
before = '''
import errno, os
def fork(): raise BlockingIOError(errno.EAGAIN, "no more processes")
os.fork = fork
'''
sys.argv[sys.argv.index("-c") + 1] = before + code
os.execv("{python}", ["{python}", *sys.argv[1:]])
"""
"""An interpreter that cannot fork, as where a user or a container has reached its limit."""


async def test_a_guard_that_cannot_fork_is_a_launch_error_at_once(tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(NO_FORK.format(python=sys.executable))
    interpreter.chmod(0o755)
    transport = SubprocessTransport(python=str(interpreter))

    with pytest.raises(LaunchError, match=os.strerror(errno.EAGAIN)) as caught:
        async with asyncio.timeout(5):
            await transport.open(Launch(("/bin/cat",)), RecordingReceiver())

    assert "limit on processes" in caught.value.hint


async def test_a_failed_start_leaves_nothing_behind(tmp_path: Path) -> None:
    receiver = RecordingReceiver()

    with pytest.raises(CliNotFound):
        await SubprocessTransport(files_in=str(tmp_path)).open(
            Launch(("/no/such/claude", FileArgument("", "f")), files={"f": b"secret"}), receiver
        )

    await eventually(lambda: not any(tmp_path.iterdir()), 0.1)
    # A forked guard reports the end, and then ends itself.
    await eventually(lambda: not guards())
    assert not receiver.statuses


def test_errors_of_the_start_have_their_own_classes() -> None:
    def name(stage: str, code: int) -> str:
        return type(launch_error(stage, OSError(code, ""), "/x/claude", None)).__name__

    assert name("exec", errno.ENOENT) == "CliNotFound"
    assert name("exec", errno.EACCES) == "CliNotExecutable"
    assert name("exec", errno.ENOEXEC) == "CliNotExecutable"
    assert name("exec", errno.ENOMEM) == "LaunchError"
    assert name("cwd", errno.ENOENT) == "WorkingDirectoryMissing"
    assert name("files", errno.ENOSPC) == "LaunchError"


async def test_a_place_for_files_that_is_missing_is_a_launch_error() -> None:
    with pytest.raises(LaunchError):
        await SubprocessTransport(files_in="/no/where").open(
            Launch(("/bin/cat",), files={"f": b""}), RecordingReceiver()
        )


# --- private files --------------------------------------------------------------------------------


def is_there(path: Path) -> bool:
    return path.exists()


async def test_files_are_private_while_it_runs_and_removed_when_it_ends() -> None:
    launch = shell(
        'echo "$1"; cat "${1#--settings=}"; cat', FileArgument("--settings=", "settings.json")
    )
    content = bytes(range(256)) * 5000
    channel, receiver = await start(
        Launch(launch.argv, env=ENV, files={"settings.json": content, "other": b""})
    )
    path = Path((await receiver.line()).removeprefix("--settings="))

    assert [place.stat().st_mode & 0o777 for place in (path.parent, path)] == [0o700, 0o600]
    assert {place.name for place in path.parent.iterdir()} == {"settings.json", "other"}
    channel.end_input()
    assert await receiver.exit() == 0
    assert not path.parent.exists()
    assert bytes(receiver.out).split(b"\n", 1)[1] == content


@pytest.mark.parametrize("end", [SubprocessChannel.kill, lambda channel: channel.close(0.01)])
async def test_files_are_removed_after_a_kill(end: Callable[[SubprocessChannel], None]) -> None:
    launch = shell("trap '' TERM; echo $1; while :; do sleep 60; done", FileArgument("", "f"))
    channel, receiver = await start(Launch(launch.argv, env=ENV, files={"f": b"x"}))
    path = Path(await receiver.line())
    assert is_there(path)

    end(channel)

    await receiver.exit()
    assert not path.parent.exists()


def test_file_arguments_become_paths() -> None:
    launch = Launch(("claude", FileArgument("--settings=", "s.json")), files={"s.json": b""})

    assert resolve(launch, "/tmp/d") == ("claude", "--settings=/tmp/d/s.json")


def test_an_argument_for_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="other"):
        resolve(Launch(("claude", FileArgument("", "f")), files={"other": b""}), "/tmp/d")


@pytest.mark.parametrize("name", ["../up", "/abs", "", "."])
def test_a_file_name_may_not_lead_elsewhere(name: str) -> None:
    with pytest.raises(UsageError):
        resolve(Launch(("claude",), files={name: b""}), "/tmp/d")


@pytest.mark.skipif(not IS_LINUX, reason="/proc")
async def test_no_secret_is_on_any_command_line() -> None:
    secret = "s3cr3t-" + os.urandom(8).hex()
    launch = shell("echo; cat", FileArgument("", "f"))
    channel, receiver = await start(
        Launch(launch.argv, env={**ENV, "KEY": secret}, files={"f": secret.encode()})
    )
    await receiver.line()

    assert not any(secret.encode() in line for line in command_lines())
    channel.kill()
    await receiver.exit()


# --- ending ---------------------------------------------------------------------------------------


async def test_a_cli_that_ends_with_its_input_is_not_signalled() -> None:
    channel, receiver = await start(shell("trap 'echo term' TERM; cat; exit 5"))

    channel.close(10)

    assert await receiver.exit() == 5
    assert bytes(receiver.out) == b""


async def test_a_cli_that_ignores_the_end_of_its_input_is_terminated() -> None:
    channel, receiver = await start(
        shell("trap 'echo term; exit 143' TERM; echo; while :; do sleep 0.01; done")
    )
    await receiver.line()

    channel.close(0.1)

    assert await receiver.exit() == 143
    assert bytes(receiver.out) == b"\nterm\n"


async def test_a_cli_that_ignores_sigterm_is_killed() -> None:
    channel, receiver = await start(shell("trap '' TERM; echo; while :; do sleep 0.01; done"))
    await receiver.line()

    channel.close(0.1)

    assert await receiver.exit() == -signal.SIGKILL


async def test_close_and_kill_from_many_places_end_it_once() -> None:
    channel, receiver = await start(shell("trap '' TERM; echo; while :; do sleep 0.01; done"))
    await receiver.line()

    def end() -> None:
        channel.close(random.random())
        channel.kill()

    for _ in range(20):
        end()
    await asyncio.gather(*(asyncio.to_thread(channel.kill) for _ in range(20)))

    assert await receiver.exit() == -signal.SIGKILL


async def test_unread_input_does_not_delay_the_end() -> None:
    channel, receiver = await start(shell("echo; exec sleep 60"))
    await receiver.line()
    channel.write(b"x" * 1_000_000)

    channel.close(0.05)

    assert await receiver.exit() == -signal.SIGTERM


# --- the whole tree -------------------------------------------------------------------------------

SETSID_TOOL = """
import os, sys, time
mark, pids = sys.argv[1:]
if not os.fork():
    os.setsid()
    with open(pids, "a") as file: file.write(f"{os.getpid()}\\n")
    end = time.monotonic() + 0.7
    while time.monotonic() < end: time.sleep(0.01)
    open(mark, "w").close()
    os._exit(0)
while not os.path.exists(pids): time.sleep(0.005)
print(flush=True)
"""

DAEMON = """
import os, sys, time
(pids,) = sys.argv[1:]
if not os.fork():
    os.setsid()
    if not os.fork():
        for number in (0, 1, 2): os.close(number)
        with open(pids + ".new", "w") as file: file.write(f"{os.getpid()}\\n")
        os.rename(pids + ".new", pids)
        while True: time.sleep(0.1)
    os._exit(0)
while not os.path.exists(pids): time.sleep(0.005)
print(flush=True)
"""

FORKER = """
import os, sys, time
print(flush=True)
end = time.monotonic() + 20
def comet():
    while time.monotonic() < end:
        os.setsid() if os.getpgrp() != os.getpid() else None
        if os.fork(): os._exit(0)
    os._exit(0)
def bush():
    while time.monotonic() < end:
        if not os.fork():
            time.sleep(0.003)
            os._exit(0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]: pass
        except OSError: pass
for index in range(4):
    if not os.fork(): (comet if index % 2 else bush)()
time.sleep(20)
"""


def read_pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


async def test_a_tool_in_a_session_of_its_own_is_killed_before_its_effect(tmp_path: Path) -> None:
    mark, pids = tmp_path / "mark", tmp_path / "pids"
    launch = python(SETSID_TOOL + "sys.stdin.read()", str(mark), str(pids))
    channel, receiver = await start(launch)
    await receiver.line()

    channel.kill()
    await receiver.exit()

    assert not any(is_alive(pid) for pid in read_pids(pids))
    assert not mark.exists()


@pytest.mark.skipif(not IS_LINUX, reason="only Linux has subreapers")
@pytest.mark.parametrize("code", ["", "sys.stdin.read()"], ids=["exits", "killed"])
async def test_a_daemon_ends_with_the_cli(tmp_path: Path, code: str) -> None:
    pids = tmp_path / "pids"
    channel, receiver = await start(python(DAEMON + code, str(pids)))
    await receiver.line()

    if code:
        channel.kill()
    await receiver.exit()

    assert not any(is_alive(pid) for pid in read_pids(pids))


async def test_orphans_that_keep_the_pipes_do_not_hold_up_the_end() -> None:
    _, receiver = await start(shell("sleep 60 & sleep 60 & exit 4"))

    assert await receiver.exit() == 4


@pytest.mark.skipif(not IS_LINUX, reason="only Linux has subreapers")
async def test_processes_that_keep_forking_are_all_killed() -> None:
    token = os.urandom(8).hex()
    channel, receiver = await start(python(FORKER, token))
    await receiver.line()

    def alive() -> int:
        return sum(line.endswith(token.encode() + b"\0") for line in command_lines())

    await eventually(lambda: alive() > 2)

    channel.kill()
    await receiver.exit()

    await eventually(lambda: not guards())
    assert alive() == 0


async def test_suspend_stops_a_tool_in_its_own_session_and_resume_continues_it(
    tmp_path: Path,
) -> None:
    count = tmp_path / "count"
    code = """
import os, sys, time
if not os.fork():
    os.setsid()
    while True:
        with open(sys.argv[1], "a") as file: file.write("x")
        time.sleep(0.002)
print(flush=True)
sys.stdin.read()
"""
    channel, receiver = await start(python(code, str(count)))
    await receiver.line()

    def size() -> int:
        return count.stat().st_size if count.exists() else 0

    await eventually(lambda: size() > 5)
    channel.suspend()
    await eventually(lambda: states(channel.pid) == {"T"})
    stopped = size()
    await asyncio.sleep(HUNDRED_INTERVALS)
    assert size() == stopped

    channel.resume()
    await eventually(lambda: size() > stopped)
    channel.kill()
    await receiver.exit()


def states(pid: int) -> set[str]:
    """Return the states of a CLI and its descendants, without asking the guard."""
    rows = [row_of(pid), *below(pid)]
    return {row[3] for row in rows if row is not None} if IS_LINUX else {"T"}


async def test_a_suspended_tree_is_closed_without_being_resumed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    channel, receiver = await start(shell('echo; read line; touch "$1"', str(mark)))
    await receiver.line()
    began = asyncio.get_running_loop().time()

    channel.suspend()
    channel.close(30)

    assert await receiver.exit() == -signal.SIGTERM
    assert asyncio.get_running_loop().time() - began < 10
    assert not mark.exists()


def list_of(place: Path) -> list[Path]:
    return list(place.iterdir())


def is_running(pid: int) -> bool:
    """Whether a process runs: one that was killed may wait for its new parent to reap it."""
    row = row_of(pid)
    return row is not None and row[3] not in "ZX"


def guards_of(pid: int) -> list[int]:
    """Return the processes between this one and a CLI, the nearest to the CLI first."""
    found: list[int] = []
    row = row_of(pid)
    while row is not None and row[1] != os.getpid():
        found.append(row[1])
        row = row_of(row[1])
    return found


@pytest.mark.skipif(not IS_LINUX, reason="finds the guard in /proc")
@pytest.mark.parametrize("which", ["guard", "all"])
async def test_a_guard_that_is_killed_takes_the_cli_and_its_tools_with_it(
    tmp_path: Path, which: str
) -> None:
    pids = tmp_path / "pids"
    launch = python(DAEMON + "sys.stdin.read()", str(pids))
    transport, receiver = SubprocessTransport(files_in=str(tmp_path)), RecordingReceiver()
    channel = await transport.open(replace(launch, files={"f": b""}), receiver)
    await receiver.line()
    victims = guards_of(channel.pid)
    chosen = {"guard": victims[:1], "all": victims}[which]

    for each in chosen:
        os.kill(each, signal.SIGSTOP)
    for each in chosen:
        kernel.send_signal(each, signal.SIGKILL)

    assert await receiver.exit() == -signal.SIGKILL
    # A session starts its next CLI now, so none of the old tree may be left.
    assert not any(map(is_running, [channel.pid, *read_pids(pids)]))
    assert list_of(tmp_path) == [pids]
    await eventually(lambda: not any(map(is_running, chosen)))


def server_of(channel: SubprocessChannel) -> int:
    """Return the server that forked the guard of a CLI; 0 if the guard is a program of its own."""
    found = guards_of(channel.pid)[1:]
    return found[0] if found and b"guard_server.py" in command_line(found[0]) else 0


@NEEDS_SERVER
async def test_a_killed_server_ends_no_cli_and_the_next_start_has_a_new_one(tmp_path: Path) -> None:
    channel, receiver = await start(python(DAEMON + "sys.stdin.read()", str(tmp_path / "pids")))
    await receiver.line()
    guard, server = guards_of(channel.pid)

    os.kill(server, signal.SIGKILL)
    await eventually(lambda: not is_running(server))
    second, other = await start(shell("cat; exit 4"))

    assert is_running(guard)
    assert is_running(channel.pid)
    assert server_of(second) not in (0, server)
    # The guard that is left ends its whole tree alone.
    tools = read_pids(tmp_path / "pids")
    assert any(map(is_running, tools))
    channel.kill()
    second.end_input()
    assert (await receiver.exit(), await other.exit()) == (-9, 4)
    assert not any(map(is_running, tools))


@NEEDS_SERVER
async def test_a_guard_that_is_killed_after_its_server_leaves_no_tool(tmp_path: Path) -> None:
    channel, receiver = await start(python(DAEMON + "sys.stdin.read()", str(tmp_path / "pids")))
    await receiver.line()
    guard, server = guards_of(channel.pid)
    os.kill(server, signal.SIGKILL)
    await eventually(lambda: not is_running(server))

    os.kill(guard, signal.SIGKILL)

    assert await receiver.exit() == -9
    assert not any(map(is_running, [channel.pid, *read_pids(tmp_path / "pids")]))


@NEEDS_SERVER
async def test_a_stopped_server_delays_neither_an_end_nor_a_start() -> None:
    channel, receiver = await start(shell("echo; cat; exit 3"))
    await receiver.line()
    stopped = server_of(channel)
    os.kill(stopped, signal.SIGSTOP)

    channel.end_input()
    assert await receiver.exit() == 3
    assert is_running(stopped)
    second, other = await start(shell("cat; exit 4"))
    third, last = await start(shell("cat; exit 5"))

    # The second one was ordered from the stopped server, and started when that was noticed.
    assert server_of(second) == 0
    assert server_of(third) not in (0, stopped)
    assert not is_running(stopped)
    for each in (second, third):
        each.end_input()
    assert (await other.exit(), await last.exit()) == (4, 5)


@NEEDS_SERVER
async def test_a_tree_whose_guard_is_killed_beside_a_stopped_server_is_ended(
    tmp_path: Path,
) -> None:
    channel, receiver = await start(python(DAEMON + "sys.stdin.read()", str(tmp_path / "pids")))
    await receiver.line()
    guard, server = guards_of(channel.pid)
    os.kill(server, signal.SIGSTOP)

    os.kill(guard, signal.SIGKILL)

    # At the next look of the supervisor.
    assert await receiver.exit() == -9
    assert not any(map(is_running, [channel.pid, *read_pids(tmp_path / "pids")]))


@NEEDS_SERVER
async def test_a_server_that_can_open_no_more_files_does_not_fail_a_start() -> None:
    channel, receiver = await start(shell("cat; exit 3"))
    server, limits = server_of(channel), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(server, resource.RLIMIT_NOFILE, (8, limits[1]))
    try:
        second, other = await start(shell("cat; exit 4"))
    finally:
        resource.prlimit(server, resource.RLIMIT_NOFILE, limits)

    assert server_of(second) == 0
    for each in (channel, second):
        each.end_input()
    assert (await receiver.exit(), await other.exit()) == (3, 4)


async def test_a_guard_inherits_what_its_host_has_at_the_start_of_the_cli(tmp_path: Path) -> None:
    first, earlier = await start(shell("umask; ulimit -n; pwd; cat"))
    mask, limits, place = os.umask(0o027), resource.getrlimit(resource.RLIMIT_NOFILE), Path.cwd()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[0] - 1, limits[1]))
    os.chdir(tmp_path)
    try:
        second, later = await start(shell("umask; ulimit -n; pwd; cat"))
        third, last = await start(shell("umask; ulimit -n; pwd; cat"))
        if HAS_SERVER:
            assert server_of(second) == 0
            assert server_of(third) not in (0, server_of(first))
    finally:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.chdir(place)

    for each in (first, second, third):
        each.end_input()
    await asyncio.gather(earlier.exit(), later.exit(), last.exit())
    assert earlier.out.split()[1:] == [b"%d" % limits[0], os.fsencode(place)]
    changed = [b"0027", b"%d" % (limits[0] - 1), os.fsencode(tmp_path)]
    assert later.out.split() == last.out.split() == changed


class Outcomes:
    """What an observer was notified of."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def started(self, pid: int) -> None:
        self.seen.append("started" if pid else "nothing")

    def failed(self, stage: str, error: Exception) -> None:
        self.seen += [stage, error]

    def exited(self, status: int) -> None:
        self.seen.append(status)

    def suspended(self) -> None:
        self.seen.append("suspended")

    home: object = None

    def is_lost(self) -> bool:
        return False


@NEEDS_SERVER
async def test_an_order_that_is_lost_before_anything_else_happens_is_started_all_the_same() -> None:
    class Losing(Guards):
        def order(
            self, request: SpawnRequest, env: Mapping[str, str], ends: Sequence[PipeEnd]
        ) -> GuardServer:
            return server

    server, outcomes = GuardServer(sys.executable), Outcomes()
    ends = [end for _ in range(3) for end in pipe()]
    request = SpawnRequest(
        ("/bin/sh", "-c", "exit 3"), {}, None, None, {}, (ends[0], ends[3], ends[5])
    )
    child = GuardedProcess(lambda job: job(), request, outcomes)

    assert child.spawn(Losing())
    assert not child.read_status()
    assert child.spawn_again()
    await eventually(lambda: not child.read_status())
    child.guard_exited()

    assert outcomes.seen == ["started", 3]
    server.close()
    await eventually(server.has_ended)


@NEEDS_SERVER
async def test_a_server_that_takes_no_order_is_not_started_for_ever(tmp_path: Path) -> None:
    """Such as one that cannot read the state of its host: it would be refused for each CLI."""
    false = tmp_path / "python"
    # A program that is a Python only for guards of their own.
    false.write_text(
        f'#!/bin/sh\ncase "$*" in *guard_server.py*) echo >> {tmp_path}/servers; exit 1;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    false.chmod(0o700)
    transport = SubprocessTransport(python=str(false))

    for _ in range(6):
        receiver = RecordingReceiver()
        async with asyncio.timeout(20):
            channel = await transport.open(shell("exit 3"), receiver)
        assert await receiver.exit() == 3
        del channel

    assert (tmp_path / "servers").read_text().count("\n") == 3


@NEEDS_SERVER
async def test_a_large_command_line_gets_a_guard_that_is_a_program() -> None:
    channel, receiver = await start(shell("echo ${#1} ${#2}; cat", "x" * 100_000, "y" * 110_000))

    assert await receiver.line() == "100000 110000"
    assert len(guards()) == 1
    channel.kill()
    await receiver.exit()


@pytest.mark.skipif(not IS_LINUX, reason="finds the guard in /proc")
async def test_a_guard_that_does_not_answer_is_killed_with_its_tree() -> None:
    channel, receiver = await start(shell("sleep 60 & echo $!; cat"))
    sleeper = int(await receiver.line())
    (guard,) = guards()
    os.kill(guard, signal.SIGSTOP)

    channel.kill()

    assert await receiver.exit(15) == -signal.SIGKILL
    await eventually(lambda: not is_alive(sleeper))


@pytest.mark.skipif(not IS_LINUX, reason="finds the guard in /proc")
async def test_a_guard_that_is_stopped_does_not_hide_that_the_cli_has_exited() -> None:
    channel, receiver = await start(shell("echo; cat; exit 3", "x" * 100_000, "y" * 110_000))
    await receiver.line()
    outer = guards_of(channel.pid)[-1]
    os.kill(outer, signal.SIGSTOP)

    channel.end_input()

    assert await receiver.exit() == 3
    await eventually(lambda: not guards())


# --- cancelling and losing ------------------------------------------------------------------------


async def test_cancelling_open_at_any_point_leaves_nothing(tmp_path: Path) -> None:
    launch = Launch(shell("sleep 60").argv, env=ENV, files={"f": b"x"})
    transport = SubprocessTransport(files_in=str(tmp_path))
    opening: list[asyncio.Task[SubprocessChannel]] = []

    for step in range(30):
        task = asyncio.create_task(transport.open(launch, RecordingReceiver()))
        opening.append(task)
        await asyncio.sleep(step * 0.001)
        task.cancel()
    await asyncio.wait(opening, timeout=10)
    assert [task for task in opening if not task.done()] == []
    opening.clear()
    del task
    gc.collect()

    await eventually(lambda: not guards())
    await eventually(lambda: not any(tmp_path.iterdir()))


async def test_a_channel_without_references_is_killed() -> None:
    channel, receiver = await start(shell("echo; sleep 60"))
    await receiver.line()

    del channel
    gc.collect()

    assert await receiver.exit() == -signal.SIGKILL


@pytest.mark.skipif(not IS_LINUX, reason="/proc")
async def test_thirty_runs_leave_no_descriptor_open() -> None:
    async def run() -> None:
        channel, receiver = await start(shell("cat"))
        channel.write(b"x")
        channel.close(5)
        await receiver.exit()
        with pytest.raises(CliNotFound):
            await start(Launch(("/no/such/claude",)))

    await run()
    gc.collect()
    before = open_descriptors()

    for _ in range(30):
        await run()
    gc.collect()

    # Wait: the test runner opens and closes descriptors too.
    await eventually(lambda: open_descriptors() <= before)


async def test_two_loops_in_two_threads_do_not_disturb_each_other() -> None:
    async def talk() -> list[bytes]:
        outputs: list[bytes] = []
        for number in range(5):
            channel, receiver = await start(shell("cat"))
            channel.write(b"%d" % number)
            channel.close(5)
            assert await receiver.exit() == 0
            outputs.append(bytes(receiver.out))
        return outputs

    both = await asyncio.gather(*(asyncio.to_thread(asyncio.run, talk()) for _ in range(2)))

    assert both == [[b"0", b"1", b"2", b"3", b"4"]] * 2


async def test_fifty_at_once() -> None:
    async def talk(number: int) -> bytes:
        channel, receiver = await start(shell("cat"))
        channel.write(b"%d" % number)
        channel.close(20)
        assert await receiver.exit(30) == 0
        return bytes(receiver.out)

    assert await asyncio.gather(*map(talk, range(50))) == [b"%d" % number for number in range(50)]
