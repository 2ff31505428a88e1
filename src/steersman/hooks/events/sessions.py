"""The life of a session: its start and end, its turns, its context and its model."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.hooks.events.event import HookEvent
from steersman.hooks.outputs import (
    ModelSwitchVerdict,
    Output,
    PostModelSwitchOutput,
    SessionStartOutput,
    SetupOutput,
    StopOutput,
)

__all__ = [
    "PostCompact",
    "PostModelSwitch",
    "PreCompact",
    "PreModelSwitch",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
]


class SessionStart(HookEvent, frozen=True, kw_only=True, tag="SessionStart"):
    """A session begins, or its context begins anew.

    The CLI tells of `clear` and `compact`; of `startup`, `resume` and `fork` the session itself.
    """

    OUTPUT: ClassVar[type[Output] | None] = SessionStartOutput
    MATCHED: ClassVar[str] = "source"

    source: str = ""
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: float | None = None
    context_tokens: int | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: float | None = None


class SessionEnd(HookEvent, frozen=True, kw_only=True, tag="SessionEnd"):
    """A session ends. The CLI tells of `clear`; of its end, as `other`, the session itself."""

    MATCHED: ClassVar[str] = "reason"

    reason: str = ""


class Setup(HookEvent, frozen=True, kw_only=True, tag="Setup"):
    """A repository is set up. The CLI runs this before callbacks can be registered."""

    OUTPUT: ClassVar[type[Output] | None] = SetupOutput
    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""


class Stop(HookEvent, frozen=True, kw_only=True, tag="Stop"):
    """The turn is about to end."""

    OUTPUT: ClassVar[type[Output] | None] = StopOutput

    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    background_tasks: list[dict[str, Any]] = []
    session_crons: list[dict[str, Any]] = []


class StopFailure(HookEvent, frozen=True, kw_only=True, tag="StopFailure"):
    """The turn has ended with an error of the API."""

    MATCHED: ClassVar[str] = "error"

    error: str = ""
    error_details: Any = None
    last_assistant_message: str | None = None


class PreCompact(HookEvent, frozen=True, kw_only=True, tag="PreCompact"):
    """The conversation is about to be summed up."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    custom_instructions: str | None = None


class PostCompact(HookEvent, frozen=True, kw_only=True, tag="PostCompact"):
    """The conversation has been summed up."""

    MATCHED: ClassVar[str] = "trigger"

    trigger: str = ""
    compact_summary: str = ""


class PreModelSwitch(HookEvent, frozen=True, kw_only=True, tag="PreModelSwitch"):
    """The model is about to be changed, by `session.set_model()` or a command."""

    OUTPUT: ClassVar[type[Output] | None] = ModelSwitchVerdict
    MATCHED: ClassVar[str] = "to_model"

    from_model: str = ""
    to_model: str = ""
    requested_model: str = ""
    source: str = ""
    context_tokens: int = 0
    prompt_cache_warm: bool = False
    cache_ttl: str = ""
    estimated_cache_write_usd: float = 0.0
    pricing: str = ""


class PostModelSwitch(HookEvent, frozen=True, kw_only=True, tag="PostModelSwitch"):
    """The model has been changed."""

    OUTPUT: ClassVar[type[Output] | None] = PostModelSwitchOutput
    MATCHED: ClassVar[str] = "to_model"

    from_model: str = ""
    to_model: str = ""
    requested_model: str = ""
    source: str = ""
    context_tokens: int = 0
    prompt_cache_warm: bool = False
    cache_ttl: str = ""
    estimated_cache_write_usd: float = 0.0
    pricing: str = ""
