"""A session store in Redis, to copy and to change. Needs `pip install redis`, and Redis 5 or newer.

    steersman conform store examples.redis_store:make     # checks it, on STORE_URL

A session is a list of lines and a set of uuids; an append is one script, so it is done whole or not
at all. How long Redis keeps what it was given is a setting of the server: turn persistence on.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable
from importlib import import_module
from itertools import chain
from typing import Any, Protocol
from urllib.parse import quote, unquote

from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
)

APPEND = """
local lines, uuids, index = KEYS[1], KEYS[2], KEYS[3]
local added = 0
for at = 2, #ARGV, 2 do
    if ARGV[at] == '' or redis.call('SADD', uuids, ARGV[at]) == 1 then
        redis.call('RPUSH', lines, ARGV[at + 1])
        added = added + 1
    end
end
if added > 0 then
    local now = redis.call('TIME')
    redis.call('ZADD', index, now[1] * 1000 + math.floor(now[2] / 1000), ARGV[1])
end
"""
DELETE = """
for _, part in ipairs(redis.call('ZRANGE', KEYS[1] .. ':parts', 0, -1)) do
    redis.call('DEL', KEYS[1] .. '/' .. part .. ':lines', KEYS[1] .. '/' .. part .. ':uuids')
end
redis.call('DEL', KEYS[1] .. ':parts', KEYS[1] .. ':lines', KEYS[1] .. ':uuids')
redis.call('ZREM', KEYS[2], ARGV[1])
"""


class Client(Protocol):
    """What is needed of `redis.asyncio.Redis`."""

    def execute_command(self, *args: Any) -> Awaitable[Any]:
        """Send a command and return the answer."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class RedisStore:
    """Keeps sessions under names that begin with `prefix`."""

    def __init__(self, client: Client, *, prefix: str = "steersman", chunk: int = 500) -> None:
        self._client = client
        self._prefix = prefix
        self._chunk = chunk

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries, each uuid once."""
        if not entries:
            return
        project, session, part = _names(key)
        base = f"{self._prefix}:{project}:{session}"
        index, member = (f"{base}:parts", part) if part else (f"{self._prefix}:{project}", session)
        where = f"{base}/{part}" if part else base
        values = [
            text for each in entries for text in (_quote(each.get("uuid") or ""), _line(each))
        ]
        names = (f"{where}:lines", f"{where}:uuids", index)
        await self._client.execute_command("EVAL", APPEND, len(names), *names, member, *values)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries; None if there are none."""
        return [entry async for chunk in self.stream(key) for entry in chunk] or None

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        """Return the entries in chunks."""
        begin, end = 0, await self.positions(key)
        while begin < end:
            last = min(begin + self._chunk, end) - 1
            lines = await self._client.execute_command("LRANGE", self._lines(key), begin, last)
            yield [json.loads(line) for line in lines]
            begin = last + 1

    async def positions(self, key: SessionKey) -> int:
        """Return how many entries there are."""
        return int(await self._client.execute_command("LLEN", self._lines(key)))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project."""
        index = f"{self._prefix}:{_quote(project_key)}"
        found = await self._client.execute_command("ZRANGE", index, 0, -1, "WITHSCORES")
        # Pairs, or names and scores by turns: that depends on the version of the protocol.
        are_pairs = any(isinstance(each, list) for each in found)
        flat: list[Any] = list(chain(*found)) if are_pairs else found
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return [{"session_id": _text(name), "mtime": int(float(at))} for name, at in pairs]

    async def delete(self, key: SessionKey) -> None:
        """Remove a part, or a session with its parts."""
        project, session, part = _names(key)
        base = f"{self._prefix}:{project}:{session}"
        if not part:
            index = f"{self._prefix}:{project}"
            await self._client.execute_command("EVAL", DELETE, 2, base, index, session)
            return
        await self._client.execute_command("ZREM", f"{base}:parts", part)
        await self._client.execute_command("DEL", f"{base}/{part}:lines", f"{base}/{part}:uuids")

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the parts of a session."""
        project, session = _quote(key["project_key"]), _quote(key["session_id"])
        name = f"{self._prefix}:{project}:{session}:parts"
        return [_text(each) for each in await self._client.execute_command("ZRANGE", name, 0, -1)]

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    def _lines(self, key: SessionKey) -> str:
        project, session, part = _names(key)
        base = f"{self._prefix}:{project}:{session}"
        return f"{base}/{part}:lines" if part else f"{base}:lines"


def make() -> RedisStore:
    """Return a store on the server that `STORE_URL` names."""
    url = os.environ.get("STORE_URL", "redis://localhost")
    return RedisStore(import_module("redis.asyncio").Redis.from_url(url))


def _names(key: SessionKey) -> tuple[str, str, str]:
    return _quote(key["project_key"]), _quote(key["session_id"]), _quote(key.get("subpath", ""))


def _quote(text: str) -> str:
    # No name holds a colon or a slash, so that none can be taken for another.
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _text(name: bytes | str) -> str:
    plain = name.decode() if isinstance(name, bytes) else name
    return unquote(plain, "utf-8", "surrogatepass")


def _line(entry: SessionStoreEntry) -> str:
    return json.dumps(entry, allow_nan=False)
