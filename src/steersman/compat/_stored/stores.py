"""Sessions in a `SessionStore`: the asynchronous functions of the official package.

Only the store is awaited, so that these functions run in any event loop, under trio too.
"""

from __future__ import annotations

import asyncio
import time
import uuid as uuids
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TypeVar, cast

from steersman import _json
from steersman._json import JsonDict
from steersman.compat._shapes.stored_sessions import (
    SDKSessionInfo,
    SessionKey,
    SessionMessage,
    SessionStore,
    SessionStoreEntry,
)
from steersman.compat._stored.values import (
    ForkSessionResult,
    check_message_id,
    check_session_id,
    check_tag,
    check_title,
    fork_error,
    info_of,
    message_of,
    page_of,
    project_key_for_directory,
    real_directory,
)
from steersman.errors import UsageError
from steersman.sessions.changes import now
from steersman.sessions.places import agent_info
from steersman.transcripts.chain import lines_source, messages
from steersman.transcripts.entries import AgentInfo, SessionInfo, entry_of
from steersman.transcripts.forking import fork
from steersman.transcripts.identity import AGENT_METADATA
from steersman.transcripts.keys import is_session_id
from steersman.transcripts.summary import Summary, milliseconds

AT_ONCE = 16
"""How many sessions are loaded at the same time."""
SUBAGENTS = "subagents/"
AGENT = "agent-"
T = TypeVar("T")


async def list_sessions_from_store(
    session_store: SessionStore,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SDKSessionInfo]:
    """Return the sessions of a directory, newest first. Raises `ValueError` if none can be listed.

    A session that cannot be loaded is listed without a summary.
    """
    key, cwd = project_key_for_directory(directory), real_directory(directory)
    rows = await _rows(session_store, key)
    wanted = page_of(range(len(rows)), limit, offset)
    enough = wanted[-1] + 1 if wanted else 0
    found: list[SDKSessionInfo] = []
    for start in range(0, len(rows), AT_ONCE):
        if len(found) >= enough:
            break
        chunk = rows[start : start + AT_ONCE]
        infos = await _together([_listed(session_store, key, *each, cwd) for each in chunk])
        found += [each for each in infos if each is not None]
    return page_of(found, limit, offset)


async def get_session_info_from_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> SDKSessionInfo | None:
    """Return a session; None if there is none, or it has nothing to show."""
    if not is_session_id(session_id):
        return None
    entries = await session_store.load(_key(session_id, directory))
    if not entries:
        return None
    stamps = (milliseconds(str(each.get("timestamp"))) for each in reversed(entries))
    latest = next((each for each in stamps if each is not None), int(time.time() * 1000))
    found = _folded(session_id, latest, entries)
    return None if found is None else info_of(found, real_directory(directory))


