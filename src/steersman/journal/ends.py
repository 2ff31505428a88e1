"""The ends of a turn: every spelling in which the CLI ends one, and what each means.

The CLI reports it in `terminal_reason`. Without that field it is in `stop_reason` (a call that was
deferred before, and is deferred again), in `subtype` (older CLIs), or in the text of the result (a
prompt that the model never saw). `steersman conform` lists what a CLI sends for each end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from steersman.errors import ApiFailed, NotLoggedIn, SteersmanError, TurnStopped
from steersman.messages.turns import Result

Outcome = Literal["completed", "failed", "interrupted", "cancelled", "parked"]
"""How a turn ended. A `parked` turn is not over: `session.resume_turns()` continues it."""

Meaning = Literal["completed", "deferred", "hook", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class End:
    """One way in which a turn ends."""

    why: str
    """The word for it in `TurnStopped.why`."""
    meaning: Meaning
    """`deferred`: a hook has deferred a call. `hook`: a hook has ended the turn."""
    what: str = ""
    hint: str = ""
    stop_reason: str = ""
    """The `stop_reason` of a result that has no `terminal_reason`."""
    subtype: str = ""
    """The `subtype` of a result that has no `terminal_reason`."""


ENDS = (
    End("completed", "completed"),
    End("tool_deferred", "deferred", stop_reason="tool_deferred"),
    # Also a turn that a prompt sent `now` has cut off; that result is a success.
    End("aborted_streaming", "interrupted"),
    End("aborted_tools", "interrupted"),
    End("hook_stopped", "hook", "a hook ended the turn"),
    End("stop_hook_prevented", "hook", "a Stop hook ended the turn"),
    End("api_error", "failed"),
    End(
        "max_turns",
        "failed",
        "the turn reached max_turns",
        "raise max_turns=",
        subtype="error_max_turns",
    ),
    End(
        "budget_exhausted",
        "failed",
        "the session reached max_budget_usd",
        "raise max_budget_usd=",
        subtype="error_max_budget_usd",
    ),
    End(
        "blocking_limit",
        "failed",
        "the conversation is too long for the model",
        "send /compact",
    ),
    End(
        "structured_output_retry_exhausted",
        "failed",
        "the model did not produce output that fits the schema",
        "make the schema less strict, or the prompt clearer",
        subtype="error_max_structured_output_retries",
    ),
)
"""The ends that a result names by `why` in its `terminal_reason`, and their other spellings."""

ABORTED = "aborted"
"""The beginning of each `terminal_reason` of a turn that was interrupted."""

STOPPED_PROMPT = "Operation stopped by hook: "
BLOCKED_PROMPT = re.compile(
    r"\w+ operation blocked by hook:\n(.*?)(\n\nOriginal prompt: .*)?", re.DOTALL
)
"""Results of prompts that the model never saw, because a hook ended or blocked them."""

BLOCKED = End("blocked_by_hook", "hook", "a hook blocked the prompt")

OWN: Mapping[str, End] = {
    "interrupted": End("interrupted", "interrupted", "the turn was interrupted"),
    "cancelled": End(
        "cancelled",
        "interrupted",
        "the prompt was withdrawn, or the session ended, before the turn was done",
    ),
    "parked": End(
        "parked",
        "deferred",
        "the session was parked before the turn was done",
        "answer the asks in `waits_for`, open the conversation again, and call resume_turns()",
    ),
}
"""Outcomes that a session gives to a turn itself."""

DIAGNOSTIC = "[ede_diagnostic]"
"""The beginning of errors in a result that only developers of the CLI can read."""

_BY_REASON = {each.why: each for each in ENDS}
_COMPLETED = _BY_REASON["completed"]
_BY_STOP_REASON = {each.stop_reason: each for each in ENDS if each.stop_reason}
_BY_SUBTYPE = {each.subtype: each for each in ENDS if each.subtype}


def end_of(result: Result) -> End:
    """Return how a turn with this result ended. An end that is not known is kept by its word."""
    reason = result.terminal_reason
    if reason is None:
        known = _BY_STOP_REASON.get(result.stop_reason or "") or _BY_SUBTYPE.get(result.subtype)
    else:
        known = _BY_REASON.get(reason)
    if known is _COMPLETED and result.is_error:
        # As older CLIs report a failure of the API.
        return _BY_REASON["api_error"]
    if known is not None:
        return known
    if (reason or "").startswith(ABORTED):
        return End(reason or "", "interrupted")
    meaning: Meaning = "failed" if result.is_error else "completed"
    return End(reason or result.subtype or "failed", meaning)


def was_deferred(result: Result) -> bool:
    """Whether the turn ended because a hook has deferred a call, for the first time or again."""
    return end_of(result).meaning == "deferred"


def outcome_of(result: Result, *, was_interrupted: bool = False) -> Outcome:
    """Return whether a turn with this result was completed, has failed or was interrupted.

    The CLI reports an interrupt as an error, and an API failure with subtype `success`.
    """
    if end_of(result).meaning == "interrupted":
        return "interrupted"
    # Older CLIs send no terminal_reason. An error after an interrupt means: interrupted.
    if was_interrupted and result.terminal_reason is None and result.is_error:
        return "interrupted"
    return "failed" if result.is_error else "completed"


def cause_of(result: Result | None, outcome: Outcome) -> SteersmanError | None:
    """Return why a turn with this outcome ended as it did; `None` only if it was completed.

    A turn that a hook ended counts as completed, and has a cause.
    """
    if outcome == "completed":
        return None if result is None else _ended_by_hook(result)
    if result is None or outcome != "failed":
        return _stopped(OWN.get(outcome) or End(outcome, "failed"))
    text = result.result or "; ".join(_readable(result.errors))
    if result.api_error_status == 401 or "/login" in text:  # noqa: PLR2004 - HTTP's own number
        return NotLoggedIn(
            text or "the API refused the credential",
            hint="log in with `claude`, or set ANTHROPIC_API_KEY; if your user settings have the"
            ' key helper, pass setting_sources=("user",)',
        )
    end = end_of(result)
    if result.api_error_status is not None or end.why == "api_error":
        return ApiFailed(text or "the API request failed", status=result.api_error_status)
    return _stopped(end, text)


def ended_by_hook(result: Result, words: str) -> TurnStopped | None:
    """Return the cause of a turn that a hook of ours ended, with its `stop_reason`."""
    end = end_of(result)
    return _stopped(end, words) if words and end.meaning == "hook" else None


def _ended_by_hook(result: Result) -> TurnStopped | None:
    end = end_of(result)
    if end.meaning == "hook":
        return _stopped(end)
    if result.num_turns or not result.result:
        return None
    if result.result.startswith(STOPPED_PROMPT):
        return _stopped(_BY_REASON["hook_stopped"], result.result.removeprefix(STOPPED_PROMPT))
    blocked = BLOCKED_PROMPT.fullmatch(result.result)
    return None if blocked is None else _stopped(BLOCKED, blocked[1])


def _readable(errors: list[str]) -> list[str]:
    return [each for each in errors if not each.startswith(DIAGNOSTIC)]


def _stopped(end: End, text: str = "") -> TurnStopped:
    what = end.what or f"the CLI ended the turn: {end.why}"
    return TurnStopped(end.why, f"{what}: {text}" if text else what, hint=end.hint)
