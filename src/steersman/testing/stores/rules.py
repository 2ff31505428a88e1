"""A rule for session stores: its name, its sentence, and a function that tries a store.

`OFFICIAL` are the fourteen rules that the official conformance suite has, as seen by running it.
"""

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


MILLISECONDS = 1_000_000_000_000
"""About the year 2001. A smaller time is given in seconds."""


def _entry(uuid: str, **fields: object) -> SessionStoreEntry:
    return {"type": "x", "uuid": uuid, **fields}  # type: ignore[typeddict-item] # further keys


async def append_then_load(bench: Bench) -> None:
    """Entries that were appended are loaded as they were, in order."""
    entries = [_entry("b", n=1), _entry("a", n=2)]
    await bench.store.append(bench.key(), entries)
    await bench.expect_entries(bench.key(), entries, "after one append")


async def unknown_keys(bench: Bench) -> None:
    """A session that was never written, and a part that was never written, load as None."""
    await bench.expect_entries(bench.key("never"), None, "before any append")
    await bench.store.append(bench.key(), [_entry("a")])
    await bench.expect_entries(bench.key(subpath="never"), None, "with a session of that id")


async def order_of_appends(bench: Bench) -> None:
    """Several appends keep their order; uuids do not sort them."""
    batches = [[_entry("z")], [_entry("a"), _entry("m")], [_entry("b")]]
    for batch in batches:
        await bench.store.append(bench.key(), batch)
    wanted = [entry for batch in batches for entry in batch]
    await bench.expect_entries(bench.key(), wanted, "after three appends")


async def empty_append(bench: Bench) -> None:
    """An append of no entries changes nothing."""
    await bench.store.append(bench.key(), [_entry("a")])
    await bench.store.append(bench.key(), [])
    await bench.expect_entries(bench.key(), [_entry("a")], "after an append of nothing")


async def subpaths_apart(bench: Bench) -> None:
    """A part of a session is apart from the session."""
    part = bench.key(subpath="subagents/agent-1")
    await bench.store.append(bench.key(), [_entry("m")])
    await bench.store.append(part, [_entry("s")])
    await bench.expect_entries(bench.key(), [_entry("m")], "with a part")
    await bench.expect_entries(part, [_entry("s")], "beside its session")


async def projects_apart(bench: Bench) -> None:
    """Sessions of two projects with one id are apart."""
    keys = [bench.key(project=f"{bench.project}-{name}") for name in "AB"]
    for key in keys:
        await bench.store.append(key, [_entry("same", of=key["project_key"])])
    for key in keys:
        wanted = [_entry("same", of=key["project_key"])]
        await bench.expect_entries(key, wanted, "with the same id in another project")


async def list_sessions(bench: Bench) -> None:
    """The sessions of a project are listed, with times in milliseconds, and no others."""
    for name in "ab":
        await bench.store.append(bench.key(name), [_entry("1")])
    await bench.store.append(bench.key("c", project=f"{bench.project}-other"), [_entry("1")])
    found = await bench.store.list_sessions(bench.project)
    names = sorted(each["session_id"] for each in found)
    expect(names == ["a", "b"], f"list_sessions returned {show(names)}, expected ['a', 'b']")
    for each in found:
        time = each["mtime"]
        expect(time > MILLISECONDS, f"mtime is {time!r}, expected milliseconds since the epoch")
    nothing = await bench.store.list_sessions(f"{bench.project}-never")
    expect(nothing == [], f"an unknown project lists {show(nothing)}, expected []")


async def list_sessions_without_parts(bench: Bench) -> None:
    """A list of sessions does not name their parts."""
    await bench.store.append(bench.key("main"), [_entry("1")])
    await bench.store.append(bench.key("main", "subagents/agent-1"), [_entry("1")])
    names = [each["session_id"] for each in await bench.store.list_sessions(bench.project)]
    expect(names == ["main"], f"list_sessions returned {show(names)}, expected ['main']")


