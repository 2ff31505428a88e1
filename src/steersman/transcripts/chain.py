"""The messages of a conversation, found by following parents back from the newest one.

Reads a `Source` backwards in blocks and keeps only where lines are, so that a file of any size
takes little memory. What the CLI writes has parents before children; a file in which they are not
is read again, in the order of parents, with one small record per entry in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steersman.errors import UsageError
from steersman.transcripts.blocks import Line, LinesSource, Source, lines_backward, lines_forward
from steersman.transcripts.entries import AgentInfo, StoredMessage, TranscriptEntry, read_entry
from steersman.transcripts.keys import is_session_id
from steersman.transcripts.walk import Place, Rules, Walk, read_link

__all__ = ["Source", "StoredMessage", "lines_source", "messages"]


def lines_source(lines: Sequence[bytes]) -> Source:
    """Return a `Source` of lines in memory, each without its newline."""
    return LinesSource(lines)


def messages(
    source: Source,
    *,
    session_id: str,
    last: int | None = None,
    through_compaction: bool = False,
    hidden: bool = False,
    agent: AgentInfo | None = None,
) -> Iterator[StoredMessage]:
    """Return the messages of the conversation, oldest first; only the `last` ones if given.

    Messages of the user and of the model, from the newest compaction on; `through_compaction` also
    gives those before it. `hidden` also gives what the CLI does not show to users: meta messages
    and `system` entries. `agent` is given for the file of a subagent.

    The source may change meanwhile: a line that is no longer where it was is left out.
    """
    if last is not None and last < 0:
        raise UsageError("last", last, "a number of messages, 0 or more, or None for all")
    rules = Rules(
        last=last,
        through_compaction=through_compaction,
        shows_hidden=hidden,
        is_agent=agent is not None,
    )
    return _read(source, rules, session_id, agent)


def _places(source: Source, rules: Rules) -> array[int]:
    """Return the offset and the size of each message, newest first."""
    walk = Walk(rules)
    for line in lines_backward(source):
        link = read_link(line.data)
        if link is not None and walk.visit(link, line):
            break
    is_missing = walk.wanted is not None and _has_uuid(source, walk.wanted)
    return _places_in_order(source, rules) if walk.has_early_child or is_missing else walk.finish()


def _places_in_order(source: Source, rules: Rules) -> array[int]:
    walk = Walk(rules)
    for place in _lines_by_parents(source):
        data = source.read(place.offset, place.size)
        link = read_link(data)
        if link is not None and walk.visit(link, Line(place.offset, data, is_ended=True)):
            break
    return walk.finish()


def _read(
    source: Source, rules: Rules, session_id: str, agent: AgentInfo | None
) -> Iterator[StoredMessage]:
    places = _places(source, rules)
    for at in range(len(places) - 2, -2, -2):
        entry = read_entry(source.read(places[at], places[at + 1]))
        if entry.uuid and entry.type in ("user", "assistant", "system"):
            yield _message(entry, session_id, agent)


def _message(entry: TranscriptEntry, session_id: str, agent: AgentInfo | None) -> StoredMessage:
    return StoredMessage(
        entry,
        entry.session_id or session_id,
        agent.parent_tool_use_id if agent else None,
        agent.parent_agent_id if agent else None,
    )


class _Entry(NamedTuple):
    place: Place
    parent: str | None


def _has_uuid(source: Source, uuid: str) -> bool:
    """Whether an entry of `source` has this uuid."""
    # A uuid is written as it is. Whatever else it may be can be written with escapes.
    wanted = uuid.encode() if is_session_id(uuid) else b""
    for line in lines_forward(source):
        if wanted in line.data:
            link = read_link(line.data)
            if link is not None and link.uuid == uuid:
                return True
    return False


def _lines_by_parents(source: Source) -> Iterator[Place]:
    """Yield where each entry is, newest first, and every entry before its parent.

    Of entries with one uuid, the last is taken, at the position of the first. Parents that make a
    cycle end where an entry outside of the cycle leads to; where none does, they are left out.
    """
    entries: dict[str, _Entry] = {}
    for line in lines_forward(source):
        link = read_link(line.data)
        if link is not None:
            parent = link.parent_uuid or link.logical_parent_uuid
            entries[link.uuid] = _Entry(Place(line.offset, len(line.data)), parent)
    order: list[Place] = []
    circling: set[str] = set()
    for oldest in list(entries):
        # The oldest entry that is left, after all of its parents that are left.
        found: dict[str, _Entry] = {}
        uuid = None if oldest in circling else oldest
        while uuid is not None and uuid in entries:
            found[uuid] = entries.pop(uuid)
            uuid = found[uuid].parent
        if found and uuid == oldest:
            circling.update(found)
            entries.update(found)
        else:
            order.extend(each.place for each in reversed(found.values()))
    return reversed(order)
