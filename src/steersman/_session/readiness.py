"""How the tool servers are: which must be connected at the start, and what changes later.

Fed with what the CLI says of them in `mcp_status` and `system/init`. Changes go to the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from steersman import _json
from steersman._session.journal_writer import JournalWriter
from steersman._session.link import CliLink
from steersman._session.startup import REAPING
from steersman.control.mcp import McpServerStatus, McpStatus
from steersman.errors import McpNotReady, RequestError
from steersman.journal import Kind
from steersman.options import Options

__all__ = ["McpStatusLog", "wait_for_servers"]

CONNECTED, PENDING, FAILED = "connected", "pending", "failed"
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


class McpStatusLog:
    """What was last heard of each tool server."""

    def __init__(self, log: JournalWriter) -> None:
        self._log = log
        self._known: dict[str, str] = {}

    def record(
        self, servers: Iterable[McpServerStatus], redact: Callable[[str], str] = str
    ) -> None:
        """Take note of how they are now; a server that is first heard of well is no news."""
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

    def record_init(self, servers: Iterable[Any]) -> None:
        """The same from the list in `system/init`, which tells no errors."""
        self.record(
            McpServerStatus(name=str(each.get("name", "")), status=str(each.get("status", "")))
            for each in servers
            if _json.is_object(each)
        )

    def record_failure(self, name: str, error: str) -> None:
        """A server could not be connected again."""
        self.record([McpServerStatus(name=name, status=FAILED, error=error)])


async def wait_for_servers(
    link: CliLink, book: McpStatusLog, options: Options, own: Iterable[str]
) -> None:
    """Return once every server that `options.require` names is connected.

    `own` are the servers in this process, which the CLI lists only when they have answered.
    Raises `McpNotReady` for one that is not, with the CLI gone.
    """
    if not options.require:
        return
    names = own if isinstance(options.require, bool) else options.require
    try:
        await _wait(link, book, _Wanted(tuple(names), options.require is True), options)
    except BaseException:
        link.end()
        await asyncio.wait([link.exit_status], timeout=REAPING)
        raise


class _Wanted(NamedTuple):
    names: tuple[str, ...]
    and_all_others: bool

    def missing(self, found: Mapping[str, McpServerStatus]) -> McpServerStatus | None:
        """The first that is not connected; one that never will be comes before one that may."""
        names = dict.fromkeys((*found, *self.names) if self.and_all_others else self.names)
        absent = [found.get(name, McpServerStatus(name=name, status=PENDING)) for name in names]
        absent = [each for each in absent if each.status != CONNECTED]
        return min(absent, key=lambda each: each.status == PENDING, default=None)


async def _wait(link: CliLink, book: McpStatusLog, wanted: _Wanted, options: Options) -> None:
    loop, pause, limit = asyncio.get_running_loop(), FIRST_PAUSE, options.startup.servers
    deadline = loop.time() + limit
    while True:
        found = await _ask(link, limit)
        book.record(found.values(), link.redactor.text)
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


async def _ask(link: CliLink, timeout: float) -> dict[str, McpServerStatus]:
    try:
        answer = await link.call(McpStatus(), timeout)
    except RequestError as error:
        raise _not_ready(link, "(all)", PENDING, str(error)) from error
    return {each.name: each for each in answer.servers}


def _not_ready(link: CliLink, name: str, status: str, error: str) -> McpNotReady:
    evidence = link.evidence("servers")
    return McpNotReady(name, status, link.redactor.text(error), evidence=evidence)
