"""Asks as text for a terminal, and as JSON for scripts."""

from __future__ import annotations

import json
import time
from typing import Any

from steersman import _json
from steersman._terminal import exact, one_line
from steersman.errors import UsageError
from steersman.inbox import AskOutcome, Change
from steersman.permissions import Allow, Ask, Deny
from steersman.permissions.json_form import answer_to_json, ask_to_json

SHOWN = 60
"""How many characters of an input are in the line of an ask."""


def as_line(ask: Ask) -> str:
    """Return an ask as one line: its id, kind and tool, and the beginning of its input."""
    text = json.dumps(_asked(ask), ensure_ascii=False)
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    words = [ask.id, ask.kind, ask.tool_name or "-", _date(ask.created), shown]
    return "  ".join(one_line(exact(word)) for word in words)


def as_page(ask: Ask) -> str:
    """Return all of an ask, on several lines."""
    fields = {
        "ask": ask.id,
        "kind": ask.kind,
        "tool": ask.tool_name,
        "session": ask.session,
        "turn": ask.turn,
        "subagent": ask.agent,
        "since": _date(ask.created),
        "expires": None if ask.expires is None else _date(ask.expires),
        "assignee": ask.assignee,
        "before": _earlier(ask),
        "digest": ask.digest,
    }
    lines = [f"{name + ':':10}{one_line(exact(value))}" for name, value in fields.items() if value]
    return "\n".join([*lines, exact(json.dumps(_asked(ask), indent=2, ensure_ascii=False))])


def _earlier(ask: Ask) -> str | None:
    if ask.earlier is None:
        return None
    answer, by, at = ask.earlier.answer, ask.earlier.by, _date(ask.earlier.at)
    match answer:
        case Allow():
            how = "allowed"
        case Deny(message=why):
            how = f"denied ({why})"
        case _:
            how = "answered"
    return f"{how} by {by}, {at}; whether the call ran then is not known"


def as_json(ask: Ask, outcome: AskOutcome | None = None) -> str:
    """Return an ask, with how it ended, as JSON on one line."""
    return _line(_fields(ask, outcome))


def change_as_json(change: Change) -> str:
    """Return a change, with its ask, as JSON on one line."""
    return _line({"change": change.what, **_fields(change.ask, change.outcome)})


def change_as_line(change: Change) -> str:
    """Return a change as one line."""
    by = "" if change.outcome is None else f" by {change.outcome.by}"
    return one_line(f"{change.what}{by}  ") + as_line(change.ask)


def _fields(ask: Ask, outcome: AskOutcome | None) -> dict[str, Any]:
    fields = {**_json.loads(ask_to_json(ask)), "digest": ask.digest}
    if outcome is not None:
        fields |= {"outcome": outcome.how, "by": outcome.by, "answer": _answer(outcome)}
    return fields


def _answer(outcome: AskOutcome) -> object:
    if outcome.answer is None:
        return None
    try:
        return _json.loads(answer_to_json(outcome.answer))
    except UsageError:
        return None


def _line(fields: dict[str, Any]) -> str:
    # ASCII, so that no terminal and no encoding matters.
    return json.dumps(fields)


def _asked(ask: Ask) -> object:
    return ask.tool_input if ask.tool_name else ask.payload.raw


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
