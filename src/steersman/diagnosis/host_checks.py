"""The checks of the machine around the CLI: directories, limits, network, clock, other hosts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from steersman._launch.environment import MARKS
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped, warned
from steersman.errors import LaunchError
from steersman.sessions.places import Places


async def _config(machine: Machine) -> Iterable[Finding]:
    """Find out whether the CLI can write its configuration and its transcripts."""
    if not (machine.env.get("HOME") or machine.env.get("CLAUDE_CONFIG_DIR")):
        return failed("the CLI gets neither HOME nor CLAUDE_CONFIG_DIR", "set HOME")
    place = _existing(machine.config)
    shown = _short(machine.config, machine.home)
    if not place.is_dir():
        return failed(f"{place} is not a directory", f"remove it, or set CLAUDE_CONFIG_DIR={shown}")
    if not os.access(place, os.W_OK | os.X_OK):
        return failed(
            f"{_short(place, machine.home)} is not writable",
            f"chown or chmod {place}, or set CLAUDE_CONFIG_DIR to a directory of yours",
        )
    days = Places(str(machine.config), str(machine.cwd)).cleanup_days()
    made = "is writable" if machine.config.is_dir() else "will be made"
    return ok(f"{shown} {made}; transcripts are kept {days:g} days")


def _existing(path: Path) -> Path:
    """Return `path`, or the nearest directory above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _short(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


CONFIG = Check("config", _config, "set CLAUDE_CONFIG_DIR to a directory that you can write to")


MEGABYTE = 1_000_000
LEAST = 50 * MEGABYTE
LITTLE = 500 * MEGABYTE


def disk(least: float = LEAST, little: float = LITTLE) -> Check:
    """Return the check: it fails below `least` bytes, and warns below `little`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        temporary = machine.temporary
        if not temporary.is_dir():
            return failed(f"TMPDIR is {temporary}, which is not a directory", "set another TMPDIR")
        if not os.access(temporary, os.W_OK | os.X_OK):
            return failed(f"{temporary} is not writable", "set TMPDIR to a directory of yours")
        places = (_existing(machine.config), temporary)
        free = {place: shutil.disk_usage(place).free for place in places}
        place = min(free, key=lambda each: free[each])
        text = f"{free[place] // MEGABYTE} MB are free at {place}"
        if free[place] < least:
            return failed(text, "free some space there, or set TMPDIR or CLAUDE_CONFIG_DIR")
        return warned(text, "free some space there") if free[place] < little else ok(text)

    return Check("disk", run)


DISK = disk()


FEWEST_FILES = 64
FEW_FILES = 256
SMALL_PIPE = 16 * 1024
LONGEST_WORD = 128 * 1024
"""Bytes of one word of a command line on Linux."""


def limits(fewest: int = FEWEST_FILES, few: int = FEW_FILES) -> Check:
    """Return the check: it fails below `fewest` open files, and warns below `few`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        files = sys.maxsize if files == resource.RLIM_INFINITY else files
        if files < fewest:
            return failed(f"only {files} files may be open", "raise it: ulimit -n 4096")
        words = os.sysconf("SC_ARG_MAX")
        room = sum(len(name) + len(value) + 2 for name, value in machine.env.items())
        if words > 0 and room > words // 2:
            return failed(
                f"the environment has {room} bytes; command line and environment may have {words}",
                "unset large variables, or pass fewer with inherit_env=",
            )
        long = [name for name, value in machine.env.items() if len(value) >= LONGEST_WORD]
        if long and sys.platform == "linux":
            return failed(f"{long[0]} is longer than the {LONGEST_WORD} bytes that one may have")
        pipe = _pipe_size()
        text = f"{files} open files, {words} bytes of command line, pipes of {pipe} bytes"
        if files < few:
            return warned(text, "raise the open files: ulimit -n 4096")
        if 0 < pipe < SMALL_PIPE:
            return warned(text, "close programs of this user that hold many pipes")
        return ok(text)

    return Check("limits", run)


def _pipe_size() -> int:
    """Return how many bytes a new pipe holds; 0 if not known."""
    if sys.platform != "linux":
        return 0
    import fcntl  # noqa: PLC0415 - not everywhere

    reading, writing = os.pipe()
    try:
        with contextlib.suppress(OSError):
            return fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ)
        return 0
    finally:
        os.close(reading)
        os.close(writing)


LIMITS = limits()


API = "https://api.anthropic.com"
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
CERTIFICATES = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
PROXY_PATIENCE = 2.0
PORTS = {"http": 80, "https": 443}
CERTIFICATE_BEGINS = b"-----BEGIN"


