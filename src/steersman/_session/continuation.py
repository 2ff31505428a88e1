"""The prompt that continues a turn: what became of calls that waited when it was left. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from steersman import _json
from steersman._json import Json
from steersman.ports import JsonObject, StoredAsk

CONTINUE = "Continue from where you left off."
"""The prompt that the CLI itself gives to the model when it continues an interrupted turn."""

HEAD = (
    "The session was left while requests of this turn waited for a decision. None of the calls"
    " below has run, whatever their results say:"
)

BEHIND = "Other prompts came in between. The one to continue with is this:"

LONGEST = 300
"""Characters of an input that are shown; the model has the whole call in its conversation."""


def continuation(asks: Sequence[StoredAsk]) -> str:
    """Return the prompt that continues a turn with these asks."""
    lines = [_line(each) for each in asks]
    return "\n".join([CONTINUE, "", HEAD, *lines]) if lines else CONTINUE


def again(prompt: Json, words: str) -> list[Json]:
    """Return what continues the turn of `prompt` if others stand behind it.

    The model would take `words` alone for the last turn of the conversation.
    """
    blocks = prompt if _json.is_array(prompt) else [{"type": "text", "text": prompt}]
    return [{"type": "text", "text": f"{words}\n\n{BEHIND}"}, *blocks]


def _line(ask: StoredAsk) -> str:
    return f"- {_request(ask)}: {_decision(ask)} {_next(ask)}"


def _request(ask: StoredAsk) -> str:
    if ask.tool_name is None:
        return f"a request of the kind {ask.kind}"
    of = "" if ask.agent is None else ", called by a subagent"
    return f"{ask.tool_name} with the input {_short(ask.input)}{of}"


def _decision(ask: StoredAsk) -> str:
    if ask.state == "open":
        return "nobody has decided yet."
    if ask.state == "expired":
        return "denied, because no answer came in time."
    is_allowed = ask.decision == "allow" and ask.kind == "permission"
    how = "denied" if ask.decision == "deny" else "allowed" if is_allowed else "answered"
    why = ""
    if ask.decision == "deny" and ask.reason:
        why = f": {ask.reason.rstrip('.')}"
    elif is_allowed and ask.updated_input is not None:
        why = f", with the input changed to {_short(ask.updated_input)}"
    return f"{how} by {ask.by}{why}." if ask.by else f"{how}{why}."


def _next(ask: StoredAsk) -> str:
    if ask.state == "expired" or ask.decision == "deny":
        return "Do not make this call again."
    if ask.tool_name is None:
        return "Make the call that led to it again, with exactly the same input."
    how = "Make the same call again, with exactly the same input"
    if ask.agent is not None:
        how = "Start the subagent again with the same task, so that it makes the same call again"
    if ask.kind == "question":
        return f"{how}: it returns the answers."
    return f"{how}."


def _short(given: JsonObject) -> str:
    text = _json.dumps(given).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
