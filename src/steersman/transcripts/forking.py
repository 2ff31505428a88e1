"""A conversation copied under a new id, with new uuids for all its entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from steersman._json import Json, JsonDict
from steersman.errors import UsageError

__all__ = ["fork"]

REFERENCES = ("uuid", "parentUuid", "logicalParentUuid", "sourceToolAssistantUUID")
LINKED = frozenset({"user", "assistant", "system", "attachment", "progress"})


def fork(
    entries: Iterable[JsonDict],
    *,
    session_id: str,
    new_id: str,
    new_uuid: Callable[[], str],
    up_to: str | None = None,
    title: str | None = None,
) -> Iterator[JsonDict]:
    """Yield the entries of the fork. Raises `UsageError` if `up_to` is no entry of the main chain.

    `up_to` is the uuid of the last message that the fork has. Subagents and file snapshots stay
    with the original.
    """
    kept = [each for each in entries if each.get("type") in LINKED and not each.get("isSidechain")]
    if up_to is not None:
        ends = [at for at, each in enumerate(kept) if each.get("uuid") == up_to]
        if not ends:
            raise UsageError("up_to", up_to, "the uuid of a message of this conversation")
        kept = kept[: ends[-1] + 1]
    uuids: dict[Json, str] = {}
    for entry in kept:
        if isinstance(entry.get("uuid"), str):
            uuids.setdefault(entry["uuid"], new_uuid())
    for entry in kept:
        copy = dict(entry)
        for name in REFERENCES:
            if isinstance(entry.get(name), str):
                copy[name] = uuids.get(entry[name])
        copy["sessionId"] = new_id
        copy["forkedFrom"] = {"sessionId": session_id, "messageUuid": entry.get("uuid")}
        yield copy
    yield {"type": "custom-title", "customTitle": title or "(fork)", "sessionId": new_id}