async def _network(machine: Machine) -> Iterable[Finding]:
    """Find out whether the variables about proxies and certificates make sense."""
    for name in CERTIFICATES:
        if (wrong := _wrong_file(machine.env.get(name, ""))) is not None:
            return failed(f"{name} names a file that {wrong}", f"unset {name}, or mend the file")
    api = urlsplit(machine.env.get("ANTHROPIC_BASE_URL") or API)
    if api.scheme not in PORTS or not api.hostname:
        return failed("ANTHROPIC_BASE_URL is not the address of an API", "unset it, or mend it")
    for name in PROXIES:
        value = machine.env.get(name, "")
        if value and not _is_proxy(value):
            return failed(
                f"{name} is not the address of a proxy", f"set {name}=http://host:port, or unset it"
            )
    return await _reaching(api.hostname, machine)


async def _reaching(host: str, machine: Machine) -> Iterable[Finding]:
    """Return how the API is reached."""
    name = next((each for each in PROXIES if machine.env.get(each)), None)
    if name is None:
        return skipped(f"no proxy; the API is {host}")
    if _is_direct(host, machine.env):
        return ok(f"{name} is set; {host} is reached without it")
    proxy = urlsplit(machine.env[name])
    if (refused := await _refusal(proxy)) is not None:
        return failed(
            f"the proxy {proxy.hostname}:{_port(proxy)} of {name} {refused}",
            f"start the proxy, or unset {name}",
        )
    return ok(f"the API is reached through {proxy.hostname}:{_port(proxy)} ({name})")


def _wrong_file(path: str) -> str | None:
    if not path:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if CERTIFICATE_BEGINS in content else "holds no certificate"


def _is_proxy(value: str) -> bool:
    try:
        found = urlsplit(value)
        return found.scheme in PORTS and bool(found.hostname) and _port(found) > 0
    except ValueError:
        return False


def _port(address: SplitResult) -> int:
    return address.port or PORTS.get(address.scheme, 0)


def _is_direct(host: str, env: dict[str, str]) -> bool:
    """Whether NO_PROXY names the host, or a domain that it is in."""
    listed = (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
    names = [each.strip().lstrip("*").lstrip(".") for each in listed if each.strip()]
    return any(each in ("", host) or host.endswith(f".{each}") for each in names)


async def _refusal(proxy: SplitResult) -> str | None:
    try:
        async with asyncio.timeout(PROXY_PATIENCE):
            _, writer = await asyncio.open_connection(proxy.hostname, _port(proxy))
    except TimeoutError:
        return f"did not answer within {PROXY_PATIENCE:g} s"
    except OSError as error:
        return f"cannot be reached: {error.strerror or type(error).__name__}"
    writer.close()
    return None


NETWORK = Check("network", _network)


DAY = 86400.0
FIRST = 1_735_689_600.0
"""The beginning of 2025, before which no supported CLI was made."""
YEARS = 20 * 365 * DAY


async def _clock(machine: Machine) -> Iterable[Finding]:
    """Find out whether the clock is right enough for certificates."""
    shown = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(machine.now))
    if machine.now < _installed(machine) - DAY:
        return failed(
            f"the clock is at {shown}, before the CLI was installed: certificates look invalid",
            "set the clock, for example with `timedatectl set-ntp true`",
        )
    if machine.now > FIRST + YEARS:
        return failed(
            f"the clock is at {shown}: certificates look expired",
            "set the clock, for example with `timedatectl set-ntp true`",
        )
    return ok(shown)


def _installed(machine: Machine) -> float:
    """Return when the CLI was installed, if that is known and can be."""
    try:
        made = os.stat(machine.cli).st_mtime  # noqa: PTH116 - one call
    except (LaunchError, OSError):
        return FIRST
    return made if FIRST < made < FIRST + YEARS else FIRST


CLOCK = Check("clock", _clock)


async def _leftovers(machine: Machine) -> Iterable[Finding]:
    """Count what hosts that were killed have left behind."""
    folders, processes = machine.leftovers
    if not folders and not processes:
        return skipped("nothing is left of hosts that were killed")
    return warned(
        f"hosts that were killed have left {processes} processes, and {folders} directories in"
        f" {machine.temporary}",
        "start a session: it removes them",
    )


LEFTOVERS = Check("leftovers", _leftovers)


INSIDE = ("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID")


async def _nesting(machine: Machine) -> Iterable[Finding]:
    """Find out whether this program runs inside another Claude Code."""
    passed = sorted(set(machine.options.env) & (MARKS - {"CLAUDE_CODE_ENTRYPOINT"}))
    if passed:
        return failed(
            f"env= passes {passed[0]}, so the CLI takes itself for a child of another one",
            f"leave {passed[0]} out of env=",
        )
    if not any(machine.environ.get(name) for name in INSIDE):
        return skipped("not inside another Claude Code")
    return warned(
        "this runs inside another Claude Code, whose variables sessions do not inherit",
        "if a session behaves oddly, start the program in a terminal of its own",
    )


NESTING = Check("nested", _nesting)
