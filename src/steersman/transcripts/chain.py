"""The messages of a conversation, found by following parents back from the newest one.

Reads a `Source` backwards in blocks and keeps only where lines are, so that a file of any size
takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steersman.transcripts.blocks import LinesSource, Source, lines_backward
from steersman.transcripts.entries import TranscriptEntry, read_entry
from steersman.transcripts.stored import AgentInfo, StoredMessage

__all__ = ["Source", "StoredMessage", "lines_source", "messages"]

LINKED = frozenset({"user", "assistant", "system", "attachment", "progress"})
"""The kinds of entries that have a parent."""


def lines_source(lines: Sequence[bytes]) -> Source:
    """Return a `Source` of lines in memory."""
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
    """Yield the messages of the conversation, oldest first; only the `last` ones if given.

    `through_compaction` continues before the newest compaction. `hidden` also yields what the CLI
    does not show to users: meta messages and `system` entries. `agent` is given for the file of a
    subagent, all of whose entries are marked as sidechain.
    """
    found: list[tuple[int, int]] = []
    wanted: str | None = None
    is_first, is_sidechain = True, agent is not None
    for line in lines_backward(source):
        entry = read_entry(line.data)
        if entry.type not in LINKED or not entry.uuid or entry.is_sidechain != is_sidechain:
            continue
        if not is_first and entry.uuid != wanted:
            continue
        is_first = False
        if _is_shown(entry, hidden=hidden):
            found.append((line.offset, len(line.data)))
            if last is not None and len(found) >= last:
                break
        wanted = entry.parent_uuid
        if wanted is None and through_compaction:
            wanted = entry.logical_parent_uuid
        if wanted is None:
            break
    for offset, size in reversed(found):
        entry = read_entry(source.read(offset, size))
        if entry.type in LINKED:
            yield StoredMessage(
                entry,
                entry.session_id or session_id,
                agent.parent_tool_use_id if agent else None,
                agent.parent_agent_id if agent else None,
            )


def _is_shown(entry: TranscriptEntry, *, hidden: bool) -> bool:
    if entry.type in ("user", "assistant"):
        return hidden or not entry.is_meta
    return hidden and entry.type == "system"
