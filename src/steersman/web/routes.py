"""The routes of a bridge: requests in, answers and event streams out, and the page of the console.

Who may come in was decided before.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from steersman import _json
from steersman._json import JsonDict
from steersman._struct import DECODE_ERRORS
from steersman.journal import snapshot_to_json
from steersman.web.failures import Refusal, bad_request, json_response
from steersman.web.feed import Batch, Feed
from steersman.web.fields import Fields
from steersman.web.limits import Connections, WebLimits
from steersman.web.live import after_of
from steersman.web.openapi import description
from steersman.web.records import cut, frame_of_line, last_of, record_at, records_before
from steersman.web.security import API_HEADERS, PAGE_HEADERS
from steersman.web.verbs import SESSION_VERBS, Verbs
from steersman.web.viewers import LinkLogin, Viewer

PAGES = frozenset({"/", "/static/"})
"""Paths, and beginnings of paths, that need no login and contain no data."""

MOST_ENTRIES = 1000
USUAL_ENTRIES = 200
MOST_DIGITS = 15
WITH_ATTACHMENTS = frozenset({"begin", "send"})

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Routes:
    """Answers requests for one bridge."""

    def __init__(
        self,
        verbs: Verbs,
        limits: WebLimits,
        connections: Connections,
        login: LinkLogin | None,
        *,
        logged_out: Callable[[], Awaitable[None]],
        faults: Callable[[], Mapping[str, str]],
    ) -> None:
        self._faults = faults
        self._verbs = verbs
        self._limits = limits
        self._connections = connections
        self._login = login
        self._logged_out = logged_out
        self.streams: dict[EventStream, Request] = {}
        """The event streams that are open, and what asked for each."""

    def all(self) -> list[Route]:
        """Return the routes."""
        rows: list[tuple[str, str, Endpoint]] = [
            ("GET", "/", self._page),
            ("GET", "/static/{name}", self._file),
            ("GET", "/health", self._health),
            ("POST", "/login", self._log_in),
            ("POST", "/logout", self._log_out),
            ("GET", "/me", self._me),
            ("GET", "/openapi.json", self._openapi),
            ("GET", "/sessions", self._sessions),
            ("POST", "/sessions", self._begin),
            ("GET", "/sessions/{id}", self._session),
            ("GET", "/sessions/{id}/entries", self._entries),
            ("GET", "/sessions/{id}/entries/{seq:int}", self._entry),
            ("GET", "/sessions/{id}/events", self._events),
            ("POST", "/sessions/{id}/{verb}", self._do),
            ("GET", "/asks", self._asks),
            ("POST", "/asks", self._answer_many),
            ("POST", "/asks/{id:path}", self._answer),
        ]
        return [Route(path, endpoint, methods=[method]) for method, path, endpoint in rows]

    # The page and the login

    async def _page(self, request: Request) -> Response:
        return static_response(request, "index.html")

    async def _file(self, request: Request) -> Response:
        return static_response(request, request.path_params["name"])

    async def _health(self, _request: Request) -> Response:
        """Answer whether the background tasks run; the answer does not name the one that fails."""
        if self._faults():
            return json_response({"status": "failing"}, status=503)
        return json_response({"status": "ok"})

    async def _log_in(self, request: Request) -> Response:
        fields = await self._fields(request)
        return json_response({"token": self._own_login().log_in(fields.text("token"))})

    async def _log_out(self, request: Request) -> Response:
        await self._fields(request)
        self._own_login().log_out(request)
        await self._logged_out()
        return Response(status_code=204)

    def _own_login(self) -> LinkLogin:
        if self._login is None:
            raise Refusal(404, "not_found", "this server has a login of its own")
        return self._login

    async def _me(self, request: Request) -> Response:
        return json_response({"viewer": {"name": _viewer(request).name}})

    async def _openapi(self, request: Request) -> Response:
        return json_response(description(_mount(request), self._limits))

    # Sessions

    async def _sessions(self, request: Request) -> Response:
        return json_response(await self.listing(_viewer(request)))

    async def listing(self, viewer: Viewer, most: int | None = None) -> JsonDict:
        """Return the sessions that a viewer may see, and the agents that can begin one."""
        known = await self._verbs.conversations.all()
        seen = [each for each in known if viewer.is_allowed("see", each.id)][:most]
        return {
            "sessions": [self._verbs.summary(each) for each in seen],
            "agents": self._verbs.conversations.agents_for(viewer),
        }

    async def _begin(self, request: Request) -> Response:
        fields = await self._fields(request, has_attachments=True)
        answer, is_new = await self._verbs.begin(_viewer(request), fields)
        return json_response(answer, 201 if is_new else 200)

    async def _session(self, request: Request) -> Response:
        found = self._verbs.seen(_viewer(request), request.path_params["id"])
        snapshot = (
            None
            if found.session is None
            else _json.loads(snapshot_to_json(found.session.snapshot()))
        )
        return json_response({"session": self._verbs.summary(found), "snapshot": snapshot})

    async def _do(self, request: Request) -> Response:
        verb, session = request.path_params["verb"], request.path_params["id"]
        if verb not in SESSION_VERBS:
            raise Refusal(404, "not_found", f"verbs are {', '.join(SESSION_VERBS)}")
        fields = await self._fields(request, has_attachments=verb in WITH_ATTACHMENTS)
        return json_response(await self._verbs.do(_viewer(request), verb, session, fields))

    # Entries

    async def _entries(self, request: Request) -> Response:
        feed = self._verbs.seen(_viewer(request), request.path_params["id"]).feed
        before = _number(request, "before", None, 1, None)
        limit = _number(request, "limit", USUAL_ENTRIES, 1, MOST_ENTRIES)
        assert limit is not None
        shown = feed.last_seq

        def work() -> bytes:
            # Entries that are shown but not stored come to a viewer that follows after `last`.
            last = min(shown, last_of(feed.path).seq)
            # Only what `last` counts: a viewer that follows after it gets all others.
            end = last + 1 if before is None else min(before, last + 1)
            found, more = records_before(feed.path, end, limit)
            frames = [cut(frame_of_line(feed.prefix, line)) for _, line in found]
            rest = b'],"more":%b,"last":%d}' % (b"true" if more else b"false", last)
            return b'{"entries":[' + b",".join(frames) + rest

        return Response(await asyncio.to_thread(work), media_type="application/json")

    async def _entry(self, request: Request) -> Response:
        feed = self._verbs.seen(_viewer(request), request.path_params["id"]).feed
        line = await asyncio.to_thread(record_at, feed.path, request.path_params["seq"])
        if line is None:
            raise Refusal(404, "entry_not_found", "there is no entry with this number")
        return Response(frame_of_line(feed.prefix, line), media_type="application/json")

    async def _events(self, request: Request) -> Response:
        feed = self._verbs.seen(_viewer(request), request.path_params["id"]).feed
        given = request.headers.get("last-event-id") or request.query_params.get("after") or ""
        number, _, at = given.partition("@")
        after = after_of(
            _integer("after", number) if number else None, _time(at) if at else None, feed, 0
        )
        form = request.query_params.get("form", "record")
        if form not in ("record", "raw"):
            raise bad_request("form must be raw, or left out")
        connection = self._connections.one(_viewer(request).name)
        connection.__enter__()
        stream = EventStream(feed, after, is_raw=form == "raw")
        patience = self._limits.patience
        return _Streaming(self.streams, request, stream, patience, connection.__exit__)

    # Asks

    async def _asks(self, request: Request) -> Response:
        return json_response({"asks": await self.asks_for(_viewer(request))})

    async def asks_for(self, viewer: Viewer) -> list[JsonDict]:
        """Return the open asks that a viewer may see."""
        asks = await self._verbs.asks.list()
        return [self._verbs.asks.json(ask) for ask in asks if viewer.is_allowed("see", ask.session)]

    async def _answer(self, request: Request) -> Response:
        fields = await self._fields(request)
        return json_response(
            await self._verbs.answer(_viewer(request), request.path_params["id"], fields)
        )

    async def _answer_many(self, request: Request) -> Response:
        fields = await self._fields(request)
        return json_response(await self._verbs.answer_many(_viewer(request), fields))

    async def _fields(self, request: Request, *, has_attachments: bool = False) -> Fields:
        limits = self._limits
        most = limits.attachments if has_attachments else limits.body
        return Fields(await _body(request, most, limits.patience))


class _Streaming(StreamingResponse):
    """An event stream, which counts as a connection as long as it is open."""

    def __init__(
        self,
        streams: dict[EventStream, Request],
        request: Request,
        stream: EventStream,
        patience: float,
        leave: Callable[[None, None, None], object],
    ) -> None:
        headers = {**API_HEADERS, "X-Accel-Buffering": "no"}
        super().__init__(stream.events(), media_type="text/event-stream", headers=headers)
        self._streams, self._request, self._stream = streams, request, stream
        self._patience = patience
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._patience):
                await send(message)

        self._streams[self._stream] = self._request
        try:
            # A viewer that has stopped to read is disconnected.
            with suppress(TimeoutError):
                await super().__call__(scope, receive, send_in_time)
        finally:
            del self._streams[self._stream]
            self._leave(None, None, None)


async def _body(request: Request, most: int, patience: float) -> object:
    """Return the JSON of a body. What is too large is refused before it is read.

    The next part of it must come within `patience` seconds.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    too_large = Refusal(413, "too_large", f"a body may have {most} bytes here", most=most)
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(patience) as deadline:
            async for chunk in request.stream():
                data += chunk
                if len(data) > most:
                    raise too_large
                deadline.reschedule(asyncio.get_running_loop().time() + patience)
    except (ClientDisconnect, TimeoutError):
        raise Refusal(400, "cut_off", "the body ended early") from None
    # One of these headers is there, which no page of another site can set, not even for no body.
    has_token = "authorization" in request.headers
    if kind != "application/json" and (data or not has_token):
        raise Refusal(415, "not_json", "Content-Type must be application/json")
    if not data:
        return {}
    try:
        return _json.loads(bytes(data))
    except ValueError:
        raise bad_request("the body must be JSON, and not nested deeply") from None


