"""Follows a conversation from its newest message back to its first one, entry by entry.

`Walk` is given the `Link` of each entry, newest first, and keeps where the messages of the
conversation are. A link is the part of a line that places it; the rest is not decoded.

The model may call several tools in one message. The CLI writes each call as an entry of its own,
whose parent is the one before it, and each result as a child of its call. Only one result has a
child, so the others are not on the way back. They are recognized by their parent, and placed after
the calls.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import DECODE_ERRORS
from steersman.transcripts.blocks import Line
from steersman.transcripts.entries import read_entry


class Place(NamedTuple):
    """Where a line is."""

    offset: int
    size: int


class _Aside(NamedTuple):
    """An entry that is not on the way back, and may belong to the conversation all the same."""

    timestamp: str
    place: Place
    uuid: str
    is_shown: bool


class _Group:
    """The entries of one message of the model that are on the way back."""

    def __init__(self, message_id: str, at: int, child: str) -> None:
        self.message_id = message_id
        self.at = at
        """How many numbers `Walk` had kept when it came to the newest entry of the message."""
        self.uuids = {child}
        """The entries, and the one after them."""
        self.results: list[_Aside] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which entries of a file are wanted."""

    last: int | None = None
    through_compaction: bool = False
    shows_hidden: bool = False
    """Whether meta messages and `system` entries are wanted too."""
    is_agent: bool = False
    """Whether the file is that of a subagent, in which every entry is one of a sidechain."""


class Walk:
    """The way back through one file."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._kept = array("Q")
        self._leaf = ""
        self._newer = ""
        self._group: _Group | None = None
        self._tail: list[tuple[Link, Place]] = []
        self._calls: dict[str, list[tuple[_Aside, list[_Aside]]]] = {}
        self._results: dict[str, list[_Aside]] = {}
        self.wanted: str | None = None
        """The uuid of the next entry on the way back; None at the end, and before the leaf."""
        self.has_early_child = False
        """Whether the newest message has a child that comes before it in the file."""

    def visit(self, link: Link, line: Line) -> bool:
        """Look at the next older entry. Returns True when no older one is needed."""
        if link.uuid == self.wanted:
            return self._step(link, line)
        if self._leaf:
            if link.parent_uuid == self._leaf and self._is_main(link):
                self.has_early_child = True
                return True
            self._set_aside(link, line)
            return False
        if self._is_leaf(link):
            self._leaf = link.uuid
            self._keep_tail()
            return self._step(link, line)
        if self._rules.shows_hidden:
            self._tail.append((link, _place(line)))
        return False

    def finish(self) -> array[int]:
        """Return the offset and the size of each message, newest first."""
        self._close_group()
        self._keep_tail()
        last = self._rules.last
        return self._kept if last is None else self._kept[: 2 * last]

    def _step(self, link: Link, line: Line) -> bool:
        """Take the next entry on the way back."""
        group, message_id = self._group, link.message_id
        if group is not None and group.message_id != message_id:
            self._close_group()
            group = None
        if group is None and self._has_enough():
            self.wanted = None
            return True
        if group is None and message_id is not None:
            group = self._group = _Group(message_id, len(self._kept), self._newer)
        results = self._results.pop(link.uuid, None) if self._results else None
        if group is not None:
            group.uuids.add(link.uuid)
            if results:
                group.results += results
        self._newer = link.uuid
        if self._calls and link.type == "user" and not has_tool_result(line.data):
            # The calls of a message come after its prompt; these are of abandoned branches.
            self._calls.clear()
        if self._is_shown(link):
            self._kept.append(line.offset)
            self._kept.append(len(line.data))
        parent = link.parent_uuid
        if not parent and self._rules.through_compaction:
            parent = link.logical_parent_uuid
        if parent and parent == self._leaf:
            self.has_early_child = True
            return True
        self.wanted = parent or None
        # A newest message without a parent may be the first one of a file that is not in order.
        return self.wanted is None and link.uuid != self._leaf

    def _has_enough(self) -> bool:
        last = self._rules.last
        return last is not None and len(self._kept) >= 2 * last

    def _set_aside(self, link: Link, line: Line) -> None:
        """Keep an entry that may be a parallel call, or the result of one."""
        results = self._results.pop(link.uuid, None) if self._results else None
        if self.wanted is None or not link.is_spoken:
            return
        aside = _Aside(link.timestamp, _place(line), link.uuid, self._is_shown(link))
        message_id = link.message_id
        if message_id is not None:
            self._calls.setdefault(message_id, []).append((aside, results or []))
        elif link.type == "user" and link.parent_uuid and has_tool_result(line.data):
            self._results.setdefault(link.parent_uuid, []).append(aside)

    def _close_group(self) -> None:
        """Place the parallel calls and results of a message of the model after its last call."""
        group, self._group = self._group, None
        if group is None or not (self._calls or group.results):
            return
        calls, results = list[_Aside](), group.results
        for call, its_results in self._calls.pop(group.message_id, ()):
            calls.append(call)
            results += its_results
        for aside in (*sorted(calls), *sorted(results)):
            if aside.is_shown and aside.uuid not in group.uuids:
                group.uuids.add(aside.uuid)
                # The newest are kept first, so the next one goes before this one.
                self._kept[group.at : group.at] = array("Q", aside.place)

    def _keep_tail(self) -> None:
        """Keep the entries that come after the leaf and descend from it."""
        tail, self._tail = self._tail, []
        descent = {self._leaf}
        for link, _ in reversed(tail):
            if not self._leaf or link.parent_uuid in descent:
                descent.add(link.uuid)
        for link, place in tail:
            if link.uuid in descent and self._is_shown(link):
                self._kept.extend(place)

    def _is_leaf(self, link: Link) -> bool:
        return link.is_spoken and self._is_main(link) and (self._rules.is_agent or not link.is_meta)

    def _is_main(self, link: Link) -> bool:
        return self._rules.is_agent or not (link.is_sidechain or link.team_name)

    def _is_shown(self, link: Link) -> bool:
        if not self._is_main(link):
            return False
        shows_hidden = self._rules.shows_hidden
        if link.is_spoken:
            return shows_hidden or self._rules.is_agent or not link.is_meta
        return shows_hidden and link.type == "system"


def _place(line: Line) -> Place:
    return Place(line.offset, len(line.data))


class _Message(Struct, gc=False):
    id: str | None = None


class Link(Struct, rename="camel", gc=False):
    """The fields of an entry that place it in a conversation."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    timestamp: str = ""
    is_sidechain: bool = False
    is_meta: bool = False
    team_name: str | None = None
    message: _Message | None = field(default=None)

    @property
    def is_spoken(self) -> bool:
        """Whether this is a message of the user or of the model, and not an entry beside them."""
        return self.type in ("user", "assistant")

    @property
    def message_id(self) -> str | None:
        """The id that the API gave a message of the model. Entries of one message share it."""
        return self.message.id if self.type == "assistant" and self.message else None


