"""The MCP servers of a running session: status, reconnect, enable or disable, replace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._session.journal_writer import JournalWriter
from steersman._session.link import CliLink
from steersman._session.requests.tool_servers import ToolServers
from steersman._session.startup import REAPING
from steersman._struct import set_source
from steersman.control.mcp import (
    McpReconnect,
    McpServers,
    McpServersSet,
    McpServerStatus,
    McpSetServers,
    McpStatus,
    McpToggle,
)
from steersman.control.verbs import Verb
from steersman.errors import McpNotReady, RequestError, RequestRefused, RequestTimeout
from steersman.journal import Kind
from steersman.options import Options, checks
from steersman.options.servers import read_server
from steersman.ports import Caller, ToolServer

AnswerT = TypeVar("AnswerT")

SERVERS = checks.mapping_of(
    checks.KEY, "a name of letters, digits, - and _", checks.optional(checks.server)
)


class CallVerb(Protocol):
    """Sends a verb to the CLI, as `Session.call` does."""

    def __call__(self, verb: Verb[AnswerT], /) -> Awaitable[AnswerT]:
        """Return the CLI's answer to `verb`."""
        ...


class McpControls:
    """Implements the methods of `Session` about MCP servers."""

    def __init__(
        self,
        call: CallVerb,
        log: McpStatusLog,
        own: ToolServers,
        make_caller: Callable[[str], Caller],
        adopt: Callable[[object], ToolServer],
    ) -> None:
        self._call = call
        self._log = log
        self._own = own
        self._make_caller = make_caller
        self._adopt = adopt

    async def status(self) -> McpServers:
        """Return the current status of all MCP servers."""
        answer = await self._call(McpStatus())
        self._log.record(answer.servers)
        return answer

    async def reconnect(self, name: str) -> None:
        """Make the CLI reconnect to one of its MCP servers."""
        try:
            await self._call(McpReconnect(server_name=name))
        except RequestRefused as error:
            self._log.record_failure(name, error.reason)
            raise
        await self.status()

    async def toggle(self, name: str, *, enabled: bool) -> None:
        """Enable or disable an MCP server."""
        await self._call(McpToggle(server_name=name, enabled=enabled))
        await self.status()

    async def set_servers(self, servers: Mapping[str, object]) -> McpServersSet:
        """Replace the external servers that were added before; add or replace in-process ones.

        In-process servers that are not named stay; `None` removes one.
        """
        if _json.is_mapping(servers):  # pyright: ignore[reportUnnecessaryIsInstance]
            servers = {key: read_server(f"servers[{key!r}]", each) for key, each in servers.items()}
        SERVERS("servers", servers)
        own = {key: self._adopt(each) for key, each in servers.items() if _is_own(each)}
        external = {key: each for key, each in servers.items() if _json.is_mapping(each)}
        leaving = [key for key in self._own.keys if key in servers]
        removal = McpServersSet()
        if leaving:
            # Remove them first: the CLI does not initialize a server under a key that it knows.
            removal = await self._send_servers(set(self._own.keys) - set(leaving), external)
            for key in leaving:
                await self._own.remove(key)
        if leaving and not own:
            return removal
        answer = await self._add_and_send(own, external)
        return set_source(
            McpServersSet(
                added=[*removal.added, *answer.added],
                removed=[*removal.removed, *answer.removed],
                errors={**removal.errors, **answer.errors},
            ),
            answer.raw,
        )

    async def _add_and_send(
        self, own: Mapping[str, ToolServer], external: Mapping[str, JsonObject]
    ) -> McpServersSet:
        added: list[str] = []
        try:
            for key, server in own.items():
                await self._own.add(server, self._make_caller(key))
                added.append(key)
            return await self._send_servers(self._own.keys, external)
        except BaseException:
            for key in added:
                await self._own.remove(key)
            raise

    async def _send_servers(
        self, own: Iterable[str], external: Mapping[str, JsonObject]
    ) -> McpServersSet:
        """Send the complete list: the CLI drops every server that is missing from it."""
        plain = {key: checks.plain(f"servers[{key!r}]", each) for key, each in external.items()}
        answer = await self._call(_complete_list(own, plain))
        self._own.external = plain
        for name, error in answer.errors.items():
            self._log.record_failure(name, error)
        return answer


def _complete_list(own: Iterable[str], external: Mapping[str, JsonDict]) -> McpSetServers:
    return McpSetServers(servers={**{key: own_config(key) for key in own}, **external})


def own_config(key: str) -> JsonDict:
    """Return the CLI's config of an in-process server. Without `name` the CLI silently drops it."""
    return {"type": "sdk", "name": key}


