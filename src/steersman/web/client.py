"""A client of a bridge: typed calls, and records that are followed over lost connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.agent import When
from steersman.errors import UsageError, WebError
from steersman.journal.files import Header, Record, read_line
from steersman.permissions import Ask
from steersman.permissions.asks import Answer
from steersman.permissions.json_form import answer_to_json, ask_from_json

__all__ = ["Begun", "Client", "Follow", "Outcome", "Page", "Summary", "WebError"]

Verb = Literal["interrupt", "pause", "resume", "cancel", "set_model", "set_permission_mode"]

TIMEOUT = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds before a lost connection is made again."""
FAILURES = 500
LAGGED = "lagged"
MOST_FRAME = 256 * 1024 * 1024

T = TypeVar("T")


class Summary(msgspec.Struct, kw_only=True, frozen=True):
    """A session as lists show it. Fields that this release does not know are ignored."""

    id: str
    agent: str = ""
    title: str = ""
    by: str = ""
    created: float = 0.0
    state: str = ""
    since: float = 0.0
    line: str = ""
    is_open: bool = False
    asks: int = 0
    cost_usd: float = 0.0
    turns: int = 0
    last: int = 0
    is_stored: bool = True
    """Whether the newest entries are in the journal's file; not while its disk is full."""
    last_activity: float = 0.0
    model: str | None = None
    permission_mode: str | None = None
    queued: list[JsonDict] = []


class Begun(msgspec.Struct, frozen=True):
    """A session that was begun, and the uuid of its first prompt."""

    session: Summary
    turn: str | None = None


class Outcome(msgspec.Struct, kw_only=True, frozen=True):
    """How an ask ended."""

    id: str
    session: str = ""
    how: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of a session before some number, the oldest first."""

    entries: list[Record]
    more: bool
    """Whether there are older ones."""
    last: int
    """The number of the newest entry of the session."""


class Client:
    """Talks to the bridge at `url`. Use `async with`, or close it with `aclose()`.

    Refusals raise `WebError`. Prompts with a `key` may be sent again after an error.
    """

    def __init__(
        self, url: str, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self._url = _checked_url(url)
        self._headers = dict(headers or {})
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(headers=self._headers, timeout=TIMEOUT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # Sessions

    async def sessions(self) -> list[Summary]:
        """Return the sessions, those with the newest activity first."""
        return _as(list[Summary], (await self._get("/sessions"))["sessions"])

    async def session(self, session: str) -> Summary:
        """Return one session."""
        return _as(Summary, (await self._get(f"/sessions/{quote(session)}"))["session"])

    async def begin(
        self,
        text: str | None = None,
        *,
        agent: str | None = None,
        key: str | None = None,
        title: str | None = None,
    ) -> Begun:
        """Begin a session with its first prompt. The same key is the same session and turn."""
        body = {"text": text, "agent": agent, "key": key, "title": title}
        return _as(Begun, await self._post("/sessions", _given(body)))

    async def send(
        self, session: str, text: str, *, when: When = "later", key: str | None = None
    ) -> str:
        """Send a prompt and return the uuid of its turn. The same key is the same turn."""
        body = _given({"text": text, "when": when, "key": key})
        turn: str = (await self._post(f"/sessions/{quote(session)}/send", body))["turn"]
        return turn

    async def withdraw(self, session: str, turn: str) -> bool:
        """Cancel a prompt that the model has not seen; returns whether that worked."""
        body = {"turn": turn}
        answer = await self._post(f"/sessions/{quote(session)}/withdraw", body)
        return bool(answer["withdrawn"])

    async def do(self, session: str, verb: Verb, **fields: Json) -> JsonDict:
        """Do another verb to a session: `await client.do(id, "interrupt")`."""
        return await self._post(f"/sessions/{quote(session)}/{verb}", fields)

    # Entries

    async def entries(self, session: str, *, before: int | None = None, limit: int = 200) -> Page:
        """Return entries before a number, without partial messages; long values are cut."""
        query = _given({"before": before, "limit": limit})
        found = await self._get(f"/sessions/{quote(session)}/entries", query)
        records = [_record(_json.dumps(each)) for each in found["entries"]]
        return Page(records, bool(found["more"]), int(found["last"]))

    async def entry(self, session: str, seq: int) -> Record:
        """Return one entry, whole."""
        response = await self._http.get(f"{self._url}/sessions/{quote(session)}/entries/{seq}")
        _check(response.status_code, response.content)
        return _record(response.content)

    def follow(self, session: str, *, after: int = 0, at: float | None = None) -> Follow:
        """Iterate over the records after number `after`, and those to come, without gap or double.

        A record of kind `lagged` takes the place of `details["lost"]` entries that cannot be read
        any more. A lost connection is made again. `at` is the time of the record with the number
        `after`. Raises `WebError` if the bridge refuses, such as with the code `after_replaced`:
        what was read could not be stored, and other entries have its numbers now.
        """
        return Follow(self._url, self._headers, session, after, at)

    # Asks

    async def asks(self) -> list[Ask]:
        """Return the open asks of all sessions, the oldest first."""
        found = await self._get("/asks")
        return [ask_from_json(_json.dumps(each)) for each in found["asks"]]

    async def answer(self, ask: Ask, answer: Answer) -> Outcome:
        """Answer an ask as it was shown. Raises `WebError` if `error.by` has answered it first."""
        body = {
            "session": ask.session,
            # Of what the server has: what is shown here may lack secrets.
            "seen": ask.unknown.get("digest", ask.digest),
            "answer": _json.loads(answer_to_json(answer)),
        }
        return _as(Outcome, await self._post(f"/asks/{quote(ask.id)}", body))

    async def _get(self, path: str, query: JsonDict | None = None) -> JsonDict:
        response = await self._http.get(self._url + path, params=query)
        return _check(response.status_code, response.content)

    async def _post(self, path: str, body: JsonDict) -> JsonDict:
        headers = {"Content-Type": "application/json"}
        response = await self._http.post(
            self._url + path, content=_json.dumps(body), headers=headers
        )
        return _check(response.status_code, response.content)


class Follow(AsyncIterator[Record]):
    """The records of one session. `after` and `at` are number and time of the last one read."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        session: str,
        after: int,
        at: float | None = None,
    ) -> None:
        self.session = session
        self.after = after
        self.at = at
        self.connections = 0
        """How many connections were made so far."""
        self._url = "ws" + url.removeprefix("http") + "/live"
        self._headers = headers
        self._records = self._read()

    async def __anext__(self) -> Record:
        record = await anext(self._records)
        self.after, self.at = record.seq, None if record.kind == LAGGED else record.at
        return record

    async def aclose(self) -> None:
        """Close the connection."""
        await self._records.aclose()

    async def _read(self) -> AsyncGenerator[Record, None]:
        pause = FIRST_PAUSE
        while True:
            before = self.after
            try:
                async with connect(
                    self._url,
                    additional_headers=self._headers,
                    max_size=MOST_FRAME,
                    compression=None,
                ) as socket:
                    self.connections += 1
                    async for record in self._records_of(socket):
                        yield record
            except InvalidStatus as error:
                if error.response.status_code < FAILURES:
                    _check(error.response.status_code, bytes(error.response.body))
            except (OSError, InvalidHandshake, WebSocketException):
                pass
            pause = FIRST_PAUSE if self.after > before else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _records_of(self, socket: ClientConnection) -> AsyncIterator[Record]:
        follow = {"session": self.session, "after": self.after, "at": self.at}
        await socket.send(_json.dumps({"type": "follow", **_given(follow)}).decode())
        async for message in socket:
            data = message.encode() if isinstance(message, str) else message
            for line in data.split(b"\n"):
                if line.startswith(b'{"session":'):
                    yield _record(line)
                elif lagged := _other(_json.loads(line)):
                    yield lagged