class _Block(Struct, gc=False):
    type: str = ""


class _Content(Struct, gc=False):
    content: list[_Block] = []


class _Body(Struct, gc=False):
    message: _Content


_decode = msgspec.json.Decoder(Link).decode
_decode_body = msgspec.json.Decoder(_Body).decode


def read_link(line: bytes) -> Link | None:
    """Return the link of the entry on `line`; None if it has no uuid, or is no JSON object."""
    try:
        link = _decode(line)
    except DECODE_ERRORS:
        link = _read_leniently(line)
    return link if link.uuid else None


def has_tool_result(line: bytes) -> bool:
    """Whether the entry on `line` is a message with the result of a tool."""
    try:
        blocks = [each.type for each in _decode_body(line).message.content]
    except DECODE_ERRORS:
        blocks = _types_leniently(line)
    return "tool_result" in blocks


def _types_leniently(line: bytes) -> list[Json]:
    # The content of most prompts is a text, and none of a list.
    content = read_entry(line).message.get("content")
    blocks = content if _json.is_array(content) else []
    return [each.get("type") for each in blocks if _json.is_object(each)]


def _read_leniently(line: bytes) -> Link:
    try:
        found = _json.loads(line)
    except ValueError:
        return Link()
    data: JsonDict = found if _json.is_object(found) else {}
    message = data.get("message")
    message_id = message.get("id") if _json.is_object(message) else None
    return Link(
        type=_text(data.get("type")) or "",
        uuid=_text(data.get("uuid")) or "",
        parent_uuid=_text(data.get("parentUuid")),
        logical_parent_uuid=_text(data.get("logicalParentUuid")),
        timestamp=_text(data.get("timestamp")) or "",
        is_sidechain=data.get("isSidechain") is True,
        is_meta=data.get("isMeta") is True,
        team_name=_text(data.get("teamName")),
        message=_Message(id=_text(message_id)),
    )


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None
