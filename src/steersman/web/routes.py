"""The routes of a bridge: requests in, answers out. Who may come in was decided before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from steersman import _json
from steersman._json import JsonDict
from steersman.journal import snapshot_to_json
from steersman.web.failures import Refusal, bad_request, json_response
from steersman.web.fields import Fields
from steersman.web.limits import Connections, WebLimits
from steersman.web.live import after_of
from steersman.web.openapi import description
from steersman.web.pages import last_of, record_at, records_before
from steersman.web.records import cut, frame_of_line
from steersman.web.security import API_HEADERS
from steersman.web.sse import EventStream
from steersman.web.static_files import static_response
from steersman.web.steering import SESSION_VERBS
from steersman.web.verbs import Verbs
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
