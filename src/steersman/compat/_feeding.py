"""User messages as dicts → prompts of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from steersman._json import JsonDict, is_mapping
from steersman._session.turn import When
from steersman.errors import Described, UsageError
from steersman.options import checks

ALLOWED = 'a dict such as {"type": "user", "message": {"role": "user", "content": "..."}}'

READ = frozenset({"type", "message", "uuid", "priority", "shouldQuery", "parent_tool_use_id"})
"""Fields that become arguments of `Session.send`, or that it always writes."""


@dataclass(frozen=True, slots=True)
class UserLine:
    """One prompt: the arguments of `Session.send`."""

    content: Any
    uuid: str | None
    when: When
    query: bool
    fields: JsonDict


def user_line(given: object, session_id: str | None = None) -> UserLine:
    """Return the prompt in a user message. Raises `UsageError`.

    `session_id` is the field for messages that have none.
    """
    message = given.get("message") if is_mapping(given) else None
    if not is_mapping(given) or not is_mapping(message) or "content" not in message:
        raise UsageError("prompt", Described.kind_of(given), ALLOWED)
    if given.get("type", "user") != "user":
        raise UsageError("prompt", Described(f"a message of type {given['type']!r}"), ALLOWED)
    fields: dict[str, Any] = {k: v for k, v in given.items() if k not in READ}
    parent = given.get("parent_tool_use_id")
    if parent is not None:
        fields["parent_tool_use_id"] = parent
    if session_id is not None:
        fields.setdefault("session_id", session_id)
    when = given.get("priority", "next")
    return UserLine(
        content=message["content"],
        uuid=_uuid(given),
        when=cast("When", when) if when in get_args(When) else "next",
        query=given.get("shouldQuery") is not False,
        fields=fields,
    )


def _uuid(given: Mapping[str, Any]) -> str | None:
    uuid = given.get("uuid")
    return uuid if isinstance(uuid, str) and checks.UUID.fullmatch(uuid) else None
