"""Verbs about the session as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import field

from steersman.control.verbs import Answer, Text, Verb

__all__ = [
    "BinaryVersion",
    "CancelAsyncMessage",
    "EndSession",
    "GenerateSessionTitle",
    "GetBinaryVersion",
    "GetPlan",
    "Interrupt",
    "InterruptReceipt",
    "PlanFound",
    "RenameSession",
    "SessionTitle",
    "SetColor",
    "SetHasSubscribers",
    "SideAnswer",
    "SideQuestion",
    "Withdrawn",
]


class InterruptReceipt(Answer, frozen=True, kw_only=True):
    """The prompts that an interrupt left queued, and those it cancelled. Empty on older CLIs."""

    still_queued: list[str] = field(default_factory=list[str], name="still_queued")
    cancelled: list[str] = []


class Interrupt(Verb[InterruptReceipt], frozen=True, kw_only=True, tag="interrupt"):
    """Stop the current turn."""

    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "cancel_queued": "interrupt_cancel_queued_v1"
    }

    cancel_queued: bool = False


class Withdrawn(Answer, frozen=True, kw_only=True):
    """Whether the prompt was still queued, and is cancelled now."""

    cancelled: bool = False


class CancelAsyncMessage(Verb[Withdrawn], frozen=True, kw_only=True, tag="cancel_async_message"):
    """Cancel a prompt that the CLI has queued."""

    message_uuid: Text


class RenameSession(Verb[Answer], frozen=True, kw_only=True, tag="rename_session"):
    """Set the title of the conversation."""

    title: Text
    source: Literal["remote", "host"] | None = None
    session_id: Text | None = None
    """A safeguard: the request is refused if this is not the current conversation."""


class SetColor(Verb[Answer], frozen=True, kw_only=True, tag="set_color"):
    """Set the color of the conversation. Declared, but refused by every CLI tried over stdio."""

    color: Text


class SetHasSubscribers(Verb[Answer], frozen=True, kw_only=True, tag="set_has_subscribers"):
    """Set whether a reader follows the output: if not, the CLI sends text in larger chunks."""

    has_subscribers: bool


class BinaryVersion(Answer, frozen=True, kw_only=True):
    """The version of the CLI."""

    version: str = ""
    build_time: str = ""


class GetBinaryVersion(Verb[BinaryVersion], frozen=True, kw_only=True, tag="get_binary_version"):
    """Request the version of the CLI."""


class SideAnswer(Answer, frozen=True, kw_only=True):
    """The model's answer to a `SideQuestion`."""

    response: str | None = None
    synthetic: bool = False
    """The CLI wrote the answer, not the model."""


class SideQuestion(Verb[SideAnswer], frozen=True, kw_only=True, tag="side_question"):
    """Ask the model about the conversation without adding to the conversation."""

    TIMEOUT: ClassVar[float | None] = 300.0

    question: Text


class SessionTitle(Answer, frozen=True, kw_only=True):
    """A title, or None if the model gave no usable one."""

    title: str | None = None


class GenerateSessionTitle(
    Verb[SessionTitle], frozen=True, kw_only=True, tag="generate_session_title"
):
    """Let the model generate a title from a description."""

    TIMEOUT: ClassVar[float | None] = 120.0

    description: Text
    persist: bool | None = None
    """Whether to set the title of the conversation as well."""


class PlanFound(Answer, frozen=True, kw_only=True):
    """The plan of plan mode, if there is one."""

    exists: bool = False
    content: str = ""
    path: str = ""


class GetPlan(Verb[PlanFound], frozen=True, kw_only=True, tag="get_plan"):
    """Request the plan that was written in plan mode."""


class EndSession(Verb[Answer], frozen=True, kw_only=True, tag="end_session"):
    """Make the CLI exit. Use `session.aclose()` instead.

    The session treats this exit as a crash, because it did not begin to close.
    """

    reason: str | None = None
