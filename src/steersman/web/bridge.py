"""Bridge: sessions behind HTTP, as an ASGI application that any framework mounts."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from steersman import _json
from steersman._background import BackgroundTasks
from steersman._json import JsonDict
from steersman.agent import Agent, Session
from steersman.errors import UsageError
from steersman.inbox import Inbox, StoredInbox
from steersman.web.asks import AnyInbox, Continuing, OpenAsks
from steersman.web.conversations import Conversations, check_agents
from steersman.web.failures import LOG, Refusal, error_response, refusal_of
from steersman.web.fields import Fields
from steersman.web.limits import Connections, WebLimits, Writes
from steersman.web.live import LiveConnection
from steersman.web.openapi import our_version
from steersman.web.reach import check_out_of_reach
from steersman.web.routes import PAGES, Routes
from steersman.web.security import API_HEADERS, LOOPBACK, Gate
from steersman.web.verbs import Verbs
from steersman.web.viewers import PROTOCOL, Authenticate, LinkLogin, Viewer

LOGINS = ".logins.json"
VIEWER = "steersman.viewer"
"""The key of a request's viewer in its scope."""
MOST_LISTED = 500
LONGEST_LOOK = 30.0
"""Seconds between two looks for idle sessions and stuck viewers, at most."""


class Bridge:
    """Serves sessions of `agents`. Mount it in any ASGI application, or run it with uvicorn.

    Sessions are kept in the directory `journals`, and found there again after a restart; without
    one they end with the bridge. Neither these nor the store of `inbox` may lie inside a directory
    of an agent, whose tools could read them. Without `authenticate` there is one viewer, who logs
    in with `link()` or with `token`. `hosts` are the names under which browsers may reach the
    server. Close it with `aclose()`, or use `async with`.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each thing that a server decides
        self,
        agents: Mapping[str, Agent] | Agent,
        *,
        inbox: AnyInbox | None = None,
        journals: str | Path | None = None,
        authenticate: Authenticate | None = None,
        limits: WebLimits | None = None,
        hosts: Iterable[str] = LOOPBACK,
        origins: Iterable[str] = (),
        token: str | None = None,
    ) -> None:
        self.limits = limits or WebLimits()
        if not isinstance(self.limits, WebLimits):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("limits", limits, "a WebLimits")
        self.inbox = _checked_inbox(inbox)
        self._gate = Gate(hosts, origins)
        known = check_agents(agents)
        given = _checked_journals(journals)
        places = {"journals": given or Path(tempfile.gettempdir())}
        if isinstance(self.inbox, StoredInbox) and self.inbox.path is not None:
            places["inbox"] = self.inbox.path
        check_out_of_reach(known, places)
        self._temporary, folder = _folder_for(given)
        self._login = LinkLogin(folder / LOGINS, token) if authenticate is None else None
        self._authenticate = authenticate or self._login
        limits = self.limits
        # The own login knows one viewer, who needs to leave no room.
        each = limits.connections if authenticate is None else limits.viewer_connections
        self._connections = Connections(limits.connections, each)
        self._conversations = Conversations(known, self.inbox, folder, self.limits, self._changed)
        self._asks = OpenAsks(self.inbox, self._asked, self._redacted)
        self._background = BackgroundTasks(LOG)
        self._continuing = Continuing(self._conversations, self.inbox, self._background)
        writes = Writes(self.limits.writes)
        self._verbs = Verbs(self._conversations, self._asks, self._continuing, self.limits, writes)
        self._routes = Routes(
            self._verbs,
            limits,
            self._connections,
            self._login,
            logged_out=self._end_logged_out,
            faults=lambda: self.faults,
        )
        self._router = Router(self._routes.all(), redirect_slashes=False, default=_no_route)
        self._live: dict[LiveConnection, HTTPConnection] = {}
        """The WebSockets that are open, and what asked for each."""
        self._is_started = self._is_closed = False

    # For the program that runs it

    @property
    def token(self) -> str:
        """The token of programs: `Authorization: Bearer TOKEN`. Keep it secret."""
        if self._login is None:
            raise UsageError("token", None, "a bridge without authenticate=")
        return self._login.token

    def link(self, url: str) -> str:
        """Return a link to the console at `url` that logs in the user who opens it first.

        What stands after `#` is never sent to a server, so that no log has it.
        """
        if self._login is None:
            raise UsageError("link", url, "a bridge without authenticate=")
        return f"{url.rstrip('/')}/#token={self._login.link()}"

    async def begin(
        self, text: str, *, by: str, agent: str | None = None, key: str | None = None
    ) -> str:
        """Begin a session with its first prompt, and return its id.

        The same key is the same session and the same turn.
        """
        fields = {"text": text, "agent": agent, "key": key}
        self._start()
        answer, _ = await self._verbs.begin(Viewer(by), Fields(fields))
        session: str = answer["session"]["id"]
        return session

    def session(self, session: str) -> Session | None:
        """Return the session with this id, if its CLI runs; None if it is closed or not known."""
        with suppress(Refusal):
            return self._conversations.find(session).session
        return None

    def began(self, session: str) -> str:
        """Return the name of the viewer who began a session; empty if it is not known."""
        with suppress(Refusal):
            return self._conversations.find(session).notes.by
        return ""

    @property
    def faults(self) -> Mapping[str, str]:
        """The background tasks that fail now, with their errors; they are started again.

        Those of its sessions and of an inbox in a store are among them. `GET /health` answers 503
        while there is one.
        """
        inbox = self.inbox
        stored: Mapping[str, str] = inbox.faults if isinstance(inbox, StoredInbox) else {}
        return {**self._background.faults, **self._conversations.faults, **stored}

    def disconnect(self, viewer: str) -> None:
        """Close the connections of a viewer, such as one who has logged out of your application.

        The page reports it. After a reload it is let in if `authenticate` still knows the viewer.
        """
        for connection in [*self._live]:
            if connection.viewer.name == viewer:
                connection.leave()
        for stream, request in [*self._routes.streams.items()]:
            if request.scope[VIEWER].name == viewer:
                stream.close()

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Disconnect all viewers and close all sessions. May be called again."""
        self._is_closed = True
        for connection in [*self._live]:
            connection.close()
        for stream in [*self._routes.streams]:
            stream.close()
        self._continuing.close()
        await self._background.aclose()
        await self._conversations.aclose()
        if self._temporary is not None:
            self._temporary.cleanup()

    # ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._live_with_server(receive, send)
        elif scope["type"] == "http":
            await self._on_request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._on_websocket(scope, receive, send)

    async def _live_with_server(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _on_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = HTTPConnection(scope)
        answered = _Answered(send, self._gate.headers_for(asked))
        try:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in asked.headers:
                # A browser asks whether the page may send its request, without login.
                self._gate.check(asked, is_page=False)
                await Response(status_code=204)(scope, receive, answered)
                return
            scope[VIEWER] = await self._let_in(asked)
            # Routes raise then, and do not answer with text of their own.
            scope.setdefault("app", self)
            await self._router(scope, receive, answered)
        except Exception as error:
            if answered.has_begun:
                # Half an answer is sent already, so the server closes the connection.
                raise
            response = error_response(_refusal_of(error))
            await response(scope, receive, answered)

    async def _on_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            asked = HTTPConnection(scope)
            viewer = await self._let_in(asked)
            assert viewer is not None
            with self._connections.one(viewer.name):
                await receive()
                protocol = PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None
                await send({"type": "websocket.accept", "subprotocol": protocol})
                await self._serve_live(asked, viewer, receive, send)
        except Refusal as refusal:
            await _refuse_websocket(WebSocket(scope, receive, send), refusal)

    async def _serve_live(
        self, asked: HTTPConnection, viewer: Viewer, receive: Receive, send: Send
    ) -> None:
        async def again() -> Viewer:
            return await self._still(asked, viewer)

        connection = LiveConnection(viewer, again, self._verbs, self.limits, receive, send)
        self._live[connection] = asked
        try:
            connection.begin_with(await self._first_frame(viewer))
            await connection.run()
        finally:
            self._live.pop(connection, None)

    async def _first_frame(self, viewer: Viewer) -> JsonDict:
        return {
            "type": "hello",
            "viewer": {"name": viewer.name},
            **await self._routes.listing(viewer, MOST_LISTED),
            "asks": await self._routes.asks_for(viewer),
            "version": our_version(),
            "limits": {"body": self.limits.body, "attachments": self.limits.attachments},
        }

    async def _let_in(self, connection: HTTPConnection) -> Viewer | None:
        """Return who sends a request. Raises `Refusal`. The page needs no viewer."""
        path = _path(connection.scope)
        is_live = connection.scope["type"] == "websocket"
        is_page = not is_live and (path in PAGES or path.startswith("/static/"))
        self._gate.check(connection, is_page=is_page)
        if is_live and path != "/live":
            raise Refusal(404, "not_found", "the WebSocket is at /live")
        if self._is_closed:
            raise Refusal(503, "closing", "the server ends")
        self._start()
        if is_page or path in {"/login", "/health"}:
            return None
        return await self._viewer_of(connection)

    async def _viewer_of(self, connection: HTTPConnection) -> Viewer:
        assert self._authenticate is not None
        viewer = await self._authenticate(connection)
        if viewer is None:
            raise Refusal(401, "not_logged_in", "log in first: open the link that was printed")
        return viewer

    async def _still(self, connection: HTTPConnection, viewer: Viewer) -> Viewer:
        """Return the viewer of a connection that is open. Raises `Refusal` if it is another now."""
        found = await self._viewer_of(connection)
        if found.name != viewer.name:
            raise Refusal(401, "not_logged_in", "another user is logged in now: connect again")
        return found

    # Work of its own

    def _start(self) -> None:
        """Start the tasks of the bridge. A mounted one learns of its start by the first request."""
        if self._is_started or self._is_closed:
            return
        self._is_started = True
        keep = self._background.keep
        keep("the watch of asks", self._asks.watch, meanwhile="viewers see no new asks")
        keep(
            "the watch of answered sessions",
            self._continuing.watch,
            meanwhile="answers of other processes continue nothing",
        )
        keep("the closing of idle sessions", self._tidy, meanwhile="idle sessions stay open")

    async def _tidy(self) -> None:
        """Close idle sessions, and the connections of viewers that have stopped to read."""
        while True:
            limits = self.limits
            await asyncio.sleep(min(limits.idle / 4, limits.patience / 4, LONGEST_LOOK))
            for connection in [*self._live]:
                connection.leave_if_stuck()
            await self._end_logged_out()
            await self._conversations.close_idle()

    async def _end_logged_out(self) -> None:
        """Close the connections of viewers that are no longer logged in."""
        open_now = [(each.leave, asked, each.viewer) for each, asked in self._live.items()]
        open_now += [
            (stream.close, request, request.scope[VIEWER])
            for stream, request in self._routes.streams.items()
        ]

        async def check(leave: Callable[[], None], asked: HTTPConnection, viewer: Viewer) -> None:
            try:
                async with asyncio.timeout(self.limits.patience):
                    await self._still(asked, viewer)
            except Refusal:
                leave()
            except Exception:  # noqa: BLE001 - the caller's own code; a guard fails closed
                LOG.exception("authenticate failed for a connection that is open")
                leave()

        await asyncio.gather(*(check(*each) for each in open_now))

    def _changed(self, session: str) -> None:
        for connection in self._live:
            connection.notify_summary(session)

    def _asked(self, frame: JsonDict, session: str) -> None:
        line = _json.dumps(frame).decode()
        for connection in self._live:
            connection.notify_ask(line, session, frame["ask"]["id"])
        self._changed(session)

    def _redacted(self, session: str, line: bytes) -> bytes | None:
        found = self.session(session)
        if found is not None:
            return found.redacted(line)
        # A store has asks without known secrets.
        return line if isinstance(self.inbox, StoredInbox) else None


class _Answered:
    """Sends, adds the headers that every answer has, and knows whether one has begun."""

    def __init__(self, send: Send, more: Mapping[str, str]) -> None:
        self._send = send
        self._more = [(name.lower().encode(), value.encode()) for name, value in more.items()]
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = list(message.get("headers", []))
            names = {name.lower() for name, _ in headers}
            headers += [pair for pair in (*_HEADERS, *self._more) if pair[0] not in names]
            message = {**message, "headers": headers}
        await self._send(message)


_HEADERS = [(name.lower().encode(), value.encode()) for name, value in API_HEADERS.items()]


async def _no_route(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refusal(404, "not_found", "there is no such route")


async def _refuse_websocket(websocket: WebSocket, refusal: Refusal) -> None:
    """Refuse the upgrade with an answer, or close where the server cannot send one."""
    if "websocket.http.response" in websocket.scope.get("extensions", {}):
        await websocket.send_denial_response(error_response(refusal))
        # uvicorn logs an error if this returns before it has noticed that the connection is closed.
        await asyncio.sleep(0)
    else:
        await websocket.close(4000 + refusal.status, refusal.code)


def _refusal_of(error: Exception) -> Refusal:
    if isinstance(error, HTTPException):
        # The only one that routes raise: there is a route, but not for this method.
        return Refusal(405, "method_not_allowed", "this route has other methods")
    return refusal_of(error)


def _path(scope: Scope) -> str:
    """Return the path below the place where the bridge is mounted."""
    path, root = scope["path"], scope.get("root_path", "")
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def _checked_inbox(inbox: object) -> AnyInbox:
    if inbox is None:
        return Inbox()
    if not isinstance(inbox, Inbox | StoredInbox):
        raise UsageError("inbox", inbox, "an Inbox, or the inbox() of a store")
    return inbox


def _checked_journals(journals: object) -> Path | None:
    """Return the path of the journals; None if none is given."""
    if journals is None:
        return None
    if not isinstance(journals, str | Path) or not str(journals):
        raise UsageError("journals", journals, "the path of a directory")
    return Path(journals).absolute()


def _folder_for(folder: Path | None) -> tuple[tempfile.TemporaryDirectory[str] | None, Path]:
    """Make the directory of the journals, and return it; a temporary one if none is given."""
    if folder is None:
        temporary = tempfile.TemporaryDirectory(prefix="steersman-web-")
        return temporary, Path(temporary.name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        allowed = f"a directory that can be written ({error.strerror})"
        raise UsageError("journals", str(folder), allowed) from None
    return None, folder
