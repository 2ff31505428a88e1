"""The checks of the CLI and of what it is given: login, settings, policy, MCP servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict, JsonObject, is_mapping
from steersman._releases import MEANINGS, TABLE, ReleaseTable
from steersman.control.mcp import McpServerStatus
from steersman.diagnosis.machine import MCP_PATIENCE, PROJECT_SERVERS, Machine
from steersman.diagnosis.values import Check, Finding, failed, ok, skipped, warned
from steersman.errors import CliNotFound, LaunchError, SteersmanError, UsageError
from steersman.permissions.policy import WALLS

VARIABLE = "STEERSMAN_CLI"


async def _cli(machine: Machine) -> Iterable[Finding]:
    """Look for a CLI, and report its version."""
    try:
        path = machine.cli
    except CliNotFound as error:
        return failed(_not_found(error), error.hint)
    except LaunchError as error:
        return failed(error.what, error.hint)
    try:
        version = (await machine.handshake()).initialized.claude_code_version
    except SteersmanError:
        # The check of the protocol reports it.
        version = ""
    return ok(f"{version or 'version not known'}, {_origin(path, machine)}")


def _not_found(error: CliNotFound) -> str:
    if len(error.looked_in) == 1:
        return f"there is no CLI at {error.looked_in[0]}"
    return f"no CLI in PATH, nor in {len(error.looked_in)} usual places"


def _origin(path: str, machine: Machine) -> str:
    if machine.options.cli_path is not None:
        return f"{path} (cli_path)"
    if machine.environ.get(VARIABLE):
        return f"{path} ({VARIABLE})"
    if machine.is_bundled:
        return "bundled with claude-agent-sdk"
    return path


CLI = Check("cli", _cli, "install the CLI, or `pip install steersman[cli]`")


async def _protocol(machine: Machine) -> Iterable[Finding]:
    """Find out whether the CLI starts and answers the handshake."""
    try:
        found = await machine.handshake()
    except CliNotFound:
        return skipped("there is no CLI to start")
    except SteersmanError as error:
        evidence = error.evidence.stderr_tail.strip()
        wrote = f"; it wrote: {evidence[-200:]}" if evidence and evidence not in error.what else ""
        return failed(error.what + wrote, error.hint)
    count = len(found.initialized.capabilities)
    return ok(f"{count} capabilities; handshake in {found.seconds:.2f} s")


PROTOCOL = Check("protocol", _protocol, "run `claude --version` by hand, and update the CLI")


SWITCHES = ("DISABLE_AUTOUPDATER", "DISABLE_UPDATES")
"""Variables with which the CLI does not update itself."""

UPDATER = "release:updates"
"""The name of the finding about updates."""


def release(table: ReleaseTable = TABLE) -> Check:
    """Return the check that looks a release up in `table`."""

    async def run(machine: Machine) -> Iterable[Finding]:
        try:
            found = await machine.handshake()
        except SteersmanError:
            return (*skipped("the CLI did not start"), *_updates(machine, table))
        version = found.initialized.claude_code_version
        return (*_promises(version, table), *_updates(machine, table))

    return Check("release", run, f"use version {table.good()} of the CLI")


RELEASE = release()


def _promises(version: str, table: ReleaseTable) -> Iterable[Finding]:
    known = table.find(version)
    if not version:
        return warned("the CLI reports no version, so what holds on it is not known")
    if known.broken:
        return failed(f"guards do not hold on {version}: {known.broken}")
    if known.is_newer:
        return warned(
            f"{version} is newer than {table.newest}, the newest that steersman was tested with",
            f"run `steersman conform`, or use version {table.good()}",
        )
    if known.lacks:
        lacks = "; ".join(MEANINGS.get(each, each) for each in known.lacks)
        return warned(f"on {version} these do not hold: {lacks}")
    tested = "was tested" if version in table.tested else "is between releases that were tested"
    return ok(f"{version} {tested}; guards hold, and all promises")


def _updates(machine: Machine, table: ReleaseTable) -> Iterable[Finding]:
    try:
        is_fixed = machine.is_bundled
    except LaunchError:
        return ()
    if is_fixed:
        return (Finding("ok", "the release changes only with the package", name=UPDATER),)
    if any(machine.environ.get(each) for each in SWITCHES):
        return (Finding("ok", "automatic updates are switched off", name=UPDATER),)
    return (
        Finding(
            "warn",
            "this CLI may update itself, so the release under your programs can change",
            f"keep one: `npm install -g @anthropic-ai/claude-code@{table.good()}` and"
            " DISABLE_AUTOUPDATER=1 in the environment of every program that runs it; or use the"
            " CLI of `pip install steersman[cli]`",
            UPDATER,
        ),
    )


LOGIN_PATIENCE = 20.0
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
NO_LOGIN = "log in with `claude`, or set ANTHROPIC_API_KEY"
QUOTES = "\"'"


async def _login(machine: Machine) -> Iterable[Finding]:
    """Ask `claude auth status --json`, which sends nothing to the API."""
    if (broken := _broken_key(machine)) is not None:
        return broken
    try:
        status = await _login_status(machine)
    except LaunchError:
        return skipped("there is no CLI to ask")
    except (OSError, TimeoutError, ValueError) as error:
        why = type(error).__name__ if not str(error) else str(error)
        return warned(
            f"`claude auth status --json` gave no answer: {why}", "run it by hand to see why"
        )
    if not status.get("loggedIn"):
        return failed("the CLI has no login", _login_cure(machine))
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


def _login_cure(machine: Machine) -> str:
    hidden = [name for name in KEYS if machine.environ.get(name) and not machine.env.get(name)]
    if hidden:
        return f"{hidden[0]} is set here, but inherit_env= keeps it from the CLI"
    return NO_LOGIN


async def _login_status(machine: Machine) -> JsonDict:
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
        async with asyncio.timeout(LOGIN_PATIENCE):
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


LOGIN = Check("login", _login, NO_LOGIN)


HELPER = "apiKeyHelper"


async def _settings(machine: Machine) -> Iterable[Finding]:
    """Read the settings files, and find what sessions do not read."""
    files = {
        "user": machine.config / "settings.json",
        "project": machine.cwd / ".claude" / "settings.json",
        "local": machine.cwd / ".claude" / "settings.local.json",
    }
    found: dict[str, JsonDict] = {}
    for source, path in files.items():
        try:
            settings = _read_settings(path)
        except (OSError, ValueError) as error:
            return failed(
                f"{path} cannot be read: {error}", "mend the file: it must be a JSON object"
            )
        if settings is not None:
            found[source] = settings
    is_read = "user" in machine.options.sources
    if HELPER in found.get("user", {}) and not is_read:
        return warned(
            f"user settings hold an {HELPER} that sessions do not read",
            'pass setting_sources=("user",), or unset it',
        )
    read = ", ".join(each for each in found if each in machine.options.sources)
    return ok(f"sessions read: {read}" if read else "sessions read no settings files")


def _read_settings(path: Path) -> JsonDict | None:
    """Return the settings in a file; None without one. Raises `ValueError`, without the content."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = _json.loads(content)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not _json.is_object(found):
        raise ValueError("it is not a JSON object")
    return found


