"""A rule for session stores: its name, its sentence, and a function that tries a store."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar, cast

from steersman.ports import SessionStore
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

SHOWN = 200
LONG = 5
Call = Callable[["Bench"], Awaitable[None]]
P = ParamSpec("P")
T = TypeVar("T")


class Store(SessionStore, Protocol):
    """A store with all methods; those that it does not have are not called."""

    def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        """Return the entries in chunks."""
        ...

    async def positions(self, key: SessionKey) -> int:
        """Return how many entries there are."""
        ...


class Broken(Exception):
    """A store does not keep a rule."""


@dataclass(frozen=True, slots=True)
class Optional:
    """The optional methods of a store; None for one that it does not have."""

    store: Store

    @property
    def list_sessions(self) -> Callable[[str], Awaitable[list[SessionStoreListEntry]]] | None:
        """List the sessions of a project."""
        return getattr(self.store, "list_sessions", None)

    @property
    def list_session_summaries(
        self,
    ) -> Callable[[str], Awaitable[list[SessionSummaryEntry]]] | None:
        """List the summaries of a project."""
        return getattr(self.store, "list_session_summaries", None)

    @property
    def list_subkeys(self) -> Callable[[SessionListSubkeysKey], Awaitable[list[str]]] | None:
        """List the parts of a session."""
        return getattr(self.store, "list_subkeys", None)

    @property
    def delete(self) -> Callable[[SessionKey], Awaitable[None]] | None:
        """Delete a session or a part."""
        return getattr(self.store, "delete", None)


@dataclass(slots=True)
class Bench:
    """What a rule gets: a new store, names that no other rule has, and some numbers."""

    store: Store
    other: Callable[[], Awaitable[Store]]
    """Makes another store, as the first was made."""
    project: str
    sessions: int
    """How many sessions are many."""

    @property
    def optional(self) -> Optional:
        """The methods that a store may lack."""
        return Optional(self.store)

    def key(
        self, session: str = "session", subpath: str | None = None, project: str | None = None
    ) -> SessionKey:
        """Return a key of this rule."""
        key = SessionKey(project_key=project or self.project, session_id=session)
        if subpath is not None:
            key["subpath"] = subpath
        return key

    async def expect_entries(
        self, key: SessionKey, wanted: Sequence[SessionStoreEntry] | None, when: str
    ) -> None:
        """Load a key, and compare."""
        found = await self.store.load(key)
        expect(
            same(found, wanted),
            f"{when}, load({show(key)}) returned {show(found)}, expected {show(wanted)}",
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `needs` are the optional methods without which it is skipped."""

    call: Call
    needs: tuple[str, ...] = ()
    is_long: bool = False

    @property
    def name(self) -> str:
        """The name by which the rule is skipped."""
        return getattr(self.call, "__name__", "")

    @property
    def requires(self) -> str:
        """What the rule asks for."""
        return (self.call.__doc__ or "").strip()


async def if_there(
    method: Callable[P, Awaitable[T]] | None, *args: P.args, **kw: P.kwargs
) -> T | None:
    """Call an optional method; None if the store does not have it."""
    if method is None:
        return None
    try:
        return await method(*args, **kw)
    except NotImplementedError:
        return None


def expect(is_kept: bool, text: str) -> None:  # noqa: FBT001 - as assert
    """Raise `Broken` with a text, unless the rule is kept."""
    if not is_kept:
        raise Broken(text)


def same(found: object, wanted: object) -> bool:
    """Whether two JSON values are the same: the order of keys is free, 1 is not True or 1.0."""
    return found == wanted and _spelled(found) == _spelled(wanted)


def _spelled(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def show(value: object) -> str:
    """Return a value as a text that is not too long."""
    text = repr(value)
    if isinstance(value, list) and len(entries := cast(list[object], value)) > LONG:
        text = f"{len(entries)} entries"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