async def summaries(bench: Bench) -> None:
    """Summaries are kept up by appends, not by those to parts, and are as new as the list."""
    title, other = bench.key("titled"), bench.key("x", project=f"{bench.project}-other")
    first: list[SessionStoreEntry] = [_entry("1", customTitle="first"), _entry("2")]
    await bench.store.append(title, first)
    before = await bench.store.list_session_summaries(bench.project)
    await bench.store.append(title, [_entry("3", customTitle="second")])
    await bench.store.append(other, [_entry("1")])
    rows = await bench.store.list_session_summaries(bench.project)
    names = [row["session_id"] for row in rows]
    expect(names == ["titled"], f"summaries are of {show(names)}, expected ['titled']")
    expect(
        "second" in repr(rows[0]["data"]) and rows[0]["data"] != before[0]["data"],
        f"after another title, the summary is {show(rows[0]['data'])}",
    )
    for row in await if_there(bench.optional.list_sessions, bench.project) or []:
        expect(
            rows[0]["mtime"] >= row["mtime"],
            f"the summary is of {rows[0]['mtime']}, its session of {row['mtime']}: too old",
        )
    part = bench.key("titled", "subagents/agent-1")
    await bench.store.append(part, [_entry("9", customTitle="of a subagent")])
    after = await bench.store.list_session_summaries(bench.project)
    is_kept = len(after) == 1 and same(after[0]["data"], rows[0]["data"])
    expect(is_kept, f"a part has changed the summary of its session: {show(after)}")
    nothing = await bench.store.list_session_summaries(f"{bench.project}-never")
    expect(nothing == [], f"an unknown project has summaries: {show(nothing)}")


async def delete(bench: Bench) -> None:
    """A deleted session is not loaded or listed any more; an unknown one may be deleted."""
    await bench.store.delete(bench.key("never"))
    await bench.store.append(bench.key(), [_entry("1")])
    await bench.store.delete(bench.key())
    await bench.expect_entries(bench.key(), None, "after delete")
    rows = await if_there(bench.optional.list_session_summaries, bench.project)
    expect(not rows, f"after delete, the summary is still there: {show(rows)}")


async def delete_cascades(bench: Bench) -> None:
    """Deleting a session deletes its parts, and nothing else."""
    parts = [bench.key(subpath=f"subagents/agent-{number}") for number in (1, 2)]
    others = [bench.key("session2"), bench.key(project=f"{bench.project}-other")]
    for key in (bench.key(), *parts, *others):
        await bench.store.append(key, [_entry("1")])
    await bench.store.delete(bench.key())
    for key in (bench.key(), *parts):
        await bench.expect_entries(key, None, "after its session was deleted")
    for key in others:
        await bench.expect_entries(key, [_entry("1")], "after another session was deleted")
    session: SessionListSubkeysKey = {"project_key": bench.project, "session_id": "session"}
    left = await if_there(bench.optional.list_subkeys, session)
    expect(not left, f"after delete, list_subkeys returned {show(left)}")


async def delete_part(bench: Bench) -> None:
    """Deleting a part leaves its session and the other parts."""
    one, two = (bench.key(subpath=f"subagents/agent-{number}") for number in (1, 2))
    for key in (bench.key(), one, two):
        await bench.store.append(key, [_entry("1")])
    await bench.store.delete(one)
    await bench.expect_entries(one, None, "after the part was deleted")
    for key in (bench.key(), two):
        await bench.expect_entries(key, [_entry("1")], "after another part was deleted")


async def list_subkeys(bench: Bench) -> None:
    """The parts of a session are listed, and not those of others."""
    names = ["subagents/agent-1", "subagents/agent-2"]
    for key in (bench.key(), *(bench.key(subpath=name) for name in names)):
        await bench.store.append(key, [_entry("1")])
    await bench.store.append(bench.key("other", "subagents/agent-x"), [_entry("1")])
    found = await bench.store.list_subkeys({"project_key": bench.project, "session_id": "session"})
    expect(sorted(found) == names, f"list_subkeys returned {show(found)}, expected {names}")


async def list_subkeys_of_none(bench: Bench) -> None:
    """A session without parts, and one that was never written, list no parts."""
    await bench.store.append(bench.key(), [_entry("1")])
    for name in ("session", "never"):
        found = await bench.store.list_subkeys({"project_key": bench.project, "session_id": name})
        expect(found == [], f"list_subkeys of {name!r} returned {show(found)}, expected []")


OFFICIAL = (
    Rule(append_then_load),
    Rule(unknown_keys),
    Rule(order_of_appends),
    Rule(empty_append),
    Rule(subpaths_apart),
    Rule(projects_apart),
    Rule(list_sessions, ("list_sessions",)),
    Rule(list_sessions_without_parts, ("list_sessions",)),
    Rule(summaries, ("list_session_summaries",)),
    Rule(delete, ("delete",)),
    Rule(delete_cascades, ("delete",)),
    Rule(delete_part, ("delete",)),
    Rule(list_subkeys, ("list_subkeys",)),
    Rule(list_subkeys_of_none, ("list_subkeys",)),
)
