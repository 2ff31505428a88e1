"""Messages of a turn: user and assistant messages, stream events, results.

The field `type` decides the class. To add one, write its class here and name it in the union below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import field
from msgspec.structs import force_setattr

from steersman._json import Json, JsonDict
from steersman._struct import SOURCE, Readers, WireStruct, place_of, set_source
from steersman.messages.base import MessageWire
from steersman.messages.content import (
    Block,
    KnownBlock,
    TextBlock,
    ToolUseBlock,
    read_blocks,
    set_places,
)
from steersman.messages.usage import ContextUsage, ModelUsage, Usage, UsageReport

if TYPE_CHECKING:
    from steersman.messages.streaming import ApiEvent

__all__ = [
    "Assistant",
    "AssistantBody",
    "CommandLifecycle",
    "ConversationReset",
    "DeferredToolUse",
    "MessageOrigin",
    "PromptSuggestion",
    "Result",
    "StreamEvent",
    "ToolProgress",
    "ToolUseSummary",
    "TurnMessage",
    "User",
    "UserBody",
]

BODY, USAGE = ("message",), ("message", "usage")
"""The paths of an assistant's body and of its usage, from the line."""


class MessageOrigin(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """Where a prompt came from, if it did not come from the host program."""

    kind: str = ""
    server: str | None = None
    from_: str | None = field(default=None, name="from")
    from_mode: str | None = None
    name: str | None = None
    from_session: str | None = None
    sender_task_id: str | None = None
    body: Json = None
    verified_peer_pid: int | None = None
    subkind: str | None = None
    fire_reason: str | None = None
    run_id: str | None = None


class UserBody(WireStruct, frozen=True, kw_only=True):
    """The `message` of a `User`."""

    READERS: ClassVar[Readers] = {"content": read_blocks}

    content: str | list[KnownBlock] = ""
    role: str = "user"


class User(MessageWire, frozen=True, kw_only=True, tag="user"):
    """A user message: a prompt, a tool result, or a text that the CLI wrote."""

    message: UserBody = field(default_factory=UserBody)
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    is_replay: bool = field(default=False, name="isReplay")
    is_synthetic: bool = field(default=False, name="isSynthetic")
    tool_use_result: Json = None
    """The output of the tool, or a text on error; see `typed_output` for its class."""
    priority: str | None = None
    origin: MessageOrigin | None = None
    should_query: bool | None = field(default=None, name="shouldQuery")
    timestamp: str | None = None
    client_composed: Json = None
    pasted_content: Json = None
    inline_pastes: Json = None
    file_attachments: Json = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None

    def _link_children(self) -> None:
        root, path = place_of(self)
        body = self.message
        force_setattr(body, SOURCE, (root, (*path, "message")))
        set_places(body.content, root, (*path, "message", "content"))
        if self.origin is not None:
            set_source(self.origin, (self, ("origin",)))

    @property
    def content(self) -> str | list[Block]:
        """The content: a text, or blocks such as tool results."""
        return self.message.content  # type: ignore[return-value]  # lenient reading adds UnknownBlock


class AssistantBody(WireStruct, frozen=True, kw_only=True):
    """The `message` of an `Assistant`."""

    READERS: ClassVar[Readers] = {"content": read_blocks}

    content: list[KnownBlock] = []
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: Usage = field(default_factory=Usage)


class Assistant(MessageWire, frozen=True, kw_only=True, tag="assistant"):
    """An assistant message, with one complete content block."""

    message: AssistantBody = field(default_factory=AssistantBody)
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    request_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] = []
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool | None = None
    supersedes: Json = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None
    aborted: bool = False
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    context_usage: ContextUsage | None = None
    usage_report: UsageReport | None = None

    @property
    def content(self) -> list[Block]:
        """The content blocks."""
        return self.message.content  # type: ignore[return-value]  # lenient reading adds UnknownBlock

    @property
    def text(self) -> str:
        """The text, without thinking and tool uses."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The tool calls that the model requests."""
        # `isinstance` takes ten times as long for a struct of another class.
        return [block for block in self.content if type(block) is ToolUseBlock]


class StreamEvent(MessageWire, frozen=True, kw_only=True, tag="stream_event"):
    """A partial message: one stream event of the API."""

    event: JsonDict = {}
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    api_message_id: str | None = None
    ttft_ms: float | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None
    abandoned_blocks: JsonDict | None = None
    """On the last event of a stream that broke: the blocks to discard."""

    def typed(self) -> ApiEvent:
        """Return the event as its class, such as `ContentBlockDelta`."""
        # Imported here, because most programs read only the text of a turn.
        from steersman.messages.streaming import read_event  # noqa: PLC0415

        return set_source(read_event(self.event), (self, ("event",)))


class DeferredToolUse(WireStruct, frozen=True, kw_only=True):
    """A tool use that a hook deferred; the turn ended before the tool ran."""

    id: str = ""
    name: str = ""
    input: JsonDict = {}


