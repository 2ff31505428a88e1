"""One event stream: the frames of a session after a number, or the CLI's own lines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec

from steersman import _json
from steersman._struct import DECODE_ERRORS
from steersman.web.feed import Batch, Feed

ALIVE = 15.0
"""Seconds between two comments, so that proxies keep the connection."""

SPOKEN = frozenset({"message", "partial", "bookkeeping"})
"""The kinds whose lines the CLI has written as part of the conversation."""

_NUMBER = re.compile(rb'\{"session":"[^"]*","seq":(\d+),"at":([^,]+),')


class EventStream:
    """The events of one session for one viewer."""

    def __init__(self, feed: Feed, after: int, *, is_raw: bool) -> None:
        self._feed = feed
        self._after = after
        self._is_raw = is_raw
        self._news = asyncio.Event()
        self._is_closing = False

    def close(self) -> None:
        """End the stream; the viewer connects again."""
        self._is_closing = True
        self._news.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield bytes with whole events, until the stream is closed."""
        self._feed.add(self._notify)
        try:
            # The headers go out with the first bytes.
            yield b": follows\n\n"
            while not self._is_closing:
                self._news.clear()
                batch = await self._feed.next(self._after)
                if batch.upto:
                    yield self._encoded(batch)
                    self._after = batch.upto
                elif not await self._has_news():
                    yield b": alive\n\n"
        finally:
            self._feed.remove(self._notify)

    def _notify(self, _session: str) -> None:
        self._news.set()

    async def _has_news(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(ALIVE):
                await self._news.wait()
                return True
        return False

    def _encoded(self, batch: Batch) -> bytes:
        parts: list[bytes] = []
        if batch.lost:
            parts.append(b"event: lagged\ndata: %d\n\n" % batch.lost)
        for frame in batch.text.encode().split(b"\n") if batch.text else ():
            number = _NUMBER.match(frame)
            data = raw_event_of(frame) if self._is_raw else b"data: " + frame
            if number is not None and data is not None:
                parts.append(b"id: %b@%b\n%b\n\n" % (number[1], number[2], data))
        return b"".join(parts)


class _Spoken(msgspec.Struct):
    """The fields of a record that hold a line."""

    kind: str = ""
    frame: msgspec.Raw = msgspec.Raw()
    text: str = ""


_decode = msgspec.json.Decoder(_Spoken).decode


def raw_event_of(frame: bytes) -> bytes | None:
    """Return the `data` lines of the CLI's line in a frame; None if it has none."""
    try:
        found = _decode(frame)
    except DECODE_ERRORS:
        loose = _json.loads(frame)
        found = _Spoken(str(loose.get("kind")), text=str(loose.get("text", "")))
    if found.kind not in SPOKEN:
        return None
    said = bytes(found.frame) or found.text.encode("utf-8", "surrogatepass")
    return b"\n".join(b"data: " + line for line in said.split(b"\n")) if said else None
