"""Options → a session that can be started.

Makes what a session is given: its launch plan, transport, in-process MCP servers, policy hook,
journal sinks and flight recorder. Modules that few programs need are imported where they are used.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from steersman._hosts import host_of
from steersman._launch.plan import LaunchPlan, plan
from steersman._releases import TABLE, ReleaseTable
from steersman._session.durability import not_durable
from steersman._session.session import MakeParking, Session
from steersman._session.setup import DurableHost, FlightData, Resumption, SessionSetup, no_mirror
from steersman._uuids import new_uuid
from steersman.errors import UsageError, WorkingDirectoryMissing
from steersman.options.fields import Options
from steersman.options.servers import SdkServer
from steersman.ports import DurableAsks, SupportsAwaitAnswer, SupportsStore
from steersman.transports.subprocess import SubprocessTransport

if TYPE_CHECKING:
    from steersman._background import BackgroundTasks
    from steersman._hosts import Host
    from steersman._session.requests.policy_hook import PolicyHook
    from steersman._session.setup import OpenMirror
    from steersman.options.keywords import OptionKwargs
    from steersman.options.servers import McpServer
    from steersman.ports import (
        Clock,
        Durability,
        JsonObject,
        Mirror,
        Sink,
        ToolServer,
        Transport,
    )
    from steersman.transcripts.keys import SessionKey

FUNCTIONS = "functions"
"""The key of the in-process MCP server for `functions=`: `mcp__functions__<name>`."""

Redact = Callable[[bytes], bytes]
Report = Callable[[str], None]


def build_session(
    options: Options,
    transport: Transport | None,
    clock: Clock,
    fork: Callable[[str, OptionKwargs], Session],
    key: str | None = None,
    releases: ReleaseTable = TABLE,
) -> Session:
    """Return a session with these options, not started.

    Without a transport the CLI runs as a subprocess on this machine. `fork` makes the session
    that `session.fork()` returns. `key` is what the conversation is opened with, if it is.
    `releases` is what is known of the releases of the CLI.
    """
    options, policy_hook = with_own_hook(options)
    servers = tool_servers(options)
    program = checked_program(options, transport)
    host = host_of(options, transport)
    first = _plan(options, servers, program, host)
    if first.path is not None:
        host.check_file(first.path)
    env = first.launch.env
    resumed = [options]
    """The options, with what was found to resume."""

    def plan_next(how: Resumption) -> LaunchPlan:
        following = _next_options(resumed[0], how)
        return _plan(following, servers, program, host, reruns=how.reruns)

    def plan_from(resume: str) -> LaunchPlan:
        own_id = first.session_id if options.fork_session else None
        resumed[0] = options.replace(resume=resume, continue_conversation=False, session_id=own_id)
        return _plan(resumed[0], servers, program, host)

    setup = SessionSetup(
        options,
        first,
        transport or SubprocessTransport(),
        servers,
        clock,
        plan_next,
        as_tool_server=as_tool_server,
        open_journal=journal_opener(options),
        transcript=transcript_reader(env),
        releases=releases,
        reports_version=_runs_programs(transport),
        is_saved=partial(host.is_saved, env),
        remove_unwritten=partial(host.remove_unwritten, env),
        running_session=partial(host.running_session, env),
        claim=partial(host.claim, env) if options.persist_session else None,
        save_flight=flight_recorder(options),
        fork=fork,
        mirror=mirror_opener(options, env, host),
        plan_from=plan_from if options.session_store is not None and options.goes_on else None,
        policy_hook=policy_hook,
        durable=durability_maker(options, key, policy_hook),
    )
    return Session(setup, parking_maker(options))


def _plan(
    options: Options,
    servers: Mapping[str, ToolServer],
    program: str,
    host: Host,
    *,
    reruns: bool = False,
) -> LaunchPlan:
    approved: Iterable[str] = ()
    if options.functions:
        names = servers[FUNCTIONS].tool_names
        approved = [f"mcp__{FUNCTIONS}__{name}" for name in names]
    return plan(
        options,
        program=program,
        host_env=os.environ,
        new_session_id=new_uuid(),
        servers=servers,
        approved=approved,
        reruns=reruns,
        read_settings=host.read_settings,
    )


def _next_options(options: Options, how: Resumption) -> Options:
    """Return the options for the next CLI of the same session."""
    may_bypass = options.permission_mode == "bypassPermissions"
    options = dataclasses.replace(options, **how.changed)
    if may_bypass and options.permission_mode != "bypassPermissions":
        # The first CLI accepted a change back to that mode, and so must this one.
        options = dataclasses.replace(options, allow_dangerously_skip_permissions=True)
    if how.is_new:
        # The first options again: a fork that was lost before it was saved must still start with
        # the history of the original.
        return options.replace(session_id=how.session_id)
    return options.replace(
        resume=how.path or how.session_id,
        session_id=None,
        continue_conversation=False,
        fork_session=False,
        resume_session_at=how.at,
        resume_drops_turn=None,
    )


def checked_program(options: Options, transport: Transport | None) -> str:
    """Return the program to run, after checking plugins and the directory that it runs in."""
    if transport is None:
        check_plugins(options)
    program = cli_program(options, transport)
    if transport is None or isinstance(transport, SubprocessTransport):
        check_directory(options.cwd)
    return program


def cli_program(options: Options, transport: Transport | None) -> str:
    """Return the program to run.

    A transport that the caller passes may run it on another machine, so nothing is looked up then.
    """
    if transport is None:
        from steersman.transports.locate import locate  # noqa: PLC0415 - read with the first one

        return locate(options.cli_path)
    return "claude" if options.cli_path is None else str(options.cli_path)


def check_directory(cwd: str | os.PathLike[str] | None) -> None:
    """Check that this process has a directory to start the CLI from: it may have been removed.

    Raises `WorkingDirectoryMissing`. The start reports an absolute `cwd` that is missing.
    """
    place = "." if cwd is None else os.fspath(cwd)
    if place.startswith("/"):
        return
    try:
        os.getcwd()  # noqa: PTH109 - `pathlib` is slow to load
    except OSError as error:
        raise WorkingDirectoryMissing(place, error.strerror or str(error)) from None


def check_plugins(options: Options) -> None:
    """Check that the plugin directories exist. Raises `UsageError`."""
    if options.plugins and options.is_checked:
        from steersman import skills  # noqa: PLC0415 - most programs have no plugins

        skills.check_plugins(options)


def with_own_hook(options: Options) -> tuple[Options, PolicyHook | None]:
    """Return the options with our own hook before the caller's hooks, and that of the policy.

    It applies the policy, or `ask_every_call`; and with a durable inbox it holds calls that will be
    asked about: there `Durability` replaces it. Without any of these there is no such hook.
    """
    decides = options.policy is not None or options.ask_every_call
    holds = options.inbox is not None and (
        isinstance(options.inbox, SupportsAwaitAnswer) and isinstance(options.inbox, SupportsStore)
    )
    if not (decides or holds):
        return options, None
    # Most programs have no policy.
    from steersman._session.requests.policy_hook import PolicyHook  # noqa: PLC0415
    from steersman.hooks.events import PreToolUse  # noqa: PLC0415
    from steersman.hooks.registry import Hooks  # noqa: PLC0415

    policy_hook = PolicyHook(options) if decides else None
    first = Hooks()
    if policy_hook is not None and not holds:
        first.on(PreToolUse)(policy_hook)
        return options.replace(hooks=first | options.hooks), policy_hook
    from steersman.durable.holding import LONGEST_HOLD, MATCHER, no_opinion  # noqa: PLC0415

    matcher = None if decides else MATCHER
    first.on(PreToolUse, matcher, timeout=LONGEST_HOLD + 60)(policy_hook or no_opinion)
    return options.replace(hooks=first | options.hooks), policy_hook


def durability_maker(
    options: Options, key: str | None, policy: PolicyHook | None
) -> Callable[[DurableHost], Durability]:
    """Return the function that makes what keeps the lease and the turns of a session in a store.

    Without a store, that keeps nothing. `key` is what the conversation is opened with, if it is.
    """
    # Most sessions have no inbox, and a protocol is slow to check.
    if options.inbox is None or not isinstance(options.inbox, SupportsStore):
        return not_durable
    from steersman.durable.durability import StoredDurability  # noqa: PLC0415 - few have a store

    return partial(StoredDurability, options, options.inbox.store.work, key, policy)


def parking_maker(options: Options) -> MakeParking | None:
    """Return the function that makes what parks a session, if its asks outlive it."""
    if options.inbox is None or not isinstance(options.inbox, DurableAsks):
        return None
    from steersman.durable.parking import DurableParking  # noqa: PLC0415 - as above

    return DurableParking


def tool_servers(options: Options) -> dict[str, ToolServer]:
    """Return the MCP servers that run in this process, by key."""
    from pathlib import Path  # noqa: PLC0415 - slow to load

    given: Mapping[str, ToolServer | McpServer | JsonObject] = {}
    if not isinstance(options.mcp_servers, str | Path):
        given = options.mcp_servers
    servers = {
        key: as_tool_server(server)
        for key, server in given.items()
        if not isinstance(server, Mapping)
    }
    if options.functions:
        if FUNCTIONS in given:
            raise UsageError(
                "mcp_servers key",
                FUNCTIONS,
                f"another key: {FUNCTIONS!r} is reserved for the tools of functions=",
            )
        # `steersman.tools` is large, and many programs have no tools.
        from steersman.tools.toolbox import Toolbox  # noqa: PLC0415

        servers[FUNCTIONS] = Toolbox(FUNCTIONS, options.functions)
    return servers


def as_tool_server(server: ToolServer | McpServer | SdkServer) -> ToolServer:
    """Return a `ToolServer` for the tools of a mapping, or for a server of the `mcp` package.

    Other servers are returned unchanged.
    """
    if isinstance(server, SdkServer):
        from steersman.tools.toolbox import Toolbox  # noqa: PLC0415 - as above

        return Toolbox(server.name, server.tools, version=server.version)
    from steersman.tools import mcp_instance  # noqa: PLC0415 - as above

    return mcp_instance.as_tool_server(server)


def journal_opener(options: Options) -> Callable[[Redact, Report], Sink] | None:
    """Return the function that opens the sinks of one session's journal; None if it has none."""
    from pathlib import Path  # noqa: PLC0415 - slow to load

    path, sinks = None, options.sinks
    if isinstance(options.journal, str | Path):
        path = options.journal
    elif options.journal is not None:
        sinks = (options.journal, *sinks)
    if path is None and not sinks:
        return None

    def open_journal(redact: Redact, report: Report) -> Sink:
        # Most sessions keep no journal beside the one in memory.
        from steersman.journal.files import Header  # noqa: PLC0415
        from steersman.stores import JournalFile  # noqa: PLC0415
        from steersman.stores.fan_out import FanOutSink  # noqa: PLC0415

        if path is None:
            return FanOutSink(sinks, redact=redact, report=report)
        header = Header(steersman=_version())
        file = JournalFile(path, redact=redact, report=report, header=header)
        if not sinks:
            return file
        return FanOutSink(sinks, file=file, redact=redact, report=report)

    return open_journal


