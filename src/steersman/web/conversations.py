"""All sessions of a bridge: those that are open, and those whose journals are in its directory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID, uuid4, uuid5

from steersman._background import faults_of
from steersman._json import is_mapping
from steersman.agent import Agent
from steersman.errors import UsageError
from steersman.options.checks import UUID as UUID_FORM
from steersman.ports import Asks
from steersman.web.conversation import Conversation, Notes
from steersman.web.failures import LOG, Refusal
from steersman.web.limits import WebLimits
from steersman.web.viewers import Viewer

NAMESPACE = UUID("5b1c3a52-6d0e-4f5e-9a39-6b0c1b3f3f61")
"""Makes ids of sessions from keys, so that the same key is the same session."""

CLOSING = 20.0
"""Seconds that all sessions together have to close."""


class Conversations:
    """The sessions of a bridge, by id."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        inbox: Asks,
        folder: Path,
        limits: WebLimits,
        changed: Callable[[str], None],
    ) -> None:
        self.agents = agents
        self._inbox = inbox
        self._folder = folder
        self._limits = limits
        self._changed = changed
        self._known: dict[str, Conversation] = {}
        self._is_closed = False

    # Finding

    def find(self, session: str) -> Conversation:
        """Return a session. Raises `Refusal` if there is none with this id."""
        found = self._known.get(session)
        if found is None and UUID_FORM.fullmatch(session):
            found = self._load(session.lower())
        if found is None:
            raise Refusal(404, "session_not_found", "there is no session with this id")
        return found

    async def all(self) -> list[Conversation]:
        """Return all sessions, those with the newest activity first."""
        names = await asyncio.to_thread(self._names)
        for name in names:
            if name not in self._known:
                self._load(name)
        found = [*self._known.values()]
        return sorted(found, key=lambda each: -max(each.feed.last_at, each.notes.created))

    def _names(self) -> list[str]:
        try:
            stems = {path.stem for path in self._folder.glob("*.json*")}
        except OSError:
            return []
        return [stem for stem in stems if UUID_FORM.fullmatch(stem)]

    def _load(self, session: str) -> Conversation | None:
        """Return a session from its files."""
        notes = Notes.read(self._folder / f"{session}.json")
        if notes is None or notes.id != session:
            if not (self._folder / f"{session}.jsonl").is_file():
                return None
            notes = Notes(id=session, agent=next(iter(self.agents)))
        return self._keep(notes)

    def _keep(self, notes: Notes) -> Conversation:
        agent = self.agents.get(notes.agent)
        idle = self._limits.idle
        found = Conversation(notes, self._folder, agent, self._inbox, idle, self._changed)
        return self._known.setdefault(notes.id, found)

    # Beginning and opening

    def agents_for(self, viewer: Viewer) -> list[str]:
        """Return the names of the agents with which a viewer may begin sessions."""
        allowed = self.agents if viewer.agents is None else viewer.agents
        return [name for name in self.agents if name in allowed]

    def begin(
        self, agent: str | None, viewer: Viewer, key: str | None, title: str
    ) -> tuple[Conversation, bool]:
        """Return a new session, not open yet; or the one that was begun with the same key."""
        by, names = viewer.name, self.agents_for(viewer)
        name = next(iter(names), "") if agent is None else agent
        if name not in names:
            words = f"there is no such agent; there are {', '.join(names) or 'none'}"
            raise Refusal(404, "agent_not_found", words)
        session = str(uuid4() if key is None else uuid5(NAMESPACE, f"{by}\n{name}\n{key}"))
        known = self._known.get(session) or self._load(session)
        if known is not None:
            return known, False
        notes = Notes(id=session, agent=name, title=title, by=by, created=time.time())
        found = self._keep(notes)
        found.save()
        self._changed(session)
        return found, True

    def check_may_open(self, conversation: Conversation) -> None:
        """Raise `Refusal` if the session is closed and cannot be opened now."""
        if self._is_closed:
            raise Refusal(503, "closing", "the server ends")
        if conversation.session is not None:
            return
        if conversation.agent is None:
            words = f"the agent {conversation.notes.agent!r} of this session is no longer there"
            raise Refusal(409, "session_closed", words)
        if sum(each.needs_cli for each in self._known.values()) >= self._limits.sessions:
            words = (
                f"{self._limits.sessions} sessions are open; wait until one is idle, or stop one"
            )
            raise Refusal(429, "too_many_sessions", words)

    @property
    def faults(self) -> dict[str, str]:
        """The background tasks of sessions that fail now."""
        return faults_of(
            {id_: each.session.faults for id_, each in self._known.items() if each.session}
        )

    # Closing

    async def close_idle(self) -> None:
        """Close the sessions that had nothing to do for `WebLimits.idle` seconds."""
        before = time.monotonic() - self._limits.idle
        for each in [*self._known.values()]:
            if each.is_at_rest and each.used < before:
                try:
                    await each.close(only_idle=True)
                except Exception:  # noqa: BLE001 - the next one is closed all the same
                    LOG.exception("an idle session could not be closed")

    async def aclose(self) -> None:
        """Close all sessions, with a limit for all together."""
        self._is_closed = True
        for each in self._known.values():
            each.is_closed = True
        # Also those that are being opened: `close` waits for that.
        closing = [asyncio.Task(each.close()) for each in self._known.values() if each.needs_cli]
        if closing:
            _, late = await asyncio.wait(closing, timeout=CLOSING)
            for task in late:
                task.cancel()


def check_agents(agents: object) -> Mapping[str, Agent]:
    """Return the agents of a bridge, by name. Raises `UsageError`."""
    if isinstance(agents, Agent):
        return {"default": agents}
    if is_mapping(agents) and agents and all(map(_is_named, agents.items())):
        return dict(agents)
    raise UsageError("agents", agents, 'agents by name, such as {"default": Agent()}')


def _is_named(item: tuple[object, object]) -> bool:
    name, agent = item
    return isinstance(name, str) and bool(name) and isinstance(agent, Agent)
