"""Has the CLI a login: asks `claude auth status --json`, which sends nothing to the API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable

from steersman import _json
from steersman._json import JsonDict
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped, warned
from steersman.errors import LaunchError

PATIENCE = 20.0
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CURE = "log in with `claude`, or set ANTHROPIC_API_KEY"
QUOTES = "\"'"


async def _run(machine: Machine) -> Iterable[Finding]:
    if (broken := _broken_key(machine)) is not None:
        return broken
    try:
        status = await _status(machine)
    except LaunchError:
        return skipped("there is no CLI to ask")
    except (OSError, TimeoutError, ValueError) as error:
        why = type(error).__name__ if not str(error) else str(error)
        return warned(
            f"`claude auth status --json` gave no answer: {why}", "run it by hand to see why"
        )
    if not status.get("loggedIn"):
        return failed("the CLI has no login", _cure(machine))
    used = [name for name in KEYS if machine.env.get(name)]
    source = str(status.get("apiKeySource") or status.get("authMethod") or "a login")
    if len(used) > 1:
        return warned(
            f"{source}; {' and '.join(used)} are both set", "unset the one that you do not mean"
        )
    return ok(f"{source}, found by the CLI (not tried on the API)")


def _broken_key(machine: Machine) -> Iterable[Finding] | None:
    for name in KEYS:
        value = machine.env.get(name, "")
        if value and value.strip() != value:
            return failed(f"{name} begins or ends with a space or a newline", f"set {name} again")
        if value[:1] in QUOTES and value:
            return failed(f"{name} begins with a quote", f"set {name} again, without quotes")
        if any(ord(each) < ord(" ") or ord(each) > ord("~") for each in value):
            return failed(f"{name} has characters that no key has", f"set {name} again")
    return None


def _cure(machine: Machine) -> str:
    hidden = [name for name in KEYS if machine.environ.get(name) and not machine.env.get(name)]
    if hidden:
        return f"{hidden[0]} is set here, but inherit_env= keeps it from the CLI"
    return CURE


async def _status(machine: Machine) -> JsonDict:
    """Return what the CLI reports. Raises `OSError`, `TimeoutError` or `ValueError`."""
    process = await asyncio.create_subprocess_exec(
        *(machine.cli, "auth", "status", "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=machine.env,
        cwd=machine.cwd,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        found = _json.loads(out)
    except ValueError:
        raise ValueError("it wrote no JSON; this CLI may be too old for it") from None
    if not _json.is_object(found):
        raise ValueError("it wrote no object")
    return found


LOGIN = Check("login", _run, CURE)
