"""One WebSocket of one tab: what it follows, what it is still to be sent, and what it asks for.

Frames of sessions are pulled when the connection can take them, so a tab that does not read holds a
few cursors. Of summaries only the newest is sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.web.failures import LOG, Refusal, bad_request, refusal_of
from steersman.web.feed import Batch, Feed
from steersman.web.fields import Fields
from steersman.web.limits import WebLimits
from steersman.web.verbs import Verbs
from steersman.web.viewers import Viewer

MOST_UNSENT = 200
"""Answers that wait to be sent; while there are more, no message of the client is read."""
MOST_DOING = 32
"""Verbs of one connection that run at once."""
MOST_ID = 100
GOING_AWAY = 1001
NOT_LOGGED_IN = 4401
"""4000, and the status with which a request would be refused."""

Send: TypeAlias = Callable[[JsonDict], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Again: TypeAlias = Callable[[], Awaitable[Viewer]]
"""Finds out again who the viewer is. Raises `Refusal` if the login has ended, or is of another."""


class LiveConnection:
    """One WebSocket, from its first frame to its last."""

    def __init__(
        self,
        viewer: Viewer,
        again: Again,
        verbs: Verbs,
        limits: WebLimits,
        receive: Receive,
        send: Send,
    ) -> None:
        self.viewer = viewer
        self._again = again
        self._entry = asyncio.Lock()
        """One verb asks for the viewer at a time, so that prompts keep their order."""
        self._verbs = verbs
        self._limits = limits
        self._receive = receive
        self._send = send
        self._cursors: dict[str, int] = {}
        self._feeds: dict[str, Feed] = {}
        self._waiting: dict[str, None] = {}
        """The sessions that have frames after their cursors."""
        self._answers: deque[str] = deque()
        self._summaries: dict[str, None] = {}
        self._asks: dict[tuple[str, str], str] = {}
        self._news = asyncio.Event()
        self._has_room = asyncio.Event()
        self._doing: set[asyncio.Task[None]] = set()
        self._closing = 0
        """The code with which the connection is to be closed; 0 while it is not."""
        self._sends_since: float | None = None
        """When the message began that is being sent, by the clock of the loop."""
        self._sender: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve the connection until one side closes it."""
        self._sender = sender = asyncio.Task(self._send_all())
        reader = asyncio.Task(self._read_all())
        try:
            done, _ = await asyncio.wait({sender, reader}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = None if task.cancelled() else task.exception()
                # ASGI servers raise an `OSError` for a message to a viewer who has left.
                if error is not None and not isinstance(error, OSError):
                    LOG.error("a live connection has failed", exc_info=error)
        finally:
            for feed in self._feeds.values():
                feed.remove(self._notify)
            for task in (sender, reader, *self._doing):
                task.cancel()
            await asyncio.gather(sender, reader, *self._doing, return_exceptions=True)

    # Notified by others; never blocks

    def begin_with(self, first: JsonDict) -> None:
        """Send `first` before all else that has come meanwhile."""
        self._answers.appendleft(_line(first))
        self._news.set()

    def _notify(self, session: str) -> None:
        self._waiting[session] = None
        self._news.set()

    def notify_summary(self, session: str) -> None:
        """Learn that the summary of a session is another one."""
        if self.viewer.is_allowed("see", session):
            self._summaries[session] = None
            self._news.set()

    def notify_ask(self, frame: str, session: str, ask_id: str) -> None:
        """Learn that an ask was opened or has ended. Only its last change is sent."""
        if self.viewer.is_allowed("see", session):
            self._asks[session, ask_id] = frame
            self._news.set()

    def close(self) -> None:
        """Send what is left, and end."""
        self._answers.append(_line({"type": "closing", "message": "the server ends"}))
        self._closing = GOING_AWAY
        self._news.set()

    def leave(self) -> None:
        """Send nothing more, and end: the viewer is no longer logged in."""
        self._closing = NOT_LOGGED_IN
        self._news.set()

    def leave_if_stuck(self) -> None:
        """End the connection if one message takes longer than `WebLimits.patience`."""
        since, now = self._sends_since, asyncio.get_running_loop().time()
        if since is not None and self._sender is not None and now - since > self._limits.patience:
            self._sender.cancel()

    # Sending

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            self._news.clear()
            while self._closing != NOT_LOGGED_IN and (
                text := self._next_news() or await self._next_frames()
            ):
                # A timeout for each message would cost more than the message.
                self._sends_since = loop.time()
                await self._send({"type": "websocket.send", "text": text})
                self._sends_since = None
            if self._closing:
                await self._send({"type": "websocket.close", "code": self._closing})
                return

    def _next_news(self) -> str:
        """Return all that is not a record: answers, summaries, asks."""
        if not (self._answers or self._summaries or self._asks):
            return ""
        lines = [*self._answers]
        self._answers.clear()
        self._has_room.set()
        for session in self._summaries:
            # Asks in a store may be of sessions that this bridge does not have.
            with suppress(Refusal):
                found = self._verbs.conversations.find(session)
                lines.append(_line({"type": "session", "session": self._verbs.summary(found)}))
        self._summaries.clear()
        lines += self._asks.values()
        self._asks.clear()
        return "\n".join(lines)

    async def _next_frames(self) -> str:
        """Return the next records of one of the sessions that have some."""
        while self._waiting:
            session = next(iter(self._waiting))
            feed, after = self._feeds.get(session), self._cursors.get(session, 0)
            if feed is None:
                del self._waiting[session]
                continue
            batch = feed.ready(after) or await feed.next(after)
            if self._cursors.get(session) != after:
                # Followed from another number, or no more, while the file was read.
                continue
            del self._waiting[session]
            if text := self._advance(session, feed, after, batch):
                return text
        return ""

    def _advance(self, session: str, feed: Feed, after: int, batch: Batch) -> str:
        if not batch.upto:
            return ""
        self._cursors[session] = batch.upto
        if batch.upto < feed.last_seq:
            # Behind the other sessions, so that each gets its turn.
            self._waiting[session] = None
        if batch.lost:
            frame = {"type": "lagged", "session": session, "after": after, "lost": batch.lost}
            return "\n".join(filter(None, (_line(frame), batch.text)))
        return batch.text

    # Receiving

    async def _read_all(self) -> None:
        while True:
            while len(self._answers) > MOST_UNSENT:
                self._has_room.clear()
                await self._has_room.wait()
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            if message["type"] == "websocket.receive":
                self._on_message(message.get("text"), message.get("bytes"))

    def _on_message(self, text: str | None, data: bytes | None) -> None:
        session: Json = None
        try:
            found = _decoded(text, data, self._limits.body)
            session = found.get("session")
            self._on_frame(found)
        except Exception as error:  # noqa: BLE001 - answered; the connection stays open
            frame: JsonDict = {"type": "error", "error": refusal_of(error).body}
            if isinstance(session, str) and len(session) <= MOST_ID:
                frame["session"] = session
            self._answer(frame)

    def _on_frame(self, found: JsonDict) -> None:
        match found.get("type"):
            case "follow":
                self._follow(Fields(found).text("session"), found)
            case "unfollow":
                self._unfollow(Fields(found).text("session"))
            case "ping":
                self._answer({"type": "pong", "id": _id_of(found)})
            case "do":
                self._do(found)
            case _:
                raise bad_request("type must be one of follow, unfollow, do, ping")

    def _follow(self, session: str, found: JsonDict) -> None:
        conversation = self._verbs.seen(self.viewer, session)
        feed = conversation.feed
        after = after_of(found.get("after"), found.get("at"), feed, feed.last_seq)
        self._cursors[feed.session] = after
        self._feeds[feed.session] = feed
        feed.add(self._notify)
        self._answer(
            {"type": "following", "session": feed.session, "after": after, "last": feed.last_seq}
        )
        self._notify(feed.session)

    def _unfollow(self, session: str) -> None:
        feed = self._feeds.pop(session.lower(), None)
        if feed is not None:
            feed.remove(self._notify)
            del self._cursors[feed.session]
        self._answer({"type": "unfollowed", "session": session[:MOST_ID]})

    def _do(self, found: JsonDict) -> None:
        number = _id_of(found)
        if number is None:
            raise bad_request("id is missing: a text that comes back with the answer")
        if len(self._doing) >= MOST_DOING:
            words = f"{MOST_DOING} verbs of this connection run already"
            refusal = Refusal(429, "too_many_writes", words, retry_after=1)
            self._answer({"type": "done", "id": number, "error": refusal.body})
            return
        task = asyncio.Task(self._done(number, found))
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _done(self, number: str, found: JsonDict) -> None:
        frame: JsonDict = {"type": "done", "id": number}
        try:
            fields = Fields(found)
            async with self._entry:
                self.viewer = await self._still_here()
            verb, session = fields.text("verb"), fields.text_or_none("session") or ""
            frame["answer"] = await self._verbs.do(self.viewer, verb, session, fields)
        except Exception as error:  # noqa: BLE001 - answered; the connection stays open
            frame["error"] = refusal_of(error).body
        self._answer(frame)

    async def _still_here(self) -> Viewer:
        """Return the viewer, who is still logged in. Raises `Refusal`, and ends the connection."""
        try:
            return await self._again()
        except Refusal:
            self.leave()
            raise

    def _answer(self, frame: JsonDict) -> None:
        self._answers.append(_line(frame))
        self._news.set()


def after_of(given: Json, at: Json, feed: Feed, otherwise: int) -> int:
    """Return the number of a cursor. Raises `Refusal` if it is none of this journal.

    `at` is the time of the entry with this number, as it was shown.
    """
    if given is None:
        return otherwise
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise bad_request("after must be the number of an entry, 0 or more")
    if given > feed.last_seq:
        last = feed.last_seq
        words = f"the journal has {last} entries: begin again, with after at most {last}"
        raise Refusal(400, "after_in_future", words, last=last)
    if at is None or given == 0:
        return given
    if not isinstance(at, int | float) or isinstance(at, bool):
        raise bad_request("at must be the time of the entry that after names, or left out")
    if not feed.has(given, at):
        words = f"entry {given} is not the one that was shown, which could not be stored"
        hint = "begin again, with the entries that are stored"
        raise Refusal(400, "after_replaced", f"{words}: {hint}", last=feed.last_seq)
    return given


def _decoded(text: str | None, data: bytes | None, most: int) -> JsonDict:
    raw = text.encode("utf-8", "surrogatepass") if text is not None else data or b""
    if len(raw) > most:
        words = f"a frame may have {most} bytes; send what is larger by POST"
        raise Refusal(413, "too_large", words, most=most)
    try:
        found = _json.loads(raw)
    except ValueError:
        raise bad_request("a frame must be JSON, and not nested deeply") from None
    if not _json.is_object(found):
        raise bad_request("a frame must be a JSON object")
    return found


def _id_of(found: JsonDict) -> str | None:
    number = found.get("id")
    if number is None:
        return None
    if not isinstance(number, str) or not number or len(number) > MOST_ID:
        raise bad_request(f"id must be a text of 1 to {MOST_ID} characters")
    return number


def _line(frame: JsonDict) -> str:
    return _json.dumps(frame).decode()
