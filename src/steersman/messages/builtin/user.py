"""Tools that turn to a person: to ask, to tell, to send."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import Readers, many
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "AskUserQuestionInput",
    "AskUserQuestionOutput",
    "Choice",
    "EndConversationInput",
    "OfferChromeSetupInput",
    "OfferChromeSetupOutput",
    "PushNotificationInput",
    "PushNotificationOutput",
    "Question",
    "ReadNotificationsInput",
    "ReadNotificationsOutput",
    "SendFeedbackInput",
    "SendFeedbackOutput",
    "SendUserFileInput",
    "SendUserMessageInput",
    "ShareOnboardingGuideInput",
    "ShowOnboardingRolePickerInput",
    "ShowOnboardingRolePickerOutput",
]


class Choice(Part, frozen=True, kw_only=True):
    """An answer that can be picked."""

    label: str = ""
    description: str = ""
    preview: str | None = None


class Question(Part, frozen=True, kw_only=True, rename="camel"):
    """A question with its choices."""

    READERS: ClassVar[Readers] = {"options": many(Choice)}

    question: str = ""
    header: str = ""
    options: list[Choice] = []
    multi_select: bool = False


class AskUserQuestionInput(ToolInput, frozen=True, kw_only=True):
    """`AskUserQuestion`: ask the person; `answers` go by the question's words."""

    READERS: ClassVar[Readers] = {"questions": many(Question)}

    questions: list[Question] = []
    answers: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class AskUserQuestionOutput(ToolOutput, frozen=True, kw_only=True):
    """What the person answered."""

    READERS: ClassVar[Readers] = {"questions": many(Question)}

    questions: list[Question] | None = None
    answers: dict[str, Any] | None = None
    response: Any = None
    annotations: dict[str, Any] | None = None
    afk_timeout_ms: float | None = None


class SendUserMessageInput(ToolInput, frozen=True, kw_only=True):
    """`SendUserMessage`: tell the person something."""

    message: str = ""
    status: str = ""
    attachments: list[Any] | None = None


class SendUserFileInput(ToolInput, frozen=True, kw_only=True):
    """`SendUserFile`: give the person a file. Known by name only; `raw` has the rest."""


class PushNotificationInput(ToolInput, frozen=True, kw_only=True):
    """`PushNotification`: reach the person who is away."""

    message: str = ""
    status: str | None = None


class PushNotificationOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether they were reached."""

    message: str | None = None
    push_sent: bool | None = None
    local_sent: bool | None = None
    disabled_reason: str | None = None
    sent_at: Any = None


class ReadNotificationsInput(ToolInput, frozen=True, kw_only=True):
    """`ReadNotifications`: see what has come in."""


class ReadNotificationsOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """What has come in."""

    notifications: list[Any] | None = None
    remaining: int | None = None
    read_at: Any = None


class SendFeedbackInput(ToolInput, frozen=True, kw_only=True):
    """`SendFeedback`: tell the makers of the CLI."""

    type: str = ""
    title: str = ""
    details: str = ""
    area: str | None = None
    failure_mode: str | None = None
    task_category: str | None = None


class SendFeedbackOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether it was taken."""

    success: bool | None = None
    message: str | None = None


class EndConversationInput(ToolInput, frozen=True, kw_only=True):
    """`EndConversation`: the model ends it. Known by name only; `raw` has the rest."""


class ShowOnboardingRolePickerInput(ToolInput, frozen=True, kw_only=True):
    """`ShowOnboardingRolePicker`: ask the person what they do."""


class ShowOnboardingRolePickerOutput(ToolOutput, frozen=True, kw_only=True):
    """What the person does, or that they would not say."""

    role: str | None = None
    dismissed: bool | None = None


class OfferChromeSetupInput(ToolInput, frozen=True, kw_only=True):
    """`OfferChromeSetup`: offer to connect a browser."""

    reason: str | None = None


class OfferChromeSetupOutput(ToolOutput, frozen=True, kw_only=True):
    """What came of it."""

    outcome: str | None = None


class ShareOnboardingGuideInput(ToolInput, frozen=True, kw_only=True):
    """`ShareOnboardingGuide`: known by name only; `raw` has what was given."""