async def get_session_messages_from_store(
    session_store: SessionStore,
    session_id: str,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """Return the messages of a conversation, oldest first; none if there is no such session."""
    if not is_session_id(session_id):
        return []
    entries = await session_store.load(_key(session_id, directory))
    return page_of(_messages(entries or [], session_id, None), limit, offset)


async def list_subagents_from_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> list[str]:
    """Return the ids of the subagents. Raises `ValueError` if the store cannot list them."""
    if not is_session_id(session_id):
        return []
    if not _has(session_store, "list_subkeys"):
        raise ValueError(
            "session_store does not implement list_subkeys(), so its subagents cannot be listed."
            " Provide a store with a list_subkeys() method."
        )
    key = project_key_for_directory(directory)
    found = await session_store.list_subkeys({"project_key": key, "session_id": session_id})
    return list(dict.fromkeys(_agent(each) for each in found if _is_agent(each)))


async def get_subagent_messages_from_store(
    session_store: SessionStore,
    session_id: str,
    agent_id: str,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """Return the messages of a subagent, oldest first; none if there is no such subagent."""
    if not is_session_id(session_id) or not agent_id:
        return []
    key = _key(session_id, directory)
    subpath = f"{SUBAGENTS}{AGENT}{agent_id}"
    if _has(session_store, "list_subkeys"):
        of = {"project_key": key["project_key"], "session_id": session_id}
        subpaths = await session_store.list_subkeys(cast("SessionKey", of))
        mine = [each for each in subpaths if _is_agent(each) and _agent(each) == agent_id]
        if not mine:
            return []
        subpath = subpath if subpath in mine else mine[0]
    entries = await session_store.load({**key, "subpath": subpath}) or []
    notes = [dict(each) for each in entries if each.get("type") == AGENT_METADATA]
    kept = [each for each in entries if each.get("type") != AGENT_METADATA]
    about = agent_info(subpath, cast(JsonDict, notes[-1]) if notes else {})
    return page_of(_messages(kept, session_id, about), limit, offset)


async def rename_session_via_store(
    session_store: SessionStore, session_id: str, title: str, directory: str | None = None
) -> None:
    """Add the entry for a title. Raises `ValueError`; does not look whether the session exists."""
    check_session_id(session_id)
    entry = {"type": "custom-title", "customTitle": check_title(title)}
    await _add(session_store, session_id, directory, entry)


async def tag_session_via_store(
    session_store: SessionStore, session_id: str, tag: str | None, directory: str | None = None
) -> None:
    """Add the entry for a tag, or None for none. Raises `ValueError`; otherwise as for titles."""
    check_session_id(session_id)
    await _add(session_store, session_id, directory, {"type": "tag", "tag": check_tag(tag)})


async def delete_session_via_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> None:
    """Remove a session; a store without `delete` keeps it. Raises `ValueError`."""
    check_session_id(session_id)
    if _has(session_store, "delete"):
        await session_store.delete(_key(session_id, directory))


async def fork_session_via_store(
    session_store: SessionStore,
    session_id: str,
    directory: str | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """Copy a conversation under a new id. Raises `FileNotFoundError` and `ValueError`."""
    check_session_id(session_id)
    check_message_id(up_to_message_id)
    entries = await session_store.load(_key(session_id, directory))
    if not entries:
        raise FileNotFoundError(f"Session {session_id} not found")
    new_id = str(uuids.uuid4())
    try:
        made = fork(
            [cast(JsonDict, dict(each)) for each in entries],
            session_id=session_id,
            new_id=new_id,
            new_uuid=lambda: str(uuids.uuid4()),
            timestamp=now(),
            up_to=up_to_message_id or None,
            title=(title or "").strip() or None,
        )
    except UsageError as error:
        raise fork_error(error, session_id, up_to_message_id) from error
    copied = cast("list[SessionStoreEntry]", list(made))
    await session_store.append(_key(new_id, directory), copied)
    return ForkSessionResult(new_id)


Row = tuple[str, int, JsonDict | None]
"""An id, when the session was last written to, and the data of its summary, if that is current."""


async def _rows(store: SessionStore, key: str) -> list[Row]:
    """Return the sessions of a project, newest first. An error of the store is the caller's."""
    has_list = _has(store, "list_sessions")
    kept: dict[str, tuple[int, JsonDict]] | None = None
    if _has(store, "list_session_summaries"):
        with suppress(NotImplementedError):
            summaries = await store.list_session_summaries(key)
            kept = {each["session_id"]: (each["mtime"], each["data"]) for each in summaries}
    if kept is None and not has_list:
        raise ValueError(
            "session_store implements neither list_session_summaries() nor list_sessions(),"
            " so its sessions cannot be listed. Provide a store with at least one of those methods."
        )
    kept = kept or {}
    rows: list[Row] = [(each, *about) for each, about in kept.items()]
    if has_list:
        listed = await store.list_sessions(key)
        times = {each["session_id"]: each["mtime"] for each in listed}
        rows = [
            (each, mtime, kept[each][1] if each in kept and kept[each][0] >= mtime else None)
            for each, mtime in times.items()
        ]
    return sorted(rows, key=lambda row: -row[1])


async def _listed(
    store: SessionStore, key: str, session_id: str, mtime: int, data: JsonDict | None, cwd: str
) -> SDKSessionInfo | None:
    if data is not None:
        found = Summary.from_data(data).info(session_id, mtime)
        return None if found is None else info_of(found, cwd)
    try:
        entries = await store.load({"project_key": key, "session_id": session_id})
    except Exception:  # noqa: BLE001 - code of others; one session must not hide all others
        return SDKSessionInfo(session_id=session_id, summary="", last_modified=mtime)
    found = _folded(session_id, mtime, entries) if entries else None
    return None if found is None else info_of(found, cwd)


def _folded(
    session_id: str, mtime: int, entries: Sequence[SessionStoreEntry]
) -> SessionInfo | None:
    summary, size = Summary(), 0
    for each in entries:
        entry = entry_of(cast(JsonDict, dict(each)))
        summary.fold(entry)
        size += len(_json.dumps(entry.data)) + 1
    return summary.info(session_id, mtime, size)


def _messages(
    entries: Sequence[SessionStoreEntry], session_id: str, agent: AgentInfo | None
) -> list[SessionMessage]:
    lines = [_json.dumps(cast(JsonDict, each)) for each in entries]
    found = messages(lines_source(lines), session_id=session_id, agent=agent)
    return [message_of(each) for each in found]


async def _add(
    store: SessionStore, session_id: str, directory: str | None, entry: JsonDict
) -> None:
    about = {"sessionId": session_id, "uuid": str(uuids.uuid4()), "timestamp": now()}
    whole = cast("SessionStoreEntry", {**entry, **about})
    await store.append(_key(session_id, directory), [whole])


async def _together(works: Sequence[Awaitable[T]]) -> list[T]:
    """Await all at once, in asyncio or in trio. What `works` await raises nothing."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return await asyncio.gather(*works)
    import trio  # noqa: PLC0415 - only programs that run in trio

    found: dict[int, T] = {}

    async def keep(at: int, work: Awaitable[T]) -> None:
        found[at] = await work

    async with trio.open_nursery() as nursery:
        for each in enumerate(works):
            nursery.start_soon(keep, *each)
    return [found[at] for at in range(len(works))]


def _key(session_id: str, directory: str | None) -> SessionKey:
    return {"project_key": project_key_for_directory(directory), "session_id": session_id}


def _has(store: SessionStore, name: str) -> bool:
    """Return whether a store has a method of its own; one that a protocol gives only raises."""
    if name in getattr(store, "__dict__", {}):
        return callable(getattr(store, name))
    for each in type(store).__mro__:
        if name in vars(each):
            return not getattr(each, "_is_protocol", False)
    return callable(getattr(store, name, None))


def _is_agent(subpath: str) -> bool:
    return subpath.startswith(SUBAGENTS) and subpath.rpartition("/")[2].startswith(AGENT)


def _agent(subpath: str) -> str:
    return subpath.rpartition("/")[2].removeprefix(AGENT)
