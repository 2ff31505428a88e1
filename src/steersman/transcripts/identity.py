"""Which entries of a session file belong in a store, and when two of them are the same one.

Most entries have a uuid. The others, such as titles and costs, are compared by their content, which
may be in a file any number of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._struct import DECODE_ERRORS

Identity: TypeAlias = str | int
"""The uuid of an entry, or else a hash of its content; within one process."""

AGENT_METADATA = "agent_metadata"
"""The type of the entry for the file `.meta.json` of a subagent; the last one counts."""

NOT_KEPT = "api-request"
"""Entries whose type begins so are not mirrored by the CLI, and not needed to resume."""


class _Head(Struct, frozen=True, gc=False):
    type: str = ""
    uuid: str | None = None


_read_head = msgspec.json.Decoder(_Head).decode


def is_kept(kind: str) -> bool:
    """Whether a store gets entries of this type."""
    return bool(kind) and not kind.startswith(NOT_KEPT)


def identity(entry: JsonObject) -> Identity:
    """Return the uuid of an entry, or else a hash of its content, whatever the order of keys."""
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) and uuid else hash(_json.dumps(_plain(entry)))


def identity_of_line(line: bytes) -> tuple[str, Identity | None]:
    """Return type and identity of the entry on a line; identity None if it is no entry."""
    try:
        head = _read_head(line)
    except DECODE_ERRORS:
        head = _Head()
    if head.type and (head.uuid or not is_kept(head.type)):
        return head.type, head.uuid or 0
    try:
        entry = _json.loads(line)
    except ValueError:
        return "", None
    if not _json.is_object(entry) or not isinstance(entry.get("type"), str):
        return "", None
    return str(entry["type"]), identity(entry)


def unannounced(
    tail: Sequence[tuple[Identity, int]], last: Sequence[Identity], after: int = 0
) -> Counter[Identity]:
    """Return the entries of `tail` that come after `last`, both in the order of the file.

    `tail` is the end of a file, with the position at which each entry ends; `last` is what the CLI
    reported last. Entries up to the position `after` are not reported any more, and left out.
    Empty if that is not known, because `last` is not in `tail`.
    """
    size, wanted = len(last), list(last)
    if not last and after:
        return Counter(which for which, at in tail if at > after)
    for end in range(len(tail), size - 1, -1) if size else ():
        if [which for which, _ in tail[end - size : end]] == wanted:
            return Counter(which for which, at in tail[end:] if at > after)
    return Counter()


def _plain(value: Json) -> Any:
    """Return a value with sorted keys and without needless fractions, as stores may change both."""
    if _json.is_object(value):
        return {name: _plain(value[name]) for name in sorted(value)}
    if _json.is_array(value):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
