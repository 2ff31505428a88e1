"""A session store in an S3 bucket, to copy and to change. Needs `pip install boto3`.

    steersman conform store examples.s3_store:make     # checks it, on STORE_BUCKET

Each append is one object, written whole or not at all; nothing is ever read to be written again, so
writers cannot disturb each other. Doubles are left out when a session is read. Give the bucket a
lifecycle rule for what shall not be kept for ever.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import uuid4

from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
)

MAIN = "main"
PART = "part-"
MOST_DELETED = 1000


class Client(Protocol):
    """What is needed of `boto3.client("s3")`."""

    def put_object(self, **request: Any) -> Any:
        """Write an object."""
        ...

    def get_object(self, **request: Any) -> Any:
        """Read an object."""
        ...

    def list_objects_v2(self, **request: Any) -> Any:
        """List a page of objects."""
        ...

    def delete_objects(self, **request: Any) -> Any:
        """Delete objects."""
        ...


class S3Store:
    """Keeps sessions in objects whose names begin with `prefix`."""

    def __init__(self, client: Client, bucket: str, *, prefix: str = "sessions") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix
        self._last = 0
        self._lock = threading.Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries, as one object."""
        if not entries:
            return
        with self._lock:
            # Names sort by time, also those of one writer within a tick of the clock.
            self._last = max(time.time_ns(), self._last + 1)
            name = f"{self._folder(key)}{self._last:020d}-{uuid4().hex}"
        body = "".join(json.dumps(each, allow_nan=False) + "\n" for each in entries).encode()
        await asyncio.to_thread(self._client.put_object, Bucket=self._bucket, Key=name, Body=body)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries; None if there are none."""
        return [entry async for chunk in self.stream(key) for entry in chunk] or None

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        """Return the entries of one object after the other, each uuid once."""
        seen: set[str] = set()
        for name, _ in await asyncio.to_thread(self._names, self._folder(key)):
            chunk: list[SessionStoreEntry] = []
            for entry in await asyncio.to_thread(self._read, name):
                uuid = entry.get("uuid")
                if uuid is None or uuid not in seen:
                    chunk.append(entry)
                    seen.update([uuid] if uuid else [])
            if chunk:
                yield chunk

    async def positions(self, key: SessionKey) -> int:
        """Return how many entries there are. They are read to be counted."""
        return len(await self.load(key) or [])

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project: all of its objects are listed, a thousand at a time."""
        folder = f"{self._prefix}/{_quote(project_key)}/"
        found: dict[str, int] = {}
        for name, at in await asyncio.to_thread(self._names, folder):
            session, part, _ = name.removeprefix(folder).split("/")
            if part == MAIN:
                found[session] = max(at, found.get(session, 0))
        return [{"session_id": _text(name), "mtime": at} for name, at in found.items()]

    async def delete(self, key: SessionKey) -> None:
        """Remove a part, or a session with its parts."""
        folder = self._folder(key) if key.get("subpath") else self._session(key)
        names = [name for name, _ in await asyncio.to_thread(self._names, folder)]
        for begin in range(0, len(names), MOST_DELETED):
            some = [{"Key": name} for name in names[begin : begin + MOST_DELETED]]
            await asyncio.to_thread(
                self._client.delete_objects, Bucket=self._bucket, Delete={"Objects": some}
            )

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the parts of a session."""
        folder = self._session(key)
        names = await asyncio.to_thread(self._names, folder)
        parts = {name.removeprefix(folder).partition("/")[0] for name, _ in names}
        return sorted(_text(part.removeprefix(PART)) for part in parts if part != MAIN)

    def _session(self, key: SessionKey | SessionListSubkeysKey) -> str:
        return f"{self._prefix}/{_quote(key['project_key'])}/{_quote(key['session_id'])}/"

    def _folder(self, key: SessionKey) -> str:
        part = key.get("subpath", "")
        return self._session(key) + (f"{PART}{_quote(part)}/" if part else f"{MAIN}/")

    def _names(self, folder: str) -> list[tuple[str, int]]:
        """Return names and times in milliseconds of all objects of a folder, in order."""
        return sorted(
            (each["Key"], int(each["LastModified"].timestamp() * 1000))
            for page in self._pages(folder)
            for each in page.get("Contents", ())
        )

    def _pages(self, folder: str) -> Iterator[Any]:
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": folder}
        while True:
            page = self._client.list_objects_v2(**request)
            yield page
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def _read(self, name: str) -> list[SessionStoreEntry]:
        body = self._client.get_object(Bucket=self._bucket, Key=name)["Body"].read()
        return [json.loads(line) for line in body.splitlines()]


def make() -> S3Store:
    """Return a store in the bucket that `STORE_BUCKET` names."""
    client = import_module("boto3").client("s3", endpoint_url=os.environ.get("STORE_ENDPOINT"))
    return S3Store(client, os.environ["STORE_BUCKET"])


def _quote(text: str) -> str:
    # No name holds a slash, so that none can lead out of its folder.
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _text(name: str) -> str:
    return unquote(name, "utf-8", "surrogatepass")