def transcript_reader(env: Mapping[str, str]) -> Callable[[str], list[bytes] | None]:
    """Return the function that reads the session files of a CLI with this environment."""

    def read(session_id: str) -> list[bytes] | None:
        from steersman.stores import read_transcript  # noqa: PLC0415 - only after a crash

        return read_transcript(env, session_id)

    return read


def mirror_opener(options: Options, env: Mapping[str, str], host: Host) -> OpenMirror:
    """Return the function that makes the mirror of a session: without a store, `NoMirror`.

    Raises `UsageError` if files to resume from cannot be written where the CLI runs.
    """
    store = options.session_store
    if store is None:
        return no_mirror
    resumed = host.resumed(env, store) if options.goes_on else None

    def open_mirror(
        is_quiet: Callable[[], bool],
        report: Callable[[str, SessionKey | None], None],
        background: BackgroundTasks,
    ) -> Mirror:
        from steersman.mirror.mirror import StoreMirror  # noqa: PLC0415 - few sessions have a store

        return StoreMirror(
            store,
            is_eager=options.session_store_flush == "eager",
            files=host.comparer(store),
            resumed=resumed,
            is_quiet=is_quiet,
            report=report,
            background=background,
        )

    return open_mirror


def _runs_programs(transport: Transport | None) -> bool:
    """Whether the transport runs whatever command it is given."""
    if transport is None or isinstance(transport, SubprocessTransport):
        return True
    from steersman.transports.command import CommandTransport  # noqa: PLC0415 - as above

    return isinstance(transport, CommandTransport)


def flight_recorder(options: Options) -> Callable[[FlightData], None] | None:
    """Return the function that saves a bundle after an error; None without `flight_recorder`."""
    directory = options.flight_recorder
    if directory is None:
        return None

    def save(flight: FlightData) -> None:
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
            redact=flight.redact,
        )
        record(directory, bundle)

    return save


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely needed

    return version("steersman")


def _names_set(options: Options) -> list[str]:
    """Return the names of the options that differ from their defaults, without the values."""
    usual = Options()
    fields = [each.name for each in dataclasses.fields(Options)]
    return [name for name in fields if getattr(options, name) != getattr(usual, name)]
