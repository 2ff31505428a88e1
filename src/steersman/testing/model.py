"""A Messages API on loopback that plays a script.

Answers HTTP requests with the steps of a `Script` and records them. The stock CLI, or any other
client, uses it if `ANTHROPIC_BASE_URL` is `ScriptedModel.url`.
"""

from __future__ import annotations

import json
import math
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from steersman._json import Json, JsonObject, is_object
from steersman.errors import UsageError
from steersman.testing.api_stream import (
    Event,
    error_body,
    estimated_tokens,
    stream_of,
    whole_message,
    with_ids,
)
from steersman.testing.request import Kind, ModelRequest, kind_of
from steersman.testing.script import Cut, Fail, Script, Stall, Step

__all__ = ["RecordedRequest", "ScriptedModel"]

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = "/v1/models"

STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "transfer-encoding": "chunked",
}
REDACTED = "[redacted]"
MODEL = {"type": "model", "id": "claude-scripted", "display_name": "Scripted"}
STATUS_PHRASES = {status.value: status.phrase for status in HTTPStatus}
SECRET_HEADERS = frozenset({"x-api-key", "authorization", "proxy-authorization", "cookie"})

POLL = 0.02
"""Seconds between two checks whether the client has disconnected or the server must stop."""

CLOSING_TIMEOUT = 5.0
"""Seconds that `close` waits for each thread; threads need milliseconds."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One HTTP request as it arrived, with keys redacted."""

    method: str
    path: str
    """The path without the query."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: Json
    """The decoded JSON body; None if the request had none."""
    at: float
    """Seconds since the model was opened."""

    @property
    def model_request(self) -> ModelRequest | None:
        """The request as a script gets it; None if it was not a request for a message."""
        asks = self.method == "POST" and self.path == MESSAGES and is_object(self.body)
        return ModelRequest(self.body) if asks else None

    @property
    def kind(self) -> Kind | None:
        """The sender: the conversation, a subagent, or the CLI for its own purposes."""
        request = self.model_request
        return kind_of(request) if request else None


class ScriptedModel:
    """Serves a script as a Messages API on a free port of 127.0.0.1, in its own threads.

    The server runs inside `with`; leaving the block ends all stalls, connections and threads.
    Without a script the model echoes the prompt. With `keep` it keeps so many requests only, the
    last ones: each has the whole conversation.
    """

    def __init__(self, script: Script | None = None, *, keep: int | None = None) -> None:
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("keep", keep, "a number of requests, 1 or more, or None for all")
        self.script = script or Script()
        self._stage = _Stage(self.script, keep)
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self._stage)
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server; may be called twice."""
        self._stage.gate.close()
        if self._server is not None:
            self._server.stop()

    @property
    def url(self) -> str:
        """The address of the server, for `ANTHROPIC_BASE_URL`."""
        if self._server is None:
            raise RuntimeError("the model has an address only inside `with ScriptedModel(...)`")
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def requests(self) -> list[RecordedRequest]:
        """Every HTTP request so far that is kept, including token counts."""
        return self._stage.requests

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests of the conversation and its subagents, without the auxiliary ones."""
        return self._stage.asked

    def wait_for_request(self, count: int = 1, timeout: float = 10.0) -> ModelRequest:
        """Wait until `count` requests that belong to `asked` have come, and return the last one.

        This blocks; in a coroutine use `asyncio.to_thread`. Raises `TimeoutError`, and `UsageError`
        if that request is not kept.
        """
        return self._stage.wait_for_request(count, timeout)

    def release(self, timeout: float = 10.0) -> None:
        """Wait until the model stalls, then end all stalls. Raises `TimeoutError`."""
        self._stage.gate.release(timeout)


def _is_asked(request: RecordedRequest) -> bool:
    return request.model_request is not None and request.kind != "auxiliary"


class _Stage:
    """What the connections share: the script, the recorded requests, the stalls."""

    def __init__(self, script: Script, keep: int | None) -> None:
        self.gate = _Gate()
        self._script = script
        self._script_lock = threading.Lock()
        self._opened = time.monotonic()
        self._arrived = threading.Condition()
        self._requests: deque[RecordedRequest] = deque()
        self._keep = keep
        self._forgotten = 0
        """How many requests that would be in `asked` are not kept."""

    @property
    def requests(self) -> list[RecordedRequest]:
        with self._arrived:
            return list(self._requests)

    @property
    def asked(self) -> list[ModelRequest]:
        found = (each.model_request for each in self.requests if _is_asked(each))
        return [each for each in found if each is not None]

    def record(self, method: str, path: str, headers: Mapping[str, str], body: Json) -> None:
        at = time.monotonic() - self._opened
        with self._arrived:
            self._requests.append(RecordedRequest(method, path, headers, body, at))
            if self._keep is not None and len(self._requests) > self._keep:
                self._forgotten += _is_asked(self._requests.popleft())
            self._arrived.notify_all()

    def wait_for_request(self, count: int, timeout: float) -> ModelRequest:
        with self._arrived:
            has_come = self._arrived.wait_for(lambda: self._count() >= count, timeout)
            if has_come and count > self._forgotten:
                return self.asked[count - 1 - self._forgotten]
            came = self._count()
        if has_come:
            raise UsageError("count", count, f"one of the requests that are kept, {came} at most")
        raise TimeoutError(f"{came} of {count} requests came within {timeout} s")

    def _count(self) -> int:
        return self._forgotten + len(self.asked)

    def answer(self, request: ModelRequest) -> Step:
        with self._script_lock:
            return with_ids(self._script.answer(request), lambda: new_id("toolu"))


class _Gate:
    """Where stalls wait for their time, for a release, or for the client to disconnect."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[object] = set()
        self._is_closed = False

    def wait(self, stall: Stall, client: socket.socket) -> None:
        deadline = math.inf if stall.seconds is None else time.monotonic() + stall.seconds
        ticket = object()
        with self._changed:
            self._waiting.add(ticket)
            self._changed.notify_all()
            try:
                while ticket in self._waiting and time.monotonic() < deadline:
                    if self._is_closed or has_left(client):
                        raise ConnectionAbortedError
                    self._changed.wait(min(POLL, deadline - time.monotonic()))
            finally:
                self._waiting.discard(ticket)

    def release(self, timeout: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout):
                raise TimeoutError(f"nothing stalled within {timeout} s")
            self._waiting.clear()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    """An HTTP server that keeps track of its threads, so that all of them can be ended."""

    request_queue_size = 128

    def __init__(self, stage: _Stage) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stage = stage
        self._acceptor = threading.Thread(
            target=self.serve_forever, args=(POLL,), name="scripted-model", daemon=True
        )
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, socket.socket] = {}

    def start(self) -> None:
        self._acceptor.start()

    def stop(self) -> None:
        self.shutdown()
        self._acceptor.join(CLOSING_TIMEOUT)
        self.server_close()
        with self._lock:
            connections = list(self._connections.items())
        for thread, client in connections:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            thread.join(CLOSING_TIMEOUT)

    def server_bind(self) -> None:
        # HTTPServer would look up its own host name, which may use the network.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    def process_request(self, request: Json, client_address: Json) -> None:
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        with self._lock:
            self._connections[thread] = request
        thread.start()

    def process_request_thread(self, request: Json, client_address: Json) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections.pop(threading.current_thread(), None)

    def handle_error(self, request: Json, client_address: Json) -> None:
        # Tests disconnect clients on purpose.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection: routes the requests and plays the steps."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _stage(self) -> _Stage:
        assert isinstance(self.server, _Server)
        return self.server.stage

    def do_POST(self) -> None:
        """Serve a request of any method."""
        path = urlsplit(self.path).path
        body = decoded(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self._stage.record(self.command, path, redacted(self.headers.items()), body)
        routes: dict[tuple[str, str], Callable[[Json], None]] = {
            ("HEAD", "/"): self._send_root,
            ("GET", "/"): self._send_root,
            ("GET", MODELS): self._list_models,
            ("POST", COUNT_TOKENS): self._count_tokens,
            ("POST", MESSAGES): self._answer,
        }
        routes.get((self.command, path), self._not_found)(body)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - http.server's names

    def _send_root(self, _body: Json) -> None:
        self._send(200, {"status": "scripted"})

    def _list_models(self, _body: Json) -> None:
        self._send(200, {"data": [MODEL], "has_more": False})

    def _count_tokens(self, body: Json) -> None:
        self._send(200, {"input_tokens": estimated_tokens(json.dumps(body))})

    def _not_found(self, _body: Json) -> None:
        self._fail(Fail(404, f"no such path: {self.path}"))

    def _answer(self, body: Json) -> None:
        if not is_object(body):
            self._fail(Fail(400, "the body is not a JSON object"))
            return
        request = ModelRequest(body)
        step = self._stage.answer(request)
        play = self._stream if request.is_streaming else self._send_whole
        play(step, request.model)

    def _send_whole(self, step: Step, model: str) -> None:
        for part in step.parts:
            match part:
                case Stall():
                    self._stage.gate.wait(part, self.connection)
                case Cut():
                    self.close_connection = True
                    return
                case Fail():
                    self._fail(part)
                    return
                case _:
                    pass
        self._send(200, whole_message(step, model, new_id("msg")))

    def _stream(self, step: Step, model: str) -> None:
        is_open = False
        for happening in stream_of(step, model, new_id("msg")):
            if isinstance(happening, Stall):
                self._stage.gate.wait(happening, self.connection)
                continue
            if not is_open and isinstance(happening, Fail):
                self._fail(happening)
                return
            if isinstance(happening, Cut):
                self.close_connection = True
                break
            if not is_open:
                self._send_head(200, STREAM_HEADERS)
                is_open = True
            self._send_event(error_body(happening) if isinstance(happening, Fail) else happening)
        # Also after a cut: the CLI discards unread data of a body that has no final chunk.
        if is_open:
            self._send_chunk(b"")

    def _send_event(self, event: Event) -> None:
        self._send_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _fail(self, failure: Fail) -> None:
        wait = failure.retry_after
        headers = {} if wait is None else {"retry-after": f"{wait:g}"}
        self._send(failure.status, error_body(failure), headers)

    def _send(
        self, status: int, body: JsonObject, headers: Mapping[str, str] | None = None
    ) -> None:
        data = json.dumps(body).encode()
        own = {"content-type": "application/json", "content-length": str(len(data))}
        self._send_head(status, {**own, **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status, STATUS_PHRASES.get(status, "Scripted"))
        for name, value in {"request-id": new_id("req"), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Log nothing; `requests` has every request."""


def decoded(data: bytes) -> Json:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")


def redacted(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    lowered = ((name.lower(), value) for name, value in headers)
    return {name: REDACTED if name in SECRET_HEADERS else value for name, value in lowered}


def has_left(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:24]}"