def _checked_url(url: object) -> str:
    found = urlsplit(url) if isinstance(url, str) else None
    if found is None or found.scheme not in ("http", "https") or not found.hostname:
        raise UsageError("url", url, "the address of a bridge, such as http://127.0.0.1:8080")
    return found.geturl().rstrip("/")


def _other(frame: JsonDict) -> Record | None:
    """Return the record of a `lagged` frame. Raises `WebError` if a frame is a refusal."""
    if frame.get("type") == "error":
        error = frame["error"]
        raise WebError(400, str(error.get("code")), str(error.get("message")), error)
    if frame.get("type") != LAGGED:
        return None
    lost = int(frame["lost"])
    return Record(int(frame["after"]) + lost, 0.0, LAGGED, details={"lost": lost})


def _record(line: bytes) -> Record:
    found = read_line(line)
    if isinstance(found, Header):
        raise WebError(502, "bad_answer", "the server sent something else than a record")
    return found


def _given(fields: JsonDict) -> JsonDict:
    return {name: value for name, value in fields.items() if value is not None}


def _as(kind: type[T], value: Json) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise WebError(502, "bad_answer", f"the answer cannot be read: {error}") from None


def _check(status: int, content: bytes) -> JsonDict:
    """Return the body of an answer. Raises `WebError` if it is a refusal."""
    try:
        found: Json = _json.loads(content or b"{}")
    except ValueError:
        found = None
    if not _json.is_object(found):
        raise WebError(status, "bad_answer", "the answer is not JSON; is it a bridge?")
    error = found.get("error")
    if _json.is_object(error):
        raise WebError(status, str(error.get("code")), str(error.get("message")), error)
    return found
