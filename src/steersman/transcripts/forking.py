"""A conversation copied under a new id, with new uuids for all its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.errors import UsageError
from steersman.transcripts.entries import entry_of
from steersman.transcripts.keys import clean_title
from steersman.transcripts.summary import Summary

LINKED = frozenset({"user", "assistant", "system", "attachment"})
"""The kinds of entries that make up a conversation."""

CARRIED = frozenset(
    {
        "atis-latch",
        "content-replacement",
        "data-flow",
        "derived-from",
        "relocated",
        "tools-used",
    }
)
"""The kinds of further entries that the CLI needs to resume the conversation."""

OF_THE_ORIGINAL = frozenset({"agentName", "slug", "teamName"})
"""The fields of an entry that name the team of the original, and the file of its plan."""

NOT_SEARCHED = frozenset({"message", "toolUseResult", "sessionId"})
"""The fields of an entry that have no uuid of another entry in them."""

UNTITLED = "Conversation"


class _Node(NamedTuple):
    parent: str | None
    message_id: str | None
    is_kept: bool
    is_result: bool


def fork(
    entries: Iterable[JsonDict],
    *,
    session_id: str,
    new_id: str,
    new_uuid: Callable[[], str],
    timestamp: str,
    up_to: str | None = None,
    title: str | None = None,
) -> Iterator[JsonDict]:
    """Return the entries of a fork of the conversation `session_id`, whose id is `new_id`.

    `timestamp` is when the fork is made, as the CLI writes it.

    `up_to` is the uuid of the last message of the fork: it has that one, those before it in the
    conversation, and the results of their tool calls. Without it, the fork has all branches.
    Subagents, file snapshots, tags, costs and the name of a team stay with the original. The title
    is `title`, or that of the original with "(fork)". `entries` is read twice; an iterator is kept
    in memory for that.

    Raises `UsageError` at the call if `up_to` is no message of the conversation, or there is none.
    """
    several = list(entries) if isinstance(entries, Iterator) else entries
    nodes, summary = _survey(several)
    kept = {uuid for uuid, node in nodes.items() if node.is_kept}
    if not kept:
        raise UsageError("session_id", session_id, "a session that has messages")
    if up_to is not None:
        if up_to not in kept:
            raise UsageError(
                "up_to",
                up_to,
                "the uuid of a message of the conversation",
                hint="take it from the messages of this session; those of subagents cannot be used",
            )
        kept = _before(nodes, up_to)
    uuids = {uuid: new_uuid() for uuid in nodes if uuid in kept}
    name = clean_title(title or "") or f"{_title(summary)} (fork)"

    def made(entry: JsonDict) -> JsonDict:
        # With a uuid, so that a store that leaves out what it has twice keeps both of two.
        return {**entry, "uuid": new_uuid(), "timestamp": timestamp}

    copies = _copies(several, nodes, uuids, session_id, made)
    title_entry = made({"type": "custom-title", "customTitle": name})
    return ({**each, "sessionId": new_id} for each in chain(copies, [title_entry]))


def _survey(entries: Iterable[JsonDict]) -> tuple[dict[str, _Node], Summary]:
    nodes: dict[str, _Node] = {}
    summary = Summary()
    for data in entries:
        entry = entry_of(data)
        summary.fold(entry)
        if entry.uuid and entry.uuid not in nodes:
            content = entry.message.get("content")
            message_id = entry.message.get("id") if entry.type == "assistant" else None
            nodes[entry.uuid] = _Node(
                entry.parent_uuid or entry.logical_parent_uuid,
                message_id if isinstance(message_id, str) else None,
                entry.type in LINKED and not entry.is_sidechain,
                entry.type == "user" and _json.is_array(content) and _has_result(content),
            )
    return nodes, summary


def _has_result(content: list[Json]) -> bool:
    return any(_json.is_object(each) and each.get("type") == "tool_result" for each in content)


def _before(nodes: dict[str, _Node], up_to: str) -> set[str]:
    """Return the entries of the conversation up to `up_to`, in which parallel calls are whole."""
    kept: set[str] = set()
    above: str | None = up_to
    while above is not None and above in nodes and above not in kept:
        kept.add(above)
        above = nodes[above].parent
    messages = {nodes[uuid].message_id for uuid in kept - {up_to}} - {None}
    end = nodes[up_to]
    # With one result, the fork has those of the other calls of the message: they may come later.
    last = nodes[end.parent].message_id if end.is_result and end.parent in nodes else None
    is_past = False
    for uuid, node in nodes.items():
        calling = nodes[node.parent].message_id if node.is_result and node.parent in kept else None
        message_id = node.message_id or calling
        if message_id in messages and (not is_past or message_id == last):
            kept.add(uuid)
        is_past = is_past or uuid == up_to
    return {uuid for uuid in kept if nodes[uuid].is_kept}


def _title(summary: Summary) -> str:
    info = summary.info("", 0)
    return (info.custom_title or info.first_prompt if info else None) or UNTITLED


def _copies(
    entries: Iterable[JsonDict],
    nodes: dict[str, _Node],
    uuids: dict[str, str],
    session_id: str,
    made: Callable[[JsonDict], JsonDict],
) -> Iterator[JsonDict]:
    written: set[str] = set()
    for entry in entries:
        uuid, kind = entry.get("uuid"), entry.get("type")
        if isinstance(uuid, str) and uuid in uuids and uuid not in written:
            written.add(uuid)
            copy = _mapped_entry(entry, uuids)
            copy["parentUuid"] = _new_parent(entry.get("parentUuid"), nodes, uuids)
            copy["forkedFrom"] = {"sessionId": session_id, "messageUuid": uuid}
            yield {name: value for name, value in copy.items() if name not in OF_THE_ORIGINAL}
        elif kind == "content-replacement":
            yield made(_mapped_entry(entry, uuids))
        elif isinstance(kind, str) and kind in CARRIED:
            yield _mapped_entry(entry, uuids)


def _mapped_entry(entry: JsonDict, uuids: dict[str, str]) -> JsonDict:
    try:
        return {
            name: value if name in NOT_SEARCHED else _mapped(value, uuids)
            for name, value in entry.items()
        }
    except RecursionError:
        # Nested beyond what the CLI writes: only the fields that every entry has are replaced.
        return {
            name: uuids.get(value, value) if isinstance(value, str) else value
            for name, value in entry.items()
        }


def _new_parent(parent: Json, nodes: dict[str, _Node], uuids: dict[str, str]) -> str | None:
    """Return the new uuid of the nearest parent that the fork has."""
    met: set[str] = set()
    while isinstance(parent, str) and parent in nodes and parent not in met:
        if parent in uuids:
            return uuids[parent]
        met.add(parent)
        parent = nodes[parent].parent
    return None


def _mapped(value: Json, uuids: dict[str, str]) -> Json:
    """Return `value` with every uuid of an entry replaced."""
    if isinstance(value, str):
        return uuids.get(value, value)
    if _json.is_array(value):
        return [_mapped(each, uuids) for each in value]
    if _json.is_object(value):
        return {name: _mapped(each, uuids) for name, each in value.items()}
    return value
