"""The tool servers of a running session: asked about, connected again, switched, exchanged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from steersman import _json
from steersman._session.readiness import ServerBook
from steersman._struct import set_source
from steersman.control.mcp import (
    McpReconnect,
    McpServers,
    McpServersSet,
    McpSetServers,
    McpStatus,
    McpToggle,
)
from steersman.control.verbs import Verb
from steersman.errors import RequestRefused
from steersman.options import checks
from steersman.ports import Caller, JsonObject, ToolServer

__all__ = ["McpDesk", "Rack"]

AnswerT = TypeVar("AnswerT")

SERVERS = checks.mapping_of(
    checks.KEY, "a name of letters, digits, - and _", checks.optional(checks.server)
)


class Call(Protocol):
    """Puts a verb to the CLI, as `Session.call` does."""

    def __call__(self, verb: Verb[AnswerT], /) -> Awaitable[AnswerT]:
        """Give its answer."""
        ...


class Rack(Protocol):
    """Holds the tool servers in this process, as `Serving` does."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of those that it holds."""
        ...

    async def add(self, server: ToolServer, caller: Caller) -> None:
        """Attach one and hold it. Raises `McpNotReady`; then it is not held."""
        ...

    async def remove(self, key: str) -> None:
        """Let one go and detach it."""
        ...


class McpDesk:
    """Does what a session's methods about tool servers promise."""

    def __init__(
        self,
        call: Call,
        book: ServerBook,
        rack: Rack,
        make_caller: Callable[[str], Caller],
        adopt: Callable[[Any], ToolServer],
    ) -> None:
        self._call = call
        self._book = book
        self._rack = rack
        self._make_caller = make_caller
        self._adopt = adopt

    async def status(self) -> McpServers:
        """How they are now."""
        answer = await self._call(McpStatus())
        self._book.hear(answer.servers)
        return answer

    async def reconnect(self, name: str) -> None:
        """Have the CLI connect to a server of its own again."""
        try:
            await self._call(McpReconnect(server_name=name))
        except RequestRefused as error:
            self._book.hear_failure(name, error.reason)
            raise
        await self.status()

    async def toggle(self, name: str, *, enabled: bool) -> None:
        """Take a server out of use, or into use again."""
        await self._call(McpToggle(server_name=name, enabled=enabled))
        await self.status()

    async def set_servers(self, servers: Mapping[str, Any]) -> McpServersSet:
        """Exchange the external servers that were added before, and add or replace own ones.

        Own ones that are not named stay, `None` takes one away.
        """
        SERVERS("servers", servers)
        own = {key: self._adopt(each) for key, each in servers.items() if _is_own(each)}
        external = {key: each for key, each in servers.items() if _json.is_mapping(each)}
        leaving = [key for key in self._rack.keys if key in servers]
        gone = McpServersSet()
        if leaving:
            # First without them: the CLI greets nobody anew under a key that it knows.
            gone = await self._tell(set(self._rack.keys) - set(leaving), external)
            for key in leaving:
                await self._rack.remove(key)
        if leaving and not own:
            return gone
        answer = await self._tell_with(own, external)
        return set_source(
            McpServersSet(
                added=[*gone.added, *answer.added],
                removed=[*gone.removed, *answer.removed],
                errors={**gone.errors, **answer.errors},
            ),
            answer.raw,
        )

    async def _tell_with(
        self, own: Mapping[str, ToolServer], external: Mapping[str, Any]
    ) -> McpServersSet:
        added: list[str] = []
        try:
            for key, server in own.items():
                await self._rack.add(server, self._make_caller(key))
                added.append(key)
            return await self._tell(self._rack.keys, external)
        except BaseException:
            for key in added:
                await self._rack.remove(key)
            raise

    async def _tell(self, own: Iterable[str], external: Mapping[str, Any]) -> McpServersSet:
        """Name them all: the CLI drops what it is not told of again."""
        plain = {key: checks.plain(f"servers[{key!r}]", each) for key, each in external.items()}
        told = {**{key: own_config(key) for key in own}, **plain}
        answer = await self._call(McpSetServers(servers=told))
        for name, error in answer.errors.items():
            self._book.hear_failure(name, error)
        return answer


def own_config(key: str) -> dict[str, Any]:
    """How the CLI is told of a server in this process; without the name it drops it in silence."""
    return {"type": "sdk", "name": key}


def _is_own(given: ToolServer | JsonObject | None) -> bool:
    return given is not None and not isinstance(given, Mapping)
