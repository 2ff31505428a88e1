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
    """What an interrupt left waiting, and what it took along. Empty on older CLIs."""

    still_queued: list[str] = field(default_factory=list[str], name="still_queued")
    cancelled: list[str] = []


class Interrupt(Verb[InterruptReceipt], frozen=True, kw_only=True, tag="interrupt"):
    """Stop the turn under way."""

    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {
        "cancel_queued": "interrupt_cancel_queued_v1"
    }

    cancel_queued: bool = False


class Withdrawn(Answer, frozen=True, kw_only=True):
    """Whether the prompt was still waiting, and is gone now."""

    cancelled: bool = False


class CancelAsyncMessage(Verb[Withdrawn], frozen=True, kw_only=True, tag="cancel_async_message"):
    """Take back a prompt that the CLI has queued."""

    message_uuid: Text


class RenameSession(Verb[Answer], frozen=True, kw_only=True, tag="rename_session"):
    """Give the conversation a title."""

    title: Text
    source: Literal["remote", "host"] | None = None
    session_id: Text | None = None
    """Only to be sure: refused if another conversation is under way."""


class SetColor(Verb[Answer], frozen=True, kw_only=True, tag="set_color"):
    """Give the conversation a colour; declared, and refused by every CLI seen over stdio."""

    color: Text


class SetHasSubscribers(Verb[Answer], frozen=True, kw_only=True, tag="set_has_subscribers"):
    """Say whether somebody looks on, so that pieces of text are sent at once or in bundles."""

    has_subscribers: bool


class BinaryVersion(Answer, frozen=True, kw_only=True):
    """Which CLI this is."""

    version: str = ""
    build_time: str = ""


class GetBinaryVersion(Verb[BinaryVersion], frozen=True, kw_only=True, tag="get_binary_version"):
    """Ask which CLI this is."""


class SideAnswer(Answer, frozen=True, kw_only=True):
    """What the model says to a side question."""

    response: str | None = None
    synthetic: bool = False
    """The CLI wrote it, not the model."""


class SideQuestion(Verb[SideAnswer], frozen=True, kw_only=True, tag="side_question"):
    """Ask the model something about the conversation that is not to become part of it."""

    TIMEOUT: ClassVar[float | None] = 300.0

    question: Text


class SessionTitle(Answer, frozen=True, kw_only=True):
    """A title; nothing if the model gave none that can be used."""

    title: str | None = None


class GenerateSessionTitle(
    Verb[SessionTitle], frozen=True, kw_only=True, tag="generate_session_title"
):
    """Have the model find a title for what is described."""

    TIMEOUT: ClassVar[float | None] = 120.0

    description: Text
    persist: bool | None = None
    """Whether the conversation is to be called so from now on."""


class PlanFound(Answer, frozen=True, kw_only=True):
    """The plan of plan mode, if there is one."""

    exists: bool = False
    content: str = ""
    path: str = ""


class GetPlan(Verb[PlanFound], frozen=True, kw_only=True, tag="get_plan"):
    """Ask for the plan that was written in plan mode."""


class EndSession(Verb[Answer], frozen=True, kw_only=True, tag="end_session"):
    """Have the CLI end by itself; `session.aclose()` is the better way.

    A session takes the end for a crash, because it did not begin to close.
    """

    reason: str | None = None