SETTINGS = Check("settings", _settings)


async def _policy(machine: Machine) -> Iterable[Finding]:
    """Find out whether the policy stops what its rules seem to stop."""
    policy = machine.options.policy
    if policy is None:
        return skipped("there is no policy")
    found = policy.check()
    if not found:
        return ok(f"{len(policy.rules)} rules")
    return [each for text in found for each in warned(text.removesuffix(f"; {WALLS}"), WALLS)]


POLICY = Check("policy", _policy)


GOOD = {"connected": "connected", "disabled": "disabled"}


async def _mcp(machine: Machine) -> Iterable[Finding]:
    """Find out whether the MCP servers outside of this process answer."""
    try:
        servers = machine.servers
    except UsageError as error:
        return failed(error.what, f"mend the file, or remove {error.argument}")
    if not servers:
        return skipped("no MCP servers outside of this process")
    try:
        reported = {each.name: each for each in (await machine.handshake()).servers}
    except SteersmanError:
        reported = None
    return [_mcp_finding(key, each, machine, reported) for key, each in servers.items()]


def _mcp_finding(
    key: str, server: JsonObject, machine: Machine, reported: dict[str, McpServerStatus] | None
) -> Finding:
    name = f"mcp:{key}"
    place = "mcp_servers=" if key in _of_options(machine) else PROJECT_SERVERS
    whose = f"take the server out of {place}"
    command = server.get("command")
    if isinstance(command, str) and not _is_found(command, server, machine):
        return Finding("fail", f"{command}: command not found", f"install it, or {whose}", name)
    if reported is None:
        return Finding("skip", "not tried: the CLI did not start", "", name)
    found = reported.get(key)
    if found is None:
        return Finding(
            "fail", "the CLI does not use it", f"mend its configuration, or {whose}", name
        )
    if found.status in GOOD:
        count = len(found.tools)
        return Finding("ok", f"{GOOD[found.status]}, {count} tools", "", name)
    if found.status == "needs-auth":
        cure = f"log in with `claude` and /mcp, or {whose}"
        return Finding("fail", "it needs a login", cure, name)
    if found.status == "pending":
        text = f"did not answer within {MCP_PATIENCE:g} s"
    else:
        text = f"{found.status}: {found.error}" if found.error else found.status
    return Finding("fail", text, f"start it by hand to see why, or {whose}", name)


def _of_options(machine: Machine) -> Iterable[str]:
    given = machine.options.mcp_servers
    return given if not isinstance(given, str | os.PathLike) else machine.servers


def _is_found(command: str, server: JsonObject, machine: Machine) -> bool:
    own = server.get("env")
    path = own.get("PATH") if is_mapping(own) else None
    where = str(path or machine.env.get("PATH", os.defpath))
    return shutil.which(command, path=where) is not None


MCP = Check("mcp", _mcp)
