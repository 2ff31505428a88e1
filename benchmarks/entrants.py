"""The contestants, and how to run each of them in a new process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import BARE, COMPAT, OFFICIAL, OURS, TYPESCRIPT
from benchmarks.stand_in.build import MADE

ROOT = Path(__file__).parents[1]
PACKAGE = "@anthropic-ai/claude-agent-sdk"
PACKAGE_VERSION = "0.3.325"
PATIENCE = 400.0
FETCHING = 180.0
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
"""Variables that are passed on. No credential and no setting of a CLI is among them."""


IMPORTING_COMPAT = "from steersman.compat import ClaudeAgentOptions, ClaudeSDKClient, query"
"""The package itself is lazy; these are what every program imports."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One contestant on this machine."""

    name: str
    version: str = ""
    absent: str = ""
    """Why the contestant cannot run on this machine; empty if it can."""
    command: tuple[str, ...] = ()
    """The command line, without the order, which is its last argument."""
    importing: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """A command that imports the contestant, and one that starts the bare interpreter."""


def entrants() -> dict[str, Entrant]:
    """Return all contestants, also absent ones. Installs the TypeScript SDK if needed."""
    return {**pythons(), TYPESCRIPT: _typescript()}


def pythons() -> dict[str, Entrant]:
    """Return the contestants in Python, which need no installation."""
    return {
        OFFICIAL: _official(),
        COMPAT: _python(COMPAT, "compat", IMPORTING_COMPAT, _version_of("steersman")),
        BARE: _python(BARE, "bare", "import asyncio, msgspec", _version_of("msgspec")),
        OURS: _python(OURS, "ours", "import steersman; steersman.Agent", _version_of("steersman")),
    }


def run_order(
    entrant: Entrant, order: Mapping[str, Any], sandbox: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run `order` in a new process. Return its report, or a note why there is none.

    `sandbox` is the environment instead of that of the caller, for the stock CLI.
    """
    command = [*entrant.command, json.dumps(order)]
    try:
        done = subprocess.run(  # noqa: S603 - our own programs
            command,
            cwd=ROOT,
            env=_environment(sandbox),
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return {"note": "gave up"}
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip().splitlines()
        sys.stderr.write(f"\n{entrant.name}: {error.stderr.decode('utf-8', 'replace')[-2000:]}\n")
        return {"note": f"failed: {reason[-1] if reason else error.returncode}"}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def run_statement(command: tuple[str, ...]) -> float:
    """Return the user and system seconds of `command` in a new process."""
    process = subprocess.Popen(  # noqa: S603 - our own statements
        command, cwd=ROOT, env=_environment(), stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command} exited with status {process.returncode}")
    return used.ru_utime + used.ru_stime


def _environment(sandbox: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = sandbox or {name: os.environ[name] for name in KEPT if name in os.environ}
    # Our source comes first, so that this checkout is measured and not an installed version.
    paths = {"PYTHONPATH": str(ROOT / "src"), "BENCH_MODULES": str(MADE / "node")}
    return {**kept, **paths, "PYTHONHASHSEED": "0"}


def _python(name: str, module: str, statement: str, version: str) -> Entrant:
    python = (sys.executable,)
    return Entrant(
        name,
        version,
        command=(*python, "-m", f"benchmarks.contestants.{module}"),
        importing=((*python, "-c", statement), (*python, "-c", "pass")),
    )


def _official() -> Entrant:
    if importlib.util.find_spec("claude_agent_sdk") is None:
        return Entrant(OFFICIAL, absent="claude-agent-sdk is not installed")
    version = _version_of("claude-agent-sdk")
    return _python(OFFICIAL, "official", "import claude_agent_sdk", version)


def _typescript() -> Entrant:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return Entrant(TYPESCRIPT, absent="node and npm are not installed")
    if not _install(npm):
        return Entrant(TYPESCRIPT, absent=f"{PACKAGE} could not be installed")
    script = ROOT / "benchmarks/contestants/typescript.mjs"
    package = MADE / "node/node_modules" / PACKAGE / "sdk.mjs"
    empty = (node, "--input-type=module", "-e")
    return Entrant(
        TYPESCRIPT,
        PACKAGE_VERSION,
        command=(node, "--expose-gc", str(script)),
        importing=((*empty, f"await import({json.dumps(str(package))})"), (*empty, "0")),
    )


def _install(npm: str) -> bool:
    """Install the package without its bundled CLI, unless it is installed."""
    home = MADE / "node"
    if (home / "node_modules" / PACKAGE).is_dir():
        return True
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    arguments = [
        "install",
        "--omit=optional",
        "--no-audit",
        "--no-fund",
        f"{PACKAGE}@{PACKAGE_VERSION}",
    ]
    try:
        subprocess.run(  # noqa: S603 - a fixed package
            [npm, *arguments], cwd=home, capture_output=True, timeout=FETCHING, check=True
        )
    except subprocess.SubprocessError:
        return False
    return True


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
