"""A CLI behind another command: `ssh host`, `docker exec -i box`, `kubectl exec -i pod --`.

The far side runs `sh`, which needs no quoting however many shells interpret the command. Its
script comes over stdin, ahead of the conversation, so that neither environment nor files appear on
a command line. The script prints a random marker when it starts the CLI. The conversation begins
only after that, so it does not matter how far ahead the far shell reads, or what a login script
prints.

`preamble` is a pure function that builds the script; the rest waits for the marker.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steersman import _json
from steersman.errors import CliNotFound, Evidence, LaunchError, UsageError, WorkingDirectoryMissing
from steersman.journal.redaction import MARK, Redactor, secrets_in
from steersman.ports import (
    Channel,
    FileArgument,
    Launch,
    Receiver,
    SupportsEndAfter,
    SupportsSuspended,
    Transport,
)
from steersman.transports.subprocess import SubprocessTransport

MACHINE_LOCAL = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "TMPDIR",
    "XDG_*",
    "CLAUDE_CONFIG_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
)
"""Variables that are only valid on the machine they come from, and so are not sent."""

CLOSE_GRACE = 0.5
"""Seconds that the far shell gets, after a failed start, to remove its files."""
STDERR_TAIL = 4096
PRINTF_SIZE = 8192
"""Bytes of a file per `printf`: in some shells it is a program, with a limited command line."""


@dataclass(frozen=True, slots=True)
class CommandTransport:
    """Runs the CLI behind `prefix`, which must pass stdin, stdout and stderr through.

    The far side keeps its own environment; the launch's variables are added, except those in
    `MACHINE_LOCAL`. It removes the launch's files when the CLI exits or the connection is lost.
    `suspend` stops only the processes on this machine.
    """

    prefix: tuple[str, ...]
    inner: Transport = field(default_factory=SubprocessTransport)
    program: str = "claude"
    """The CLI on the far side: a name to look up in its `PATH`, or a path, also with `~/`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables for the far side. `MACHINE_LOCAL` does not apply to them."""
    local: bool = False
    """Whether the prefix runs the CLI on this machine, as this user (`nice`, `strace`).

    If so, the prefix is only put before the command line; there is no far shell.
    """
    timeout: float = 60.0
    """Seconds that the far side may take to start the CLI."""

    def __post_init__(self) -> None:
        given = self.prefix
        if isinstance(given, str) or not given or not all(isinstance(each, str) for each in given):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("prefix", given, 'a tuple of strings, such as ("ssh", "host")')

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        if self.local:
            return await self.inner.open(
                replace(launch, argv=(*self.prefix, *launch.argv)), receiver
            )
        if launch.user is not None:
            raise UsageError("user", launch.user, "None: let the prefix change it (`sudo -u ...`)")
        marker = os.urandom(12).hex()
        script = preamble(launch, self.program, self.env, marker)
        shown = _shown(launch, self.env, self.prefix)
        buffered = _BufferedReceiver(receiver, marker.encode(), shown)
        # The prefix is the caller's own command: it may need an ssh agent, a proxy, a context.
        command = Launch((*self.prefix, "sh"), env=dict(os.environ))
        channel = await self.inner.open(command, buffered)
        try:
            channel.write(script)
            await self._wait_until_ready(buffered, launch, shown)
        except BaseException:
            # The grace lets the far shell remove its files.
            channel.close(CLOSE_GRACE)
            raise
        asyncio.get_running_loop().call_soon(buffered.release)
        return _RemoteChannel(channel)

    async def _wait_until_ready(
        self, buffered: _BufferedReceiver, launch: Launch, shown: Callable[[str], str]
    ) -> None:
        place = shown(shlex.join(self.prefix))
        try:
            async with asyncio.timeout(self.timeout):
                report = await buffered.report
        except TimeoutError:
            report = f"not ready in {self.timeout:g} s"
        if report == "cwd":
            raise WorkingDirectoryMissing(launch.cwd or "", f"it does not exist, behind `{place}`")
        if report == "program":
            raise CliNotFound((f"{self.program}, behind `{place}`",))
        if report != "ready":
            raise LaunchError(
                f"`{place}` did not start the far side: {report}",
                hint="run it by hand, followed by `sh`; it must work without password and terminal",
                evidence=buffered.evidence((*self.prefix, "sh")),
            )


def preamble(launch: Launch, program: str, env: Mapping[str, str], word: str) -> bytes:
    """Return the script for the far shell: variables, files, directory, then the CLI.

    The script prints `word` and one of `ready`, `cwd`, `program` to stdout.
    """
    names = {name: value for name, value in launch.env.items() if not _is_machine_local(name)}
    lines = [
        "{",
        f"steersman_word={word}",
        *_exports({**names, **env}),
        *_files(launch.files),
        *_change_directory(launch.cwd),
        f"steersman_program={_program(program)}",
        f"set -- {' '.join(_argument(part) for part in launch.argv[1:])}",
        RUN,
        "}",
    ]
    return os.fsencode("\n".join(lines) + "\n")


RUN = """\
command -v "$steersman_program" >/dev/null || {
echo "steersman: no $steersman_program here" >&2
echo "$steersman_word program"
exit 127
}
trap 'steersman_again=yes; kill -TERM "$steersman_cli" 2>/dev/null' HUP INT TERM
exec 3<&0 </dev/null
echo "$steersman_word ready"
"$steersman_program" "$@" <&3 3<&- &
steersman_cli=$!
exec 3<&-
steersman_watch=
if [ "$PPID" -gt 1 ] && kill -0 "$PPID" 2>/dev/null; then
(
trap '' HUP INT TERM
while sleep 1; do
kill -0 "$PPID" 2>/dev/null && continue
kill -TERM "$steersman_cli"
sleep 2
kill -KILL "$steersman_cli"
break
done
) >/dev/null 2>&1 &
steersman_watch=$!
fi
exec 2>/dev/null
steersman_unwatch() {
[ -z "$steersman_watch" ] || kill -KILL "$steersman_watch"
steersman_watch=
}
steersman_again=
wait "$steersman_cli"
steersman_status=$?
while [ -n "$steersman_again" ]; do
steersman_again=
kill -0 "$steersman_cli" || steersman_unwatch
wait "$steersman_cli"
steersman_found=$?
case $steersman_found in 127 | 255) ;; *) steersman_status=$steersman_found ;; esac
done
steersman_unwatch
exit "$steersman_status"\
"""
"""Starts the CLI, forwards signals to it, and ends it when the parent (the connection) has exited.

