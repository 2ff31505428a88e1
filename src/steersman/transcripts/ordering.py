"""The lines of a file in which a parent comes after its child, or a uuid occurs twice, in order.

Keeps one small record per entry in memory; only for files that the CLI did not write so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steersman.transcripts.blocks import Source, lines_forward
from steersman.transcripts.keys import is_session_id
from steersman.transcripts.links import read_link
from steersman.transcripts.walk import Place


class _Entry(NamedTuple):
    place: Place
    parent: str | None


def has_uuid(source: Source, uuid: str) -> bool:
    """Whether an entry of `source` has this uuid."""
    # A uuid is written as it is. Whatever else it may be can be written with escapes.
    wanted = uuid.encode() if is_session_id(uuid) else b""
    for line in lines_forward(source):
        if wanted in line.data:
            link = read_link(line.data)
            if link is not None and link.uuid == uuid:
                return True
    return False


def lines_by_parents(source: Source) -> Iterator[Place]:
    """Yield where each entry is, newest first, and every entry before its parent.

    Of entries with one uuid, the last is taken, at the position of the first.
    """
    entries: dict[str, _Entry] = {}
    for line in lines_forward(source):
        link = read_link(line.data)
        if link is not None:
            parent = link.parent_uuid or link.logical_parent_uuid
            entries[link.uuid] = _Entry(Place(line.offset, len(line.data)), parent)
    order: list[Place] = []
    for oldest in list(entries):
        # The oldest entry that is left, after all of its parents that are left.
        uuid: str | None = oldest
        line_of_parents: list[Place] = []
        while uuid is not None and uuid in entries:
            entry = entries.pop(uuid)
            line_of_parents.append(entry.place)
            uuid = entry.parent
        order.extend(reversed(line_of_parents))
    return reversed(order)