class Result(MessageWire, frozen=True, kw_only=True, tag="result"):
    """The end of a turn, with its result and its cost.

    `subtype: success` does not mean success: an API failure is a `success` with `is_error`.
    """

    subtype: str = ""  # pyright: ignore[reportIncompatibleMethodOverride] - a field
    is_error: bool = False
    session_id: str = ""
    uuid: str | None = None
    result: str | None = None
    structured_output: Json = None
    deferred_tool_use: DeferredToolUse | None = None
    permission_denials: list[JsonDict] = []
    local_command: str | None = None
    # Why the turn ended.
    stop_reason: str | None = None
    terminal_reason: str | None = None
    startup_failure_reason: str | None = None
    invalid_config_file: Json = None
    errors: list[str] = []
    api_error_status: int | None = None
    # Which prompts it answers.
    origin: MessageOrigin | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] = []
    resume_reason: str | None = None
    result_index: int | None = None
    queued_turn_count: int | None = None
    # Tokens and cost.
    num_turns: int = 0
    total_cost_usd: float | None = None
    """The total of the CLI process so far, not of this turn."""
    usage: Usage = field(default_factory=Usage)
    model_usage: dict[str, ModelUsage] = field(
        default_factory=dict[str, ModelUsage], name="modelUsage"
    )
    model_usage_since_last_result: JsonDict = {}
    credential_expires_at: Json = None
    fast_mode_state: str | None = None
    fast_mode_disabled_reason: str | None = None
    # Times.
    duration_ms: int = 0
    duration_api_ms: int = 0
    ttft_ms: int | None = None
    ttft_stream_ms: float | None = None
    time_to_request_ms: float | None = None
    time_to_request_from_spawn_ms: float | None = None
    time_origin_ms: float | None = None
    request_sent_wall_ms: float | None = None
    first_content_frame_ms: float | None = None
    first_stream_post_ms: float | None = None
    first_stream_post_ack_ms: float | None = None
    first_stream_post_queue_wait_ms: float | None = None
    first_stream_post_queued_behind: float | None = None
    first_stream_post_wall_ms: float | None = None
    first_text_post_ms: float | None = None
    first_text_post_queue_wait_ms: float | None = None
    first_text_post_queued_behind: float | None = None
    first_text_post_wall_ms: float | None = None
    warm_spare_claimed: bool | None = None


class ToolProgress(MessageWire, frozen=True, kw_only=True, tag="tool_progress"):
    """A tool or a hook still runs; sent every thirty seconds."""

    tool_use_id: str = ""
    tool_name: str = ""
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None
    task_id: str | None = None
    heartbeat: bool | None = None
    subagent_type: str | None = None
    subagent_retry: Json = None
    session_id: str = ""
    uuid: str | None = None


class ToolUseSummary(MessageWire, frozen=True, kw_only=True, tag="tool_use_summary"):
    """A short summary of the preceding tool uses."""

    summary: str = ""
    preceding_tool_use_ids: list[str] = []
    timestamp: str | None = None
    session_id: str = ""
    uuid: str | None = None


class CommandLifecycle(MessageWire, frozen=True, kw_only=True, tag="command_lifecycle"):
    """A prompt that we sent was queued, started, completed or cancelled."""

    command_uuid: str = ""
    state: str = ""
    wakeup_source: str | None = None
    scheduled_for: Json = None
    ran_ahead: Json = None
    session_id: str = ""
    uuid: str | None = None


class PromptSuggestion(MessageWire, frozen=True, kw_only=True, tag="prompt_suggestion"):
    """A suggestion for the user's next prompt; sent after the result."""

    suggestion: str = ""
    session_id: str = ""
    uuid: str | None = None


class ConversationReset(MessageWire, frozen=True, kw_only=True, tag="conversation_reset"):
    """The conversation was cleared by `/clear`; cumulative totals start again at zero."""

    new_conversation_id: str = ""
    trigger: str | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None
    session_id: str = ""
    """The conversation that was cleared; the next message has the new id."""
    uuid: str | None = None


TurnMessage = (
    User
    | Assistant
    | StreamEvent
    | Result
    | ToolProgress
    | ToolUseSummary
    | CommandLifecycle
    | PromptSuggestion
    | ConversationReset
)


def set_line(message: MessageWire, line: bytes) -> None:
    """Set the source of `message`, which was decoded from `line`, and of the values inside it."""
    if type(message) is Assistant:
        # All in one function: most messages that are not partial are of this class.
        body = message.message
        force_setattr(message, SOURCE, line)
        force_setattr(body, SOURCE, (line, BODY))
        force_setattr(body.usage, SOURCE, (line, USAGE))
        for position, block in enumerate(body.content):
            force_setattr(block, SOURCE, (line, ("message", "content", position)))
        if message.context_usage is not None:
            set_source(message.context_usage, (message, ("context_usage",)))
        if message.usage_report is not None:
            set_source(message.usage_report, (message, ("usage_report",)))
    else:
        set_source(message, line)
