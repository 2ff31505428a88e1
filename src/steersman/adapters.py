"""What an agent's options ask for beside the CLI: who serves, who guards, where things are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from steersman.errors import UsageError
from steersman.options.fields import Options

if TYPE_CHECKING:
    from steersman._session.requests.policy_hook import PolicyHook
    from steersman._session.setup import FlightData
    from steersman.options.servers import McpServer
    from steersman.ports import JsonObject, Sink, ToolServer, Transport

__all__ = [
    "FUNCTIONS",
    "adopted",
    "flight_recorder",
    "plugins_checked",
    "policed",
    "program_of",
    "recorder",
    "servers_of",
    "transcript_reader",
]

FUNCTIONS = "functions"
"""The key under which plain functions are served: `mcp__functions__<name>`."""


def recorder(options: Options) -> Callable[..., Sink] | None:
    """What opens the file of the journal, if there is to be one."""
    path = options.journal
    if path is None:
        return None

    def record(redact: Callable[[bytes], bytes], report: Callable[[str], None]) -> Sink:
        from steersman.journal.files import Header  # noqa: PLC0415 - most sessions keep none
        from steersman.stores import JournalFile  # noqa: PLC0415 - as above

        header = Header(steersman=_version())
        return JournalFile(path, redact=redact, report=report, header=header)

    return record


def transcript_reader(env: Mapping[str, str]) -> Callable[[str], list[bytes] | None]:
    """What reads the session files of a CLI with that environment."""

    def read(session_id: str) -> list[bytes] | None:
        from steersman.stores import read_transcript  # noqa: PLC0415 - only after a crash

        return read_transcript(env, session_id)

    return read


def flight_recorder(options: Options) -> Callable[[FlightData], None] | None:
    """What keeps a bundle after an error, if it is to be kept."""
    directory = options.flight_recorder
    if directory is None:
        return None

    def keep(flight: FlightData) -> None:
        from steersman.journal.replaying import replay  # noqa: PLC0415 - only after an error
        from steersman.observe import FlightRecord, record  # noqa: PLC0415 - only after an error

        bundle = FlightRecord(
            error=flight.error,
            session_id=flight.session_id,
            entries=flight.entries,
            states=replay(flight.entries).states,
            stderr_tail=flight.stderr_tail,
            options=_names_set(options),
            versions={"steersman": _version(), "cli": flight.cli_version},
        )
        record(directory, bundle)

    return keep


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely asked for

    return version("steersman")


def _names_set(options: Options) -> list[str]:
    """The options that are not at their default, by name alone."""
    usual = Options()
    fields = [each.name for each in dataclasses.fields(Options)]
    return [name for name in fields if getattr(options, name) != getattr(usual, name)]


def policed(options: Options) -> tuple[Options, PolicyHook | None]:
    """The options with our own guard, if there is a policy to hold, and the guard."""
    if options.policy is None and not options.ask_every_call:
        return options, None
    from steersman._session.requests import policy_hook  # noqa: PLC0415 - most programs have none

    return policy_hook.with_policy_hook(options)


def program_of(options: Options, transport: Transport | None) -> str:
    """The CLI to run. Only a transport of the caller's own knows what there is where it runs."""
    if transport is None:
        from steersman.transports.locate import locate  # noqa: PLC0415 - read with the first one

        return locate(options.cli_path)
    return "claude" if options.cli_path is None else str(options.cli_path)


def servers_of(options: Options) -> dict[str, ToolServer]:
    """The tool servers that live in this process, by key."""
    from pathlib import Path  # noqa: PLC0415 - slow to load

    given: Mapping[str, ToolServer | McpServer | JsonObject] = {}
    if not isinstance(options.mcp_servers, str | Path):
        given = options.mcp_servers
    servers = {
        key: adopted(server) for key, server in given.items() if not isinstance(server, Mapping)
    }
    if options.functions:
        if FUNCTIONS in given:
            raise UsageError(
                "mcp_servers key", FUNCTIONS, f"another key: {FUNCTIONS!r} is that of functions="
            )
        # The room of the tools is large, and many programs have none.
        from steersman.tools.toolbox import Toolbox  # noqa: PLC0415

        servers[FUNCTIONS] = Toolbox(FUNCTIONS, options.functions)
    return servers


def adopted(server: Any) -> ToolServer:
    """What was given for a tool server, as one."""
    from steersman.tools.mcp_instance import as_tool_server  # noqa: PLC0415 - as above

    return as_tool_server(server)


def plugins_checked(options: Options) -> None:
    """See that the plugins are there. Raises `UsageError`."""
    if options.plugins:
        from steersman.skills import check_plugins  # noqa: PLC0415 - most programs have none

        check_plugins(options)
