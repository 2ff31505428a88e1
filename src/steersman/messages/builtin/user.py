"""Tools that address the user: questions, messages, notifications."""

from __future__ import annotations

from steersman._json import Json, JsonDict
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
    """An answer that the user can choose."""

    label: str = ""
    description: str = ""
    preview: str | None = None


class Question(Part, frozen=True, kw_only=True, rename="camel"):
    """A question with its choices."""

    question: str = ""
    header: str = ""
    options: list[Choice] = []
    multi_select: bool = False


class AskUserQuestionInput(ToolInput, frozen=True, kw_only=True):
    """`AskUserQuestion`: ask the user; the keys of `answers` are the texts of the questions."""

    questions: list[Question] = []
    answers: dict[str, str] | None = None
    annotations: JsonDict | None = None
    metadata: JsonDict | None = None


class AskUserQuestionOutput(ToolOutput, frozen=True, kw_only=True):
    """The user's answers."""

    questions: list[Question] | None = None
    answers: JsonDict | None = None
    response: Json = None
    annotations: JsonDict | None = None
    afk_timeout_ms: float | None = None


class SendUserMessageInput(ToolInput, frozen=True, kw_only=True):
    """`SendUserMessage`: send a message to the user."""

    message: str = ""
    status: str = ""
    attachments: list[Json] | None = None


class SendUserFileInput(ToolInput, frozen=True, kw_only=True):
    """`SendUserFile`: send a file to the user. Its fields are not declared; `raw` has them."""


class PushNotificationInput(ToolInput, frozen=True, kw_only=True):
    """`PushNotification`: notify a user who is away."""

    message: str = ""
    status: str | None = None


class PushNotificationOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether the notification was sent."""

    message: str | None = None
    push_sent: bool | None = None
    local_sent: bool | None = None
    disabled_reason: str | None = None
    sent_at: Json = None


class ReadNotificationsInput(ToolInput, frozen=True, kw_only=True):
    """`ReadNotifications`: read incoming notifications."""


class ReadNotificationsOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """The incoming notifications."""

    notifications: list[Json] | None = None
    remaining: int | None = None
    read_at: Json = None


class SendFeedbackInput(ToolInput, frozen=True, kw_only=True):
    """`SendFeedback`: send feedback to the makers of the CLI."""

    type: str = ""
    title: str = ""
    details: str = ""
    area: str | None = None
    failure_mode: str | None = None
    task_category: str | None = None


class SendFeedbackOutput(ToolOutput, frozen=True, kw_only=True):
    """Whether the feedback was accepted."""

    success: bool | None = None
    message: str | None = None


class EndConversationInput(ToolInput, frozen=True, kw_only=True):
    """`EndConversation`: the model ends the conversation. `raw` has the undeclared fields."""


class ShowOnboardingRolePickerInput(ToolInput, frozen=True, kw_only=True):
    """`ShowOnboardingRolePicker`: ask the user for their role."""


class ShowOnboardingRolePickerOutput(ToolOutput, frozen=True, kw_only=True):
    """The user's role, or that the user dismissed the dialog."""

    role: str | None = None
    dismissed: bool | None = None


class OfferChromeSetupInput(ToolInput, frozen=True, kw_only=True):
    """`OfferChromeSetup`: offer to connect a browser."""

    reason: str | None = None


class OfferChromeSetupOutput(ToolOutput, frozen=True, kw_only=True):
    """The user's choice."""

    outcome: str | None = None


class ShareOnboardingGuideInput(ToolInput, frozen=True, kw_only=True):
    """`ShareOnboardingGuide`: its fields are not declared; `raw` has them."""