def _viewer(request: Request) -> Viewer:
    viewer: Viewer = request.scope["steersman.viewer"]
    return viewer


def _mount(request: Request) -> str:
    return f"{request.scope.get('root_path', '').rstrip('/')}/"


def _number(
    request: Request, name: str, otherwise: int | None, least: int, most: int | None
) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return otherwise
    found = _integer(name, given)
    if found < least or (most is not None and found > most):
        raise bad_request(f"{name} must be {least} or more" + (f", up to {most}" if most else ""))
    return found


def _integer(name: str, given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= MOST_DIGITS):
        raise bad_request(f"{name} must be the number of an entry")
    return int(given)


def _time(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise bad_request("what follows @ must be the time of an entry") from None


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


FOLDER = Path(__file__).parent / "static"

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>steersman</title></head>
<body><h1>The console is not built</h1>
<p>The bridge works, but this checkout has no console. Build it with <code>make console</code>,
or install the wheel, which contains it.</p></body></html>
"""


def static_response(request: Request, name: str, folder: Path = FOLDER) -> Response:
    """Return a file of the console. Raises `Refusal` if there is none with this name."""
    kind = KINDS.get(Path(name).suffix)
    # A plain name: nothing above the folder and nothing hidden can be asked for.
    is_plain = name == Path(name).name and not name.startswith(".") and "\\" not in name
    data = _read(folder / name) if kind is not None and is_plain else None
    if data is None and name == "index.html":
        return Response(NOT_BUILT, 200, PAGE_HEADERS, KINDS[".html"])
    if data is None:
        raise Refusal(404, "not_found", "there is no such file")
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {**PAGE_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, kind)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        # A name with a NUL is no file name.
        return None
