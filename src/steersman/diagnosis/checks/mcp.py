"""Do the MCP servers outside of this process answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from steersman._json import JsonObject, is_mapping
from steersman.control.mcp import McpServerStatus
from steersman.diagnosis.machine import MCP_PATIENCE, PROJECT_SERVERS, Machine
from steersman.diagnosis.values import Check, Finding, failed, skipped
from steersman.errors import SteersmanError, UsageError

GOOD = {"connected": "connected", "disabled": "disabled"}


async def _run(machine: Machine) -> Iterable[Finding]:
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
    return [_finding(key, each, machine, reported) for key, each in servers.items()]


def _finding(
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


MCP = Check("mcp", _run)
