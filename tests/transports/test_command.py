from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.errors import CliNotFound, LaunchError, UsageError, WorkingDirectoryMissing
from steersman.ports import Channel, FileArgument, Launch
from steersman.testing.contracts.transports import RecordingReceiver
from steersman.transports.command import PRINTF_SIZE, CommandTransport, preamble

GRACE = 1.0
"""Seconds that a far side may take to exit by itself; enough on a busy machine."""

ODD = "a'b\"c$d`e\\ f\n\n é日\x81\x88 %s \\n *\n"

SHOW = r"""
import json, os, stat, sys
paths = [word for word in sys.argv[1:] if word.startswith("--file=")]
files = {}
for word in paths:
    path = word.removeprefix("--file=")
    files[os.path.basename(path)] = [
        open(path, "rb").read().hex(),
        stat.S_IMODE(os.stat(path).st_mode),
        stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode),
    ]
print(json.dumps({
    "argv": [word for word in sys.argv[1:] if word not in paths],
    "env": dict(os.environ), "cwd": os.getcwd(), "files": files,
    "umask": os.umask(0), "stdin": sys.stdin.buffer.read().hex(),
    "directories": [os.path.dirname(word.removeprefix("--file=")) for word in paths],
}))
sys.exit(3)
"""


async def eventually(is_true: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def far_shells(tmp_path: Path) -> list[tuple[str, ...]]:
    """Return prefixes that make `sh` one of the shells of this machine."""
    found: list[tuple[str, ...]] = []
    for name in ("dash", "bash", "busybox"):
        if place := shutil.which(name):
            (tmp_path / name).mkdir()
            (tmp_path / name / "sh").symlink_to(place)
            found.append(("env", f"PATH={tmp_path / name}:{os.environ['PATH']}"))
    return found


@pytest.fixture
def show(tmp_path: Path) -> str:
    """A far CLI that prints its arguments, environment, files and input."""
    program = tmp_path / "far claude"
    # A shell script, because the first line of a script cannot hold a path with spaces.
    source = tmp_path / "show.py"
    source.write_text(SHOW)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{source}" "$@"\n')
    program.chmod(0o755)
    return str(program)


async def ask(
    transport: CommandTransport, launch: Launch
) -> tuple[dict[str, object], RecordingReceiver]:
    receiver = RecordingReceiver()
    channel = await transport.open(launch, receiver)
    channel.write(b"hel")
    channel.write(b"lo\n")
    channel.end_input()
    assert await receiver.exit() == 3, receiver.err
    assert channel.pid is None
    return json.loads(receiver.out), receiver


CONTENT = bytes(range(256)) * 300


def launch_of_everything(cwd: Path) -> Launch:
    return Launch(
        ("/local/claude", "--x", ODD, "", *(FileArgument("--file=", f) for f in "fg"), "-n", "~"),
        env={"VALUE": ODD, "EMPTY": "", "PATH": "/only/here", "XDG_HOME": "/local"},
        cwd=str(cwd),
        files={"f": CONTENT, "g": b""},
    )


def check_everything(seen: dict[str, object], cwd: Path) -> None:
    env = seen["env"]
    assert isinstance(env, dict)
    assert seen["argv"] == ["--x", ODD, "", "-n", "~"]
    assert (env["VALUE"], env["EMPTY"]) == (ODD, "")
    assert "/only/here" not in env["PATH"]
    assert "XDG_HOME" not in env
    assert not [name for name in env if name.startswith("steersman")]
    assert seen["cwd"] == str(cwd)
    assert seen["files"] == {"f": [CONTENT.hex(), 0o600, 0o700], "g": ["", 0o600, 0o700]}
    assert seen["stdin"] == b"hello\n".hex()
    assert seen["umask"] == current_umask()
    directories = seen["directories"]
    assert isinstance(directories, list)
    assert not any(Path(place).exists() for place in directories)


def current_umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


async def test_everything_arrives_behind_any_shell(tmp_path: Path, show: str) -> None:
    for prefix in far_shells(tmp_path):
        transport = CommandTransport(prefix, program=show)

        seen, receiver = await ask(transport, launch_of_everything(tmp_path))

        check_everything(seen, tmp_path)
        assert receiver.err == b""


@pytest.mark.parametrize(
    "prefix", [("env",), ("nice",), ("sh", "-c", 'exec "$@"', "sh"), ("sh", "-c", "exec $*", "sh")]
)
async def test_everything_arrives_behind_any_prefix(
    tmp_path: Path, show: str, prefix: tuple[str, ...]
) -> None:
    transport = CommandTransport(prefix, program=show)

    seen, _ = await ask(transport, launch_of_everything(tmp_path))

    check_everything(seen, tmp_path)


async def test_output_of_a_login_script_goes_to_stderr(show: str) -> None:
    prefix = ("sh", "-c", 'echo Welcome; printf "to the box"; exec "$@"', "sh")

    _, receiver = await ask(CommandTransport(prefix, program=show), Launch(("x",)))

    assert receiver.err == b"Welcome\nto the box"


async def test_the_transports_own_variables_win(show: str) -> None:
    transport = CommandTransport(("env",), program=show, env={"HOME": "/far", "A": "far"})

    seen, _ = await ask(transport, Launch(("x",), env={"A": "here", "HOME": "/here"}))

    env = seen["env"]
    assert isinstance(env, dict)
    assert (env["HOME"], env["A"]) == ("/far", "far")


async def test_a_local_prefix_is_only_put_before_the_command(tmp_path: Path) -> None:
    receiver = RecordingReceiver()
    launch = Launch(
        ("/bin/sh", "-c", 'cat "$1"; echo "$1"; env', "sh", FileArgument("", "f")),
        env={"A": "1", "PATH": os.environ["PATH"]},
        cwd=str(tmp_path),
        files={"f": b"private\n"},
    )

    channel = await CommandTransport(("nice", "-n", "1"), local=True).open(launch, receiver)

    assert await receiver.exit() == 0
    private, path, *env = receiver.out.decode().splitlines()
    assert private == "private"
    assert not Path(path).parent.exists()
    by_shells = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert {line.partition("=")[0] for line in env} <= {"A", "PATH", "STEERSMAN_TREE", *by_shells}
    assert isinstance(channel.pid, int)


async def test_a_program_may_live_in_the_far_home(tmp_path: Path, show: str) -> None:
    transport = CommandTransport(("env", f"HOME={tmp_path}"), program=f"~/{Path(show).name}")

    seen, _ = await ask(transport, Launch(("x", "y")))

    assert seen["argv"] == ["y"]


# --- failing --------------------------------------------------------------------------------------


async def test_a_missing_far_directory_is_an_error(show: str) -> None:
    with pytest.raises(WorkingDirectoryMissing, match="/no/where"):
        await CommandTransport(("env",), program=show).open(
            Launch(("x",), cwd="/no/where"), RecordingReceiver()
        )


async def test_a_missing_far_cli_is_an_error() -> None:
    with pytest.raises(CliNotFound) as caught:
        await CommandTransport(("env",), program="no-such-claude").open(
            Launch(("x",)), RecordingReceiver()
        )

    assert caught.value.looked_in == ("no-such-claude, behind `env`",)


async def test_a_prefix_that_fails_is_an_error_with_its_stderr() -> None:
    receiver = RecordingReceiver()

    with pytest.raises(LaunchError) as caught:
        await CommandTransport(("sh", "-c", "echo no such box >&2; exit 7", "sh")).open(
            Launch(("x",)), receiver
        )

    assert caught.value.evidence.status == 7
    assert caught.value.evidence.stderr_tail == "no such box\n"
    assert receiver.received == (b"", b"", [])


SECRETS = {
    "key": "canary-key+in/env=42",
    "quoted": "canary'quoted'42",
    "header": "canary+header/42",
    "password": "canary-password-42",
    "argument": "canary-argument-42",
    "own": "canary-own-42",
    "settings": "canary-settings-42",
}


def launch_with_secrets() -> Launch:
    servers = {
        "web": {
            "url": f"https://ann:{SECRETS['password']}@host/",
            "headers": {"Authorization": f"Bearer {SECRETS['header']}"},
        },
        "local": {"command": "x", "args": ["--api-key", SECRETS["argument"]]},
    }
    padding = "x" * (PRINTF_SIZE - 30)
    settings = {"padding": padding, "env": {"ANY": SECRETS["settings"]}}
    return Launch(
        ("x", FileArgument("--mcp-config=", "servers"), FileArgument("--settings=", "settings")),
        env={"ANTHROPIC_API_KEY": SECRETS["key"], "MY_PAT": SECRETS["quoted"]},
        files={
            "servers": json.dumps({"mcpServers": servers}).encode(),
            "settings": json.dumps(settings).encode(),
        },
    )


def parts_of(secret: str) -> list[str]:
    return [secret, shlex.quote(secret), secret[:10], secret[-10:]]


REPEAT = "sed '/^}$/q'"
"""Copies the script up to the first line that is only a brace, after all secrets, and exits."""


@pytest.mark.parametrize("echo", [REPEAT, f"{REPEAT} >&2", f"{REPEAT} | tail -c 4500"])
async def test_a_far_side_that_repeats_its_script_puts_no_secret_into_the_error(echo: str) -> None:
    far = ("sh", "-c", f"{echo}; exit 7", "sh")
    transport = CommandTransport(far, env={"FAR_TOKEN": SECRETS["own"]}, program="no-claude")

    with pytest.raises(LaunchError) as caught:
        await transport.open(launch_with_secrets(), RecordingReceiver())

    shown = f"{caught.value} {caught.value.evidence}"
    assert "steersman_program" in shown
    for secret in SECRETS.values():
        assert not any(part in shown for part in parts_of(secret))


async def test_a_secret_in_the_prefix_is_not_shown() -> None:
    far = ("env", "GITHUB_PAT=canary-42", "sh", "-c", "echo canary-42 >&2; exit 7", "sh")

    with pytest.raises(LaunchError) as caught:
        await CommandTransport(far).open(Launch(("x",)), RecordingReceiver())

    assert "canary" not in f"{caught.value} {caught.value.evidence}"


async def test_a_far_side_that_starts_although_it_repeats_its_script_reports_no_secret(
    show: str,
) -> None:
    far = ("sh", "-c", "exec sh -v", "sh")
    transport = CommandTransport(far, env={"FAR_TOKEN": SECRETS["own"]}, program=show)
    receiver = RecordingReceiver()
    launch = launch_with_secrets()

    channel = await transport.open(replace(launch, argv=("x",)), receiver)
    channel.end_input()
    await receiver.exit()

    assert b"steersman_word" in receiver.err
    for secret in SECRETS.values():
        assert not any(part.encode() in receiver.err for part in parts_of(secret))


async def test_a_prefix_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(CliNotFound):
        await CommandTransport(("/no/such/ssh", "host")).open(Launch(("x",)), RecordingReceiver())


async def test_a_silent_far_side_is_ended_after_the_timeout(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    silent = ("sh", "-c", f"echo $$ >{pid}; exec sleep 60", "sh")

    with pytest.raises(LaunchError, match="not ready in"):
        await CommandTransport(silent, timeout=0.3).open(Launch(("x",)), RecordingReceiver())

    await eventually(lambda: not is_alive(int(read(pid))))


def read(path: Path) -> str:
    return path.read_text()


async def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    silent = ("sh", "-c", f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 60", "sh")
    opening = asyncio.create_task(
        CommandTransport(silent).open(Launch(("x",)), RecordingReceiver())
    )
    await eventually(pid.exists)

    opening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually(lambda: not is_alive(int(read(pid))))


def test_a_name_that_no_shell_can_export_is_refused() -> None:
    with pytest.raises(UsageError, match=r"npm\.config"):
        preamble(Launch(("x",), env={"npm.config": ""}), "claude", {}, "word")


# --- ending ---------------------------------------------------------------------------------------

WAITS = """#!/bin/sh
trap 'echo term; exit 9' TERM
echo $$ "$1"
while :; do sleep 0.02; done
"""


@pytest.fixture
def waits(tmp_path: Path) -> str:
    program = tmp_path / "waits"
    program.write_text(WAITS)
    program.chmod(0o755)
    return str(program)


async def start_waiting(
    transport: CommandTransport,
) -> tuple[Channel, RecordingReceiver, int, Path]:
    receiver = RecordingReceiver()
    channel = await transport.open(
        Launch(("x", FileArgument("", "f")), files={"f": b"x"}), receiver
    )
    await eventually(lambda: b"\n" in receiver.out)
    pid, path = receiver.out.decode().split()
    return channel, receiver, int(pid), Path(path)


async def test_a_terminated_far_cli_leaves_no_files(waits: str) -> None:
    channel, receiver, pid, path = await start_waiting(CommandTransport(("env",), program=waits))
    assert path.exists()

    channel.close(GRACE)

    assert await receiver.exit() == 9
    assert receiver.out.endswith(b"term\n")
    assert not is_alive(pid)
    assert not path.parent.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_the_far_shell_alone_reaches_the_cli(
    tmp_path: Path, waits: str, number: int
) -> None:
    shell = tmp_path / "shell"
    prefix = ("sh", "-c", f'echo $$ >{shell}; exec "$@"', "sh")
    _channel, receiver, _, path = await start_waiting(CommandTransport(prefix, program=waits))

    os.kill(int(read(shell)), number)

    assert await receiver.exit() == 9
    assert not path.parent.exists()


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_signals_to_shell_and_cli_at_once_end_both_with_the_status_of_the_cli(
    tmp_path: Path, waits: str, shell: str
) -> None:
    """The shell may have reaped the CLI before it handles its own signal."""
    place = shutil.which(shell)
    if place is None:
        pytest.skip(f"no {shell} on this machine")
    (tmp_path / "sh").symlink_to(place)
    script = preamble(Launch(("x",)), waits, {}, "word")

    statuses = {terminated_at_once(str(tmp_path / "sh"), script) for _ in range(12)}

    # bash loses the status if a signal comes while it reaps the CLI, but it does not hang.
    lost = {128 + signal.SIGTERM, 255} if shell == "bash" else set()
    assert statuses - lost == {9}


def terminated_at_once(shell: str, script: bytes) -> int:
    with subprocess.Popen([shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as far:
        assert far.stdin is not None
        assert far.stdout is not None
        far.stdin.write(script)
        far.stdin.flush()
        assert far.stdout.readline() == b"word ready\n"
        cli = int(far.stdout.readline())
        for pid in (cli, far.pid):
            os.kill(pid, signal.SIGTERM)
        return far.wait(10)


# --- the preamble, for any content ----------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@pytest.mark.parametrize("name", ["dash", "bash", "busybox"])
@settings(max_examples=60, deadline=None)
@given(value=TEXT, argument=TEXT, content=st.binary(max_size=300))
def test_any_value_argument_and_file_survive(
    name: str, value: str, argument: str, content: bytes
) -> None:
    command = shutil.which(name)
    if command is None:
        return
    script = preamble(
        Launch(
            (
                "x",
                "-c",
                'printf "%s\\0" "$V" "$1"; cat "$2"',
                "sh",
                argument,
                FileArgument("", "f"),
            ),
            env={"V": value},
            files={"f": content},
        ),
        "/bin/sh",
        {},
        "word",
    )

    receiver = subprocess.run(
        [command, *(["sh"] if name == "busybox" else [])],
        input=script,
        capture_output=True,
        check=True,
        timeout=20,
    )

    ready, _, rest = receiver.stdout.partition(b"\n")
    assert (ready, receiver.stderr) == (b"word ready", b"")
    assert rest == value.encode() + b"\0" + argument.encode() + b"\0" + content


# --- a real ssh -----------------------------------------------------------------------------------


def find_sshd() -> str | None:
    return shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """The prefix for an ssh daemon on the loopback interface, with its own keys."""
    sshd = find_sshd()
    if sshd is None:
        assert "CI" not in os.environ, "CI must have an sshd: see .ci/run"
        pytest.skip("no sshd on this machine")
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True
        )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    config = tmp_path / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\n"
        f"AuthorizedKeysFile {tmp_path}/user.pub\nPidFile {tmp_path}/sshd.pid\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    with subprocess.Popen([sshd, "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE) as daemon:
        try:
            wait_for(port)
            yield ssh_prefix(tmp_path, port)
        finally:
            daemon.terminate()


def ssh_prefix(tmp_path: Path, port: int) -> tuple[str, ...]:
    # fmt: off
    return (
        "ssh", "-T", "-F", "/dev/null", "-p", str(port), "-i", str(tmp_path / "user"),
        "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
        "-o", f"UserKnownHostsFile={tmp_path}/known", f"{getpass.getuser()}@127.0.0.1",
    )
    # fmt: on


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    raise AssertionError("sshd did not come up")


async def test_everything_arrives_over_ssh(tmp_path: Path, show: str, ssh: tuple[str, ...]) -> None:
    seen, _ = await ask(CommandTransport(ssh, program=show), launch_of_everything(tmp_path))

    check_everything(seen, tmp_path)


async def test_a_second_command_behind_ssh_works_like_the_first(
    tmp_path: Path, show: str, ssh: tuple[str, ...]
) -> None:
    transport = CommandTransport((*ssh, "nice", "-n", "2"), program=show)

    seen, _ = await ask(transport, launch_of_everything(tmp_path))

    check_everything(seen, tmp_path)


async def test_when_ssh_is_killed_the_far_cli_and_its_files_are_removed(
    waits: str, ssh: tuple[str, ...]
) -> None:
    channel, receiver, pid, path = await start_waiting(CommandTransport(ssh, program=waits))

    channel.kill()

    assert await receiver.exit() == -signal.SIGKILL
    await eventually(lambda: not is_alive(pid))
    await eventually(lambda: not path.parent.exists())


async def test_an_ssh_that_cannot_connect_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    if shutil.which("ssh") is None:
        pytest.skip("no ssh on this machine")

    with pytest.raises(LaunchError) as caught:
        await CommandTransport(ssh_prefix(tmp_path, port)).open(Launch(("x",)), RecordingReceiver())

    assert caught.value.evidence.status == 255
    assert "refused" in caught.value.evidence.stderr_tail
