"""One session of the bridge: a conversation with its journal, whether its CLI runs or not.

It never belongs to a request: it is opened and closed in tasks of its own. Prompts open it, and
answers to asks in a store.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import msgspec

from steersman import _json
from steersman._json import JsonDict
from steersman.agent import Agent, Prompt, Session, Turn, When
from steersman.errors import ChannelClosed
from steersman.journal import Entry, Kind
from steersman.messages.system import Init, Status
from steersman.options.keywords import OptionKwargs
from steersman.ports import Asks, StoredTurn, SupportsStore
from steersman.web.failures import Refusal
from steersman.web.feed import Feed
from steersman.web.records import last_of

TITLE = 80
QUEUED_TEXT = 2000
"""Characters of a queued prompt that are shown."""

REST = frozenset({"idle", "completed", "failed", "cancelled", "closed"})
"""States in which nothing is lost if the server is killed."""

NOTABLE = frozenset(
    {
        Kind.PHASE,
        Kind.SETTLED,
        Kind.SENT,
        Kind.ASKED,
        Kind.DECIDED,
        Kind.RESTARTED,
        Kind.LIMIT,
        Kind.FAULT,
    }
)
"""Kinds of entries after which the summary is another one."""

JOURNAL_FILE = "journal file"
"""Where a fault is, if the journal cannot be written to its file or to a sink."""

_ONLY_OWNER = 0o600


class Notes(msgspec.Struct, kw_only=True):
    """What is not in the journal of a session; kept in a file beside it."""

    id: str
    agent: str = "default"
    title: str = ""
    by: str = ""
    created: float = 0.0
    state: str = "closed"
    since: float = 0.0
    cost_usd: float = 0.0
    turns: int = 0
    model: str | None = None
    permission_mode: str | None = None

    @classmethod
    def read(cls, path: Path) -> Notes | None:
        """Return the notes in a file; None if there are none that can be read."""
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if found.state not in REST:
            found.state = "broken_off"
        return found

    def write(self, path: Path) -> None:
        """Replace the file. What cannot be written is only missing in a list after a restart."""
        part = path.with_suffix(".new")
        with suppress(OSError):
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _ONLY_OWNER)
            with os.fdopen(number, "wb") as file:
                file.write(_json.dumps(msgspec.to_builtins(self)))
            part.replace(path)


@dataclass(frozen=True, slots=True)
class _Queued:
    turn: Turn
    text: str
    when: When
    by: str


class Conversation:
    """A session of the bridge."""

    def __init__(
        self,
        notes: Notes,
        folder: Path,
        agent: Agent | None,
        inbox: Asks,
        idle: float,
        changed: Callable[[str], None],
    ) -> None:
        self.id = notes.id
        self.notes = notes
        self._notes_path = folder / f"{notes.id}.json"
        self.feed = Feed(notes.id, folder / f"{notes.id}.jsonl", self._follow)
        self.agent = agent
        """What opens the session; None if the bridge has no agent of this name."""
        self._inbox = inbox
        self._idle = idle
        self._changed = changed
        self._lock = asyncio.Lock()
        self._session: Session | None = None
        self._sent: dict[str, _Queued] = {}
        self._is_stored = True
        """Whether the entries of this session are in its file; not with a full disk."""
        self._earlier = (notes.cost_usd, notes.turns)
        """Cost and turns of the sessions before this one."""
        self.used = time.monotonic()
        """When something last happened."""
        self.is_closed = False
        """Whether the bridge ends, so that the session is not opened again."""

    # Opening and closing

    @property
    def session(self) -> Session | None:
        """The session, if its CLI runs or is being restarted."""
        found = self._session
        return None if found is None or found.phase.is_over else found

    async def open(self) -> Session:
        """Return the running session; open it if it is closed."""
        async with self._lock:
            found = self.session
            if found is None:
                if self.is_closed:
                    raise Refusal(503, "closing", "the server ends")
                await self._end()
                found = self._session = await self._start()
            self.used = time.monotonic()
            return found

    async def _start(self) -> Session:
        assert self.agent is not None
        self._earlier = (self.notes.cost_usd, self.notes.turns)
        self._sent.clear()
        sinks = (*(self.agent.options.sinks or ()), self.feed)
        words: OptionKwargs = {"journal": self.feed.path, "sinks": sinks, "inbox": self._inbox}
        park = self.agent.options.park
        if (
            isinstance(self._inbox, SupportsStore)
            and park.after is None
            and math.isfinite(self._idle)
        ):
            # The next session continues the turn, so no CLI need wait for an answer.
            words["park"] = replace(park, after=self._idle)
        # Before it opens: its first entry may be one that cannot be stored.
        self._is_stored = True
        opened = await self.agent.open(self.id, **words)
        self.save()
        return opened

    async def _end(self) -> None:
        """Close the session, with all that it has; the caller has the lock."""
        found, self._session = self._session, None
        if found is not None:
            self._count(found)
            await found.aclose()
            self.save()

    async def send(self, prompt: Prompt, when: When, key: str | None, by: str) -> tuple[Turn, bool]:
        """Send a prompt; also returns whether it was not sent before with the same key."""
        for _ in range(2):
            session = await self.open()
            known = {turn.uuid for turn in session.turns}
            try:
                turn = await session.send(prompt, when=when, key=key)
            except ChannelClosed:
                # It ends or is parked in this moment; `open` starts the next one.
                await self.close(only=session)
                continue
            break
        else:
            raise ChannelClosed("the session ended while the prompt was sent")
        is_new = turn.uuid not in known
        if is_new:
            text = _clean(session, title_of(prompt, QUEUED_TEXT))
            self._sent[turn.uuid] = _Queued(turn, text, when, by)
        if not self.notes.title:
            self.notes.title = _clean(session, title_of(prompt))
            self.save()
        self._changed(self.id)
        return turn, is_new

    async def continue_turns(self, stored: Sequence[StoredTurn]) -> None:
        """Continue the turns that no session has settled; `stored` are they."""
        for _ in range(2):
            session = await self.open()
            try:
                turns = await session.resume_turns()
            except ChannelClosed:
                await self.close(only=session)
                continue
            break
        else:
            raise ChannelClosed("the session ended while its turns were continued")
        texts = {each.uuid: _clean(session, _text_of(each)) for each in stored}
        for turn in turns:
            if turn.uuid in texts and turn.uuid not in self._sent:
                self._sent[turn.uuid] = _Queued(turn, texts[turn.uuid], "later", "")
        self._changed(self.id)

    async def close(self, *, only_idle: bool = False, only: Session | None = None) -> None:
        """Close the session, if it is open, and `only` if given; the next prompt opens it again."""
        async with self._lock:
            found = self._session
            if only_idle and found is not None and not _is_idle(found):
                return
            if only in (None, found):
                await self._end()
        self._changed(self.id)

    @property
    def needs_cli(self) -> bool:
        """Whether the CLI of the session runs, starts or ends."""
        return self.session is not None or self._lock.locked()

    @property
    def is_at_rest(self) -> bool:
        """Whether the session is open and does nothing."""
        found = self.session
        return found is not None and not self._lock.locked() and _is_idle(found)

    # What is known

    def summary(self, asks: int) -> JsonDict:
        """Return the session as lists show it; `asks` is how many wait."""
        session = self.session
        notes = self.notes
        state = notes.state if session is None else session.state
        if session is None and state in ("idle", "completed"):
            state = "closed"
        line = state.replace("_", " ") if session is None else session.describe()
        return {
            **msgspec.to_builtins(notes),
            "state": state,
            "line": line,
            "is_open": session is not None,
            "asks": asks,
            "last": self.feed.last_seq,
            "is_stored": self._is_stored,
            "last_activity": max(self.feed.last_at, notes.created),
            "queued": [] if session is None else self._queued(),
        }

    def _queued(self) -> list[JsonDict]:
        return [
            {
                "turn": uuid,
                "text": each.text,
                "when": each.when,
                "by": each.by,
                "state": each.turn.state,
            }
            for uuid, each in self._sent.items()
            if each.turn.delivery == "queued" and not each.turn.is_settled
        ]

    def _follow(self, entries: Sequence[Entry]) -> None:
        """Follow the entries of the journal as they are written."""
        self.used = time.monotonic()
        is_other = False
        for entry in entries:
            if entry.kind in NOTABLE:
                is_other = True
                self._note(entry)
            elif entry.kind is Kind.MESSAGE and entry.line.startswith(b'{"type":"system"'):
                is_other = self._note_system(entry) or is_other
        if is_other:
            self._changed(self.id)

    def _note(self, entry: Entry) -> None:
        if entry.kind is Kind.PHASE:
            before, self.notes.state = self.notes.state, str(entry.details.get("after", ""))
            self.notes.since = entry.at
            if (before in REST) != (self.notes.state in REST):
                self.save()
        elif entry.kind is Kind.SETTLED:
            for uuid in entry.turns:
                self._sent.pop(uuid, None)
            if self._session is not None:
                self._count(self._session)
            self.save()
        elif entry.kind is Kind.FAULT and entry.details.get("where") == JOURNAL_FILE:
            # The file writes first, so what it has kept is there.
            self._is_stored = last_of(self.feed.path).seq >= entry.seq

    def _note_system(self, entry: Entry) -> bool:
        before = (self.notes.model, self.notes.permission_mode)
        match entry.message:
            case Init() as init:
                self.notes.model = init.model or self.notes.model
                self.notes.permission_mode = init.permission_mode or self.notes.permission_mode
            case Status(permission_mode=str() as mode):
                self.notes.permission_mode = mode
            case _:
                pass
        return before != (self.notes.model, self.notes.permission_mode)

    def chose(self, *, model: str | None = None, mode: str | None = None) -> None:
        """Note what a viewer has set; the CLI reports it only with the next turn."""
        self.notes.model = model or self.notes.model
        self.notes.permission_mode = mode or self.notes.permission_mode
        self._changed(self.id)

    def _count(self, session: Session) -> None:
        cost, turns = self._earlier
        self.notes.cost_usd = cost + session.cost_usd
        self.notes.turns = turns + session.snapshot().stats.turns

    def save(self) -> None:
        """Write the notes."""
        self.notes.write(self._notes_path)


def _is_idle(session: Session) -> bool:
    """Whether the session does nothing, also not in the background."""
    return session.state == "idle" and not session.snapshot().tasks


def _clean(session: Session, text: str) -> str:
    """Return `text` without the secrets that the session knows."""
    found: str = _json.loads(session.redacted(_json.dumps(text)))
    return found


def _text_of(stored: StoredTurn) -> str:
    """Return the first characters of a prompt that was stored."""
    content: object = stored.content
    return title_of(cast("Prompt", content), QUEUED_TEXT) if content else ""


def title_of(prompt: Prompt, most: int = TITLE) -> str:
    """Return the first characters of a prompt, on one line if it is a title."""
    if not isinstance(prompt, str):
        texts = (block.get("text") for block in prompt if block.get("type") == "text")
        prompt = next((text for text in texts if isinstance(text, str)), "")
    text = " ".join(prompt.split()) if most == TITLE else prompt
    return text if len(text) <= most else f"{text[: most - 1]}…"
