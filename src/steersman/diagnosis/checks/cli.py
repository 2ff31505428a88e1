"""Is there a CLI, where, and of which version."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok
from steersman.errors import CliNotFound, LaunchError, SteersmanError

VARIABLE = "STEERSMAN_CLI"


async def _run(machine: Machine) -> Iterable[Finding]:
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
    return ok(f"{version or 'version not known'}, {_where(path, machine)}")


def _not_found(error: CliNotFound) -> str:
    if len(error.looked_in) == 1:
        return f"there is no CLI at {error.looked_in[0]}"
    return f"no CLI in PATH, nor in {len(error.looked_in)} usual places"


def _where(path: str, machine: Machine) -> str:
    if machine.options.cli_path is not None:
        return f"{path} (cli_path)"
    if machine.environ.get(VARIABLE):
        return f"{path} ({VARIABLE})"
    if machine.is_bundled:
        return "bundled with claude-agent-sdk"
    return path


CLI = Check(
    "cli",
    _run,
    "install the CLI, or `pip install steersman[cli]`",
)
