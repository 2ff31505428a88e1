"""An ask without known secrets, and the details of its journal entry."""

from __future__ import annotations

from collections.abc import Callable

from steersman import _json
from steersman._json import JsonDict
from steersman.permissions import Ask
from steersman.permissions.json_form import ask_from_json, ask_to_json


def without_secrets(ask: Ask, redact: Callable[[bytes], bytes]) -> Ask:
    """Return `ask` for a store; the same object if it has no known secret."""
    known = ask_to_json(ask)
    clean = redact(known)
    return ask if clean == known else ask_from_json(clean)


def ask_details(ask: Ask, redact: Callable[[bytes], bytes] = bytes) -> JsonDict:
    """Return the whole ask as JSON without known secrets, and a summary of it.

    An ask that cannot be written, such as one that is nested too deeply, is only the summary: the
    CLI's own line holds the rest.
    """
    summary = {
        "id": ask.id,
        "ask": ask.kind,
        "tool": ask.tool_name,
        "tool_use_id": getattr(ask.payload, "tool_use_id", None),
        "agent": ask.agent,
        "turn": ask.turn,
    }
    known = {name: value for name, value in summary.items() if value}
    try:
        whole = _json.loads(redact(ask_to_json(ask)))
    except (TypeError, ValueError, RecursionError):
        return known
    return {**known, **whole} if _json.is_object(whole) else known