def _is_own(given: object) -> bool:
    return given is not None and not isinstance(given, Mapping)


CONNECTED, PENDING, FAILED = "connected", "pending", "failed"
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


class McpStatusLog:
    """Journals each change in the status of an MCP server."""

    def __init__(self, log: JournalWriter) -> None:
        self._log = log
        self._known: dict[str, str] = {}

    def record(
        self, servers: Iterable[McpServerStatus], redact: Callable[[str], str] = str
    ) -> None:
        """Record the servers' status; a new server that is connected or pending gets no entry."""
        for each in servers:
            before = self._known.get(each.name, CONNECTED)
            if each.status == PENDING and each.name not in self._known:
                continue
            self._known[each.name] = each.status
            if each.status != before:
                self._log.note(
                    Kind.SERVER,
                    name=each.name,
                    status=each.status,
                    before=before,
                    error=redact(each.error),
                )

    def record_init(self, servers: Iterable[object]) -> None:
        """Record the status list of `system/init`, which contains no errors."""
        self.record(
            McpServerStatus(name=str(each.get("name", "")), status=str(each.get("status", "")))
            for each in servers
            if _json.is_object(each)
        )

    def record_failure(self, name: str, error: str) -> None:
        """Record that a server could not be connected."""
        self.record([McpServerStatus(name=name, status=FAILED, error=error)])


async def restore_servers(
    link: CliLink, status_log: McpStatusLog, servers: ToolServers, options: Options
) -> None:
    """Set the external servers again that were set at run time, in the CLI that replaces another.

    A CLI that refuses them runs without them; then each has a journal entry.
    """
    if not servers.external:
        return
    verb = _complete_list(servers.keys, servers.external)
    try:
        failed = (await link.call(verb, options.request_timeout)).errors
    except (RequestRefused, RequestTimeout) as error:
        failed = dict.fromkeys(servers.external, error.reason)
    except BaseException:
        await _end(link)
        raise
    for name, reason in failed.items():
        status_log.record_failure(name, link.redactor.shown(reason))


async def wait_for_servers(
    link: CliLink, status_log: McpStatusLog, options: Options, own: Iterable[str]
) -> None:
    """Return once every server that `options.require` names is connected.

    `own` are the in-process servers, which the CLI lists only after they have answered. If a
    server is not connected, ends the CLI and raises `McpNotReady`.
    """
    if not options.require:
        return
    names = own if isinstance(options.require, bool) else options.require
    try:
        await _wait(link, status_log, _Wanted(tuple(names), options.require is True), options)
    except BaseException:
        await _end(link)
        raise


async def _end(link: CliLink) -> None:
    """Kill the CLI and wait for its exit, also during cancellation."""
    link.end()
    await asyncio.wait([link.exit_status], timeout=REAPING)


class _Wanted(NamedTuple):
    names: tuple[str, ...]
    and_all_others: bool

    def missing(self, found: Mapping[str, McpServerStatus]) -> McpServerStatus | None:
        """Return the first server that is not connected; a failed one before a pending one."""
        names = dict.fromkeys((*found, *self.names) if self.and_all_others else self.names)
        absent = [found.get(name, McpServerStatus(name=name, status=PENDING)) for name in names]
        absent = [each for each in absent if each.status != CONNECTED]
        return min(absent, key=lambda each: each.status == PENDING, default=None)


async def _wait(link: CliLink, status_log: McpStatusLog, wanted: _Wanted, options: Options) -> None:
    loop, pause, limit = asyncio.get_running_loop(), FIRST_PAUSE, options.startup.servers
    deadline = loop.time() + limit
    while True:
        found = await _fetch_status(link, limit)
        status_log.record(found.values(), link.redactor.shown)
        missing = wanted.missing(found)
        if missing is None:
            return
        if missing.status != PENDING:
            raise _not_ready(link, missing.name, missing.status, missing.error)
        if loop.time() + pause > deadline:
            error = f"it did not connect within {limit:g} s"
            raise _not_ready(link, missing.name, PENDING, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _fetch_status(link: CliLink, timeout: float) -> dict[str, McpServerStatus]:
    try:
        answer = await link.call(McpStatus(), timeout)
    except RequestError as error:
        raise _not_ready(link, "(all)", PENDING, str(error)) from error
    return {each.name: each for each in answer.servers}


def _not_ready(link: CliLink, name: str, status: str, error: str) -> McpNotReady:
    evidence = link.evidence("servers")
    return McpNotReady(name, status, link.redactor.shown(error), evidence=evidence)
