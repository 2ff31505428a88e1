"""`doctor` on broken machines: each time the cause and the cure, and never a secret."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steersman._releases import ReleaseTable
from steersman.cli.doctor import as_lines
from steersman.diagnosis import CHECKS, Check, Diagnosis, Machine, examine
from steersman.diagnosis.cli_checks import CLI, LOGIN, MCP, POLICY, PROTOCOL, SETTINGS, release
from steersman.diagnosis.host_checks import (
    CLOCK,
    CONFIG,
    DISK,
    LEFTOVERS,
    LIMITS,
    NESTING,
    NETWORK,
    disk,
    limits,
)
from steersman.hooks import Hooks, SessionStart
from steersman.options import Options
from steersman.permissions import Policy, allow, deny
from steersman.transports.leftovers import PREFIX, new_private_path
from tests.transports.test_leftovers import left_behind

SECRET = "sk-ant-very-secret-0123456789"
PASSWORD = "hunter2-hunter2"
GONE_PID = 2**22 - 7


@dataclass
class Broken:
    """A machine, what is to look at it, and what must be found."""

    checks: tuple[Check, ...]
    text: str
    cure: str
    status: str = "fail"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    now: float | None = None
    prepare: Callable[[Path], None] = lambda _: None


def write(name: str, text: str, mode: int = 0o644) -> Callable[[Path], None]:
    """Return a function that writes a file below the home."""

    def do(home: Path) -> None:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    return do


def read_only_config(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude").chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(home / ".claude", os.W_OK):
        # Root may write everywhere; a file in its place stops root too.
        (home / ".claude").rmdir()
        (home / ".claude").write_text("")


def left_by_a_killed_host(home: Path) -> None:
    (home / "tmp").mkdir()
    left_behind(home / "tmp", pid=GONE_PID)


SERVER = {"mcpServers": {"github": {"command": "npx-nowhere", "env": {"TOKEN": SECRET}}}}

BROKEN = {
    "no CLI": Broken(
        (CLI, PROTOCOL, LOGIN),
        "there is no CLI at {home}/claude",
        "pip install steersman[cli]",
        options={"cli_path": "{home}/claude"},
    ),
    "a CLI that may not be executed": Broken(
        (CLI, PROTOCOL),
        "cannot be executed: its mode does not allow it",
        "chmod +x",
        options={"cli_path": "{home}/claude"},
        prepare=write("claude", "#!/bin/sh\n"),
    ),
    "a directory in place of the CLI": Broken(
        (CLI,),
        "cannot be executed: it is a directory",
        "check the mode",
        options={"cli_path": "{home}"},
    ),
    "a configuration directory that cannot be written": Broken(
        (CONFIG,), ".claude is not", "CLAUDE_CONFIG_DIR", prepare=read_only_config
    ),
    "no home": Broken((CONFIG,), "neither HOME nor", "set HOME", env={"HOME": ""}),
    "settings that are not JSON": Broken(
        (SETTINGS,),
        "settings.json cannot be read: it is not JSON",
        "mend the file",
        prepare=write(".claude/settings.json", f'{{"apiKeyHelper": "echo {SECRET}"'),
    ),
    "an apiKeyHelper that sessions do not read": Broken(
        (SETTINGS,),
        "user settings hold an apiKeyHelper that sessions do not read",
        'setting_sources=("user",)',
        "warn",
        prepare=write(".claude/settings.json", json.dumps({"apiKeyHelper": f"echo {SECRET}"})),
    ),
    "a denial beside an approval of every command": Broken(
        (POLICY,),
        "deny Bash(touch *) is a fence, not a wall, beside allow Bash",
        "walls are a closed list",
        "warn",
        options={"policy": Policy(deny("Bash(touch *)"), allow("Bash"))},
    ),
    "a key with a newline": Broken(
        (LOGIN,),
        "ANTHROPIC_API_KEY begins or ends with a space or a newline",
        "set ANTHROPIC_API_KEY again",
        env={"ANTHROPIC_API_KEY": f"{SECRET}\n"},
    ),
    "a key in quotes": Broken(
        (LOGIN,), "begins with a quote", "without quotes", env={"ANTHROPIC_API_KEY": f'"{SECRET}"'}
    ),
    "a certificate file that is missing": Broken(
        (NETWORK,),
        "NODE_EXTRA_CA_CERTS names a file that cannot be read: No such file",
        "unset NODE_EXTRA_CA_CERTS",
        env={"NODE_EXTRA_CA_CERTS": "{home}/ca.pem"},
    ),
    "a certificate file without a certificate": Broken(
        (NETWORK,),
        "SSL_CERT_FILE names a file that holds no certificate",
        "unset SSL_CERT_FILE",
        env={"SSL_CERT_FILE": "{home}/ca.pem"},
        prepare=write("ca.pem", "nothing"),
    ),
    "a proxy that is no address": Broken(
        (NETWORK,),
        "HTTPS_PROXY is not the address of a proxy",
        "HTTPS_PROXY=http://host:port",
        env={"HTTPS_PROXY": f"me:{PASSWORD}@nowhere"},
    ),
    "a proxy that does not run": Broken(
        (NETWORK,),
        "the proxy 127.0.0.1:9 of https_proxy cannot be reached",
        "unset https_proxy",
        env={"https_proxy": f"http://me:{PASSWORD}@127.0.0.1:9"},
    ),
    "a clock of 1970": Broken((CLOCK,), "the clock is at 1970-01-01", "set the clock", now=1000.0),
    "a clock of 2090": Broken((CLOCK,), "certificates look expired", "set the clock", now=3.8e9),
    "no temporary directory": Broken(
        (DISK,),
        "TMPDIR is {home}/nowhere, which is not a directory",
        "set another TMPDIR",
        env={"TMPDIR": "{home}/nowhere"},
    ),
    "a full disk": Broken((disk(least=float("inf")),), "MB are free at", "free some space"),
    "few open files": Broken((limits(fewest=10**12),), "files may be open", "ulimit -n 4096"),
    "a large environment": Broken(
        (LIMITS,), "the environment has", "unset large variables", env={"LC_ALL": "x" * 2_000_000}
    ),
    "an MCP server whose program is missing": Broken(
        (MCP,),
        "npx-nowhere: command not found",
        "install it, or take the server out of .mcp.json",
        options={"cli_path": "{home}/claude"},
        prepare=write(".mcp.json", json.dumps(SERVER)),
    ),
    "a broken .mcp.json": Broken(
        (MCP,), "text that is not JSON", "mend the file", prepare=write(".mcp.json", "{")
    ),
    "inside another Claude Code": Broken(
        (NESTING,),
        "this runs inside another Claude Code",
        "a terminal of its own",
        "warn",
        env={"CLAUDECODE": "1"},
    ),
    "marks of another Claude Code in env=": Broken(
        (NESTING,),
        "env= passes CLAUDECODE",
        "leave CLAUDECODE out of env=",
        options={"env": {"CLAUDECODE": "1"}},
    ),
    "what a killed host has left": Broken(
        (LEFTOVERS,),
        "1 directories in {home}/tmp",
        "start a session: it removes them",
        "warn",
        env={"TMPDIR": "{home}/tmp"},
        prepare=left_by_a_killed_host,
    ),
}


def placed(value: Any, home: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{home}", str(home))
    return (
        {key: placed(each, home) for key, each in value.items()}
        if isinstance(value, dict)
        else value
    )


async def diagnosed(broken: Broken, home: Path) -> Diagnosis:
    broken.prepare(home)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "ANTHROPIC_AUTH_TOKEN": SECRET}
    options = Options(**{"cwd": home, **placed(dict(broken.options), home)})
    machine = Machine(options, {**env, **placed(dict(broken.env), home)}, now=broken.now)
    async with asyncio.timeout(10):
        return await examine(machine, broken.checks)


def shown(diagnosis: Diagnosis) -> Iterator[str]:
    """Every form in which a diagnosis is shown."""
    yield str(diagnosis)
    yield json.dumps(diagnosis.to_json())
    for width in (40, 80):
        yield "\n".join(as_lines(diagnosis, width))


@pytest.mark.parametrize("name", BROKEN)
async def test_the_cause_and_the_cure_are_named_and_no_secret(name: str, tmp_path: Path) -> None:
    broken = BROKEN[name]

    diagnosis = await diagnosed(broken, tmp_path)

    first, *others = diagnosis.findings
    assert first.status == broken.status
    assert placed(broken.text, tmp_path) in first.text
    assert broken.cure in first.cure
    assert {each.status for each in others} <= {"skip", "fail"}
    for text in shown(diagnosis):
        assert SECRET not in text
        assert PASSWORD not in text


@pytest.mark.process
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("#!/bin/sh\necho welcome\nexec sleep 5\n", "does not speak the protocol"),
        (f"#!/bin/sh\necho no licence {SECRET} >&2\nexit 3\n", "no licence [redacted]"),
        ("#!/no/such/interpreter\n", "cannot be executed"),
    ],
)
async def test_a_program_that_is_no_cli_is_described(
    content: str, text: str, tmp_path: Path
) -> None:
    program = Broken(
        (PROTOCOL,),
        text,
        "",
        options={"cli_path": "{home}/claude"},
        prepare=write("claude", content, 0o755),
    )

    (found,) = (await diagnosed(program, tmp_path)).findings

    assert found.status == "fail"
    assert text in found.text
    assert found.cure


@pytest.mark.process
async def test_a_working_directory_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, gone = tmp_path / "home", tmp_path / "gone"
    home.mkdir()
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    machine = Machine(Options(cli_path="/bin/true"), {"HOME": str(home), "PATH": "/bin"})
    named = Machine(Options(cli_path="/bin/true", cwd=gone), {"HOME": str(home), "PATH": "/bin"})

    for each in (machine, named):
        diagnosis = await examine(each, CHECKS)
        found = {finding.name: finding for finding in diagnosis.failures}
        assert "cannot be entered" in found["protocol"].text
        assert "create the directory" in found["protocol"].cure
        assert not [each for each in found.values() if "this check failed" in each.text]


ANSWERING = """\
#!/bin/sh
[ "$1" = --version ] && echo "{version} (Claude Code)" && exit
read -r line
id=$(echo "$line" | sed 's/.*"request_id":"\\([^"]*\\)".*/\\1/')
answer='"response":{{"claude_code_version":"{version}","current_permission_mode":"default"}}'
echo "{{\\"type\\":\\"control_response\\",\\"response\\":\
{{\\"subtype\\":\\"success\\",\\"request_id\\":\\"$id\\",$answer}}}}"
cat > /dev/null
"""
MEASURED = ReleaseTable(
    newest="2.1.325",
    tested=("2.1.191", "2.1.325"),
    unsafe=(("2.1.290", "2.1.299", "calls run unasked"),),
)


@pytest.mark.process
@pytest.mark.parametrize(
    ("version", "status", "text", "cure"),
    [
        ("2.1.325", "ok", "2.1.325 was tested", ""),
        ("2.1.310", "ok", "2.1.310 is between releases that were tested", ""),
        ("2.1.999", "warn", "newer than 2.1.325", "steersman conform"),
        ("2.1.260", "warn", "a turn continues after its CLI was lost", "use version 2.1.325"),
        ("2.1.295", "fail", "calls run unasked", "use version 2.1.325"),
    ],
)
async def test_what_holds_on_the_release_is_said(
    version: str, status: str, text: str, cure: str, tmp_path: Path
) -> None:
    answering = Broken(
        (release(MEASURED),),
        "",
        "",
        options={"cli_path": "{home}/claude"},
        prepare=write("claude", ANSWERING.format(version=version), 0o755),
    )

    found, updates = (await diagnosed(answering, tmp_path)).findings

    assert (found.status, updates.status) == (status, "warn")
    assert text in found.text
    assert cure in found.cure
    assert "DISABLE_AUTOUPDATER=1" in updates.cure


@pytest.mark.parametrize(
    ("place", "env", "status"),
    [
        ("claude", {}, "warn"),
        ("claude", {"DISABLE_AUTOUPDATER": "1"}, "ok"),
        ("claude_agent_sdk/_bundled/claude", {}, "ok"),
    ],
)
@pytest.mark.process
async def test_a_cli_that_may_update_itself_is_warned_of(
    place: str, env: dict[str, str], status: str, tmp_path: Path
) -> None:
    mute = Broken(
        (release(MEASURED),),
        "",
        "",
        env=env,
        options={"cli_path": f"{{home}}/{place}"},
        prepare=write(place, "#!/bin/sh\nexit 1\n", 0o755),
    )

    found, updates = (await diagnosed(mute, tmp_path)).findings

    assert (found.status, updates.name, updates.status) == ("skip", "release:updates", status)


async def test_a_proxy_that_runs_is_accepted(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        env = {"HTTPS_PROXY": f"http://me:{PASSWORD}@127.0.0.1:{port}"}
        diagnosis = await diagnosed(Broken((NETWORK,), "", "", env=env), tmp_path)

    assert diagnosis.findings[0].text == (
        f"the API is reached through 127.0.0.1:{port} (HTTPS_PROXY)"
    )


async def test_a_check_that_fails_or_hangs_is_itself_a_failure(tmp_path: Path) -> None:
    async def broken(_: Machine) -> Any:
        raise RuntimeError(f"no idea about {SECRET}")

    diagnosis = await diagnosed(
        Broken((Check("odd", broken, "write to its author"), CLOCK), "", ""), tmp_path
    )

    odd, clock = diagnosis.findings
    assert (odd.name, odd.status, odd.cure) == ("odd", "fail", "write to its author")
    assert odd.text == "this check failed: RuntimeError: no idea about [redacted]"
    assert clock.status == "ok"
    assert diagnosis.summary == "1 ok, 1 failure"


def test_the_session_of_the_handshake_sends_and_continues_nothing(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.on(SessionStart)(lambda _: None)
    given = Options(
        hooks=hooks,
        continue_conversation=True,
        journal=tmp_path / "journal",
        cli_path="/bin/true",
        model="opus",
    )

    used = Machine(given, {"HOME": str(tmp_path)}).session_options()

    assert len(used.hooks) == 0
    assert not used.goes_on
    assert (used.journal, used.persist_session, used.model) == (None, False, "opus")


def test_a_name_of_a_directory_is_not_counted_as_left(tmp_path: Path) -> None:
    alive = Path(new_private_path(str(tmp_path)))
    alive.mkdir()
    (tmp_path / f"{PREFIX}nonsense").mkdir()

    machine = Machine(Options(), {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)})

    assert machine.leftovers[0] == 0
