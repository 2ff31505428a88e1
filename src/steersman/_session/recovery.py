"""How work continues after a CLI: restarts, unsettled prompts, the prompt that continues a turn.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from steersman import _json
from steersman._json import Json, JsonObject
from steersman._session.turn import SentPrompt
from steersman.options import Revival
from steersman.ports import StoredAsk
from steersman.transcripts import has_prompt, was_folded

CONTINUE = "Continue from where you left off."
"""The prompt that the CLI itself gives to the model when it continues an interrupted turn."""

HEAD = (
    "The session was left while requests of this turn waited for a decision. None of the calls"
    " below has run, whatever their results say:"
)

BEHIND = "Other prompts came in between. The one to continue with is this:"

LONGEST = 300
"""Characters of an input that are shown; the model has the whole call in its conversation."""


class RestartBudget:
    """How many restarts in a row are left, and how long to wait before each."""

    def __init__(self, limits: Revival) -> None:
        self.attempts = 0
        """Restarts since a turn last completed, or a CLI last ran long enough."""
        self._limits = limits
        self._running_since = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether no further restart is allowed."""
        return self.attempts >= self._limits.most

    @property
    def per_turn(self) -> int:
        """How many restarts one turn may use."""
        return self._limits.per_turn

    def lost(self, now: float) -> None:
        """Handle the loss of a CLI; if it ran long enough, the count starts again."""
        if now - self._running_since > self._limits.well_after:
            self.attempts = 0

    def next_pause(self) -> float:
        """Use one restart; returns the seconds to wait before it."""
        self.attempts += 1
        return self._limits.backoff * 2 ** (self.attempts - 2) if self.attempts > 1 else 0.0

    def restarted(self, now: float) -> None:
        """Record that a new CLI runs since `now`."""
        self._running_since = now

    def clear(self) -> None:
        """Start the count again, after a turn that completed."""
        self.attempts = 0


@dataclass(frozen=True, slots=True)
class Handover:
    """The unsettled prompts, by what is done about each."""

    resent: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Sent to the next CLI, which drops those that it has already processed."""
    joined: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Part of a turn that the next CLI continues. Sent again, they would run twice."""
    lost: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Started by a CLI whose successor cannot continue them."""

    @property
    def resumed(self) -> list[SentPrompt]:
        """The prompts whose turn the next CLI continues by itself, in order."""
        begun = [turn for turn in self.resent if turn.has_begun]
        return [*begun[:1], *self.joined]


def plan_handover(
    turns: Sequence[SentPrompt], lines: Sequence[bytes], *, is_new: bool, is_modern: bool
) -> Handover:
    """Decide by the state of each prompt and by the `lines` of the lost CLI's session file.

    A new conversation contains none of them. A CLI that is not modern continues nothing.
    """
    plan = Handover()
    for turn in turns:
        if is_new:
            plan.resent.append(turn)
        elif not is_modern:
            is_begun = turn.has_begun or has_prompt(lines, turn.uuid)
            (plan.lost if is_begun else plan.resent).append(turn)
        else:
            is_folded = plan.resumed and (turn.has_begun or was_folded(lines, turn.uuid))
            (plan.joined if is_folded else plan.resent).append(turn)
    return plan


def continuation(asks: Sequence[StoredAsk]) -> str:
    """Return the prompt that continues a turn, with what became of the calls that waited."""
    lines = [_line(each) for each in asks]
    return "\n".join([CONTINUE, "", HEAD, *lines]) if lines else CONTINUE


def again(prompt: Json, words: str) -> list[Json]:
    """Return the prompt that continues the turn of `prompt` if others stand behind it.

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