The CLI runs in the background, because a shell handles no signal while it waits for a foreground
command. A background command starts with SIGINT ignored; the CLI installs its own handler.
A signal ends `wait` with a status of its own, even if the CLI has just been reaped. So the script
waits again, and status 127 means that the first status was right. Some versions of bash lose the
status then: they return 255, after waiting for all other children. So the watcher is ended first.
"""


class _BufferedReceiver:
    """Holds back output until the far side has reported and the session has its channel."""

    def __init__(self, receiver: Receiver, marker: bytes, shown: Callable[[str], str]) -> None:
        self.report: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._receiver = receiver
        self._shown = shown
        self._pattern = re.compile(re.escape(marker) + rb" (\w+)\n")
        self._is_released = False
        self._out = b""
        self._err = b""
        self._status: int | None = None

    def release(self) -> None:
        self._is_released = True
        if self._err:
            text = self._shown(self._err.decode("utf-8", "surrogateescape"))
            self._receiver.stderr_received(text.encode("utf-8", "surrogateescape"))
        if self._out:
            self._receiver.data_received(self._out)
        if self._status is not None:
            self._receiver.exited(self._status)

    def evidence(self, argv: tuple[str, ...]) -> Evidence:
        # Redacted before it is cut, so that no part of a secret is left at the beginning.
        text = self._shown((self._err + self._out).decode(errors="replace"))
        return Evidence("launch", self._status, text[-STDERR_TAIL:], tuple(map(self._shown, argv)))

    def data_received(self, data: bytes) -> None:
        if self._is_released:
            self._receiver.data_received(data)
            return
        self._out += data
        if not self.report.done() and (found := self._pattern.search(self._out)):
            # The output of a login script is not part of the conversation; pass it on as stderr.
            self._err += self._out[: found.start()]
            self._out = self._out[found.end() :]
            self.report.set_result(found[1].decode())

    def stderr_received(self, data: bytes) -> None:
        if self._is_released:
            self._receiver.stderr_received(data)
        else:
            self._err += data

    def exited(self, status: int) -> None:
        self._status = status
        if self._is_released:
            self._receiver.exited(status)
        elif not self.report.done():
            self.report.set_result("it exited")


@dataclass(frozen=True, slots=True)
class _RemoteChannel:
    """The inner channel without a pid, because its process is not the CLI."""

    inner: Channel

    @property
    def pid(self) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.inner.write(data)

    def end_input(self) -> None:
        self.inner.end_input()

    def suspend(self) -> None:
        self.inner.suspend()

    async def suspended(self) -> None:
        if isinstance(self.inner, SupportsSuspended):
            await self.inner.suspended()

    def resume(self) -> None:
        self.inner.resume()

    def end_after(self, seconds: float) -> None:
        if isinstance(self.inner, SupportsEndAfter):
            self.inner.end_after(seconds)

    def close(self, grace: float) -> None:
        self.inner.close(grace)

    def kill(self) -> None:
        self.inner.kill()


def _shown(launch: Launch, env: Mapping[str, str], prefix: Sequence[str]) -> Callable[[str], str]:
    """Return a function that removes the launch's secrets from the output of a far side.

    A far side may repeat the script that it is sent, on a terminal or with `sh -v`. There secrets
    are also written as the script writes them: quoted, or in octal.
    """
    configurations = (_decoded(each) for each in launch.files.values())
    known = {*secrets_in({**launch.env, **env}, *configurations, {"args": [*prefix]})}
    quoted = {shlex.quote(each)[1:-1] for each in known if "'" in each}
    octal = {_octal(_json.dumps(each)[1:-1]) for each in known}
    redactor = Redactor(known | quoted | octal)

    def shown(text: str) -> str:
        return redactor.shown(_FILE_CONTENT.sub(rf"\1{MARK}\2", text))

    return shown


_FILE_CONTENT = re.compile(r"(printf %b ')[^']*('?)")
"""The content of a file in the script; it contains no quote."""


def _decoded(content: bytes) -> object:
    try:
        return _json.loads(content)
    except ValueError:
        return None


def _is_machine_local(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in MACHINE_LOCAL)


def _exports(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError("env", name, "a name that a shell can export")
        yield f"export {name}={shlex.quote(value)}"


def _files(files: Mapping[str, bytes]) -> Iterator[str]:
    if not files:
        return
    yield "steersman_mask=$(umask)\numask 077"
    yield 'steersman_files=$(mktemp -d "${TMPDIR:-/tmp}/steersman-XXXXXXXXXX") || exit 125'
    yield """trap 'rm -rf "$steersman_files"' EXIT"""
    for name, content in files.items():
        chunks = [content[at : at + PRINTF_SIZE] for at in range(0, len(content), PRINTF_SIZE)]
        printed = "\n".join(f"printf %b '{_octal(chunk)}'" for chunk in chunks)
        yield f'{{ :\n{printed}\n}} >"$steersman_files"/{shlex.quote(name)} || exit 125'
    yield 'umask "$steersman_mask"'


def _change_directory(cwd: str | None) -> Iterator[str]:
    if cwd is not None:
        yield f"CDPATH= cd -- {shlex.quote(cwd)} || {{ echo $steersman_word cwd; exit 126; }}"


def _argument(part: str | FileArgument) -> str:
    if isinstance(part, str):
        return shlex.quote(part)
    return f'{shlex.quote(part.prefix)}"$steersman_files"/{shlex.quote(part.name)}'


def _program(program: str) -> str:
    if program.startswith("~/"):
        return f'"$HOME"/{shlex.quote(program[2:])}'
    return shlex.quote(program)


def _octal(content: bytes) -> str:
    return "".join(ESCAPED[byte] for byte in content)


PLAIN = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:;/{}[]"')
ESCAPED = [chr(byte) if byte in PLAIN else f"\\0{byte:03o}" for byte in range(256)]
