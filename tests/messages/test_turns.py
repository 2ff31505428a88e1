from __future__ import annotations

from steersman.messages import (
    Assistant,
    AssistantBody,
    CommandLifecycle,
    ContextUsage,
    DeferredToolUse,
    MessageOrigin,
    ModelUsage,
    Result,
    StreamEvent,
    TextBlock,
    ToolProgress,
    ToolUseBlock,
    Usage,
    UsageReport,
    User,
    UserBody,
    parse_message,
)
from tests.samples import frames, sample


def test_an_assistant_message_has_its_words_and_its_tools() -> None:
    message = Assistant(
        message=AssistantBody(
            content=[
                TextBlock(text="first "),
                ToolUseBlock(id="t", name="Read"),
                TextBlock(text="second"),
            ]
        )
    )

    assert message.text == "first second"
    assert message.tool_uses == [ToolUseBlock(id="t", name="Read")]


def test_a_recorded_assistant_message_has_its_model_its_id_and_its_tokens() -> None:
    frame = sample("assistant")

    message = parse_message(frame)

    assert isinstance(message, Assistant)
    said = frame["message"]
    assert (message.message.id, message.message.model) == (said["id"], said["model"])
    assert message.message.usage == Usage(**said["usage"])
    assert message.message.usage.raw == said["usage"]


def test_an_api_failure_is_marked_on_the_message_that_tells_of_it() -> None:
    (frame,) = [each for each in frames("api_400") if each.get("is_api_error_message")]

    message = parse_message(frame)

    assert isinstance(message, Assistant)
    assert (message.error, message.api_error_status) == ("unknown", 400)
    assert message.is_api_error_message


def test_an_interrupted_message_is_marked_as_such() -> None:
    aborted = [frame for frame in frames("interrupt_mid_stream") if frame.get("aborted")]

    messages = [parse_message(frame) for frame in aborted]

    assert [isinstance(each, Assistant) and each.aborted for each in messages] == [True]


def test_a_user_message_may_be_a_text_or_blocks() -> None:
    text = parse_message({"type": "user", "message": {"content": "hi", "role": "user"}})
    blocks = parse_message({"type": "user", "message": {"content": [{"type": "text"}]}})

    assert text == User(message=UserBody(content="hi"))
    assert blocks == User(message=UserBody(content=[TextBlock()]))


def test_a_replayed_prompt_and_one_of_the_cli_itself_can_be_told_apart() -> None:
    replays = [
        message.is_replay
        for message in map(parse_message, frames("replay_user_messages"))
        if isinstance(message, User)
    ]
    synthetic = [
        message.is_synthetic
        for message in map(parse_message, frames("api_max_tokens"))
        if isinstance(message, User)
    ]

    assert replays == [True, True]
    assert any(synthetic)


def test_a_result_has_its_tokens_and_they_know_where_they_stood() -> None:
    frame = sample("result/success")

    message = parse_message(frame)

    assert isinstance(message, Result)
    assert message.usage.raw == frame["usage"]
    assert message.usage.output_tokens == frame["usage"]["output_tokens"]


def test_a_result_tells_what_each_model_took() -> None:
    frame = sample("result/success")
    frame["modelUsage"] = {"m": {"inputTokens": 5, "costUSD": 0.5, "new": 1}, "strange": 7}

    message = parse_message(frame)

    assert isinstance(message, Result)
    assert message.model_usage == {
        "m": ModelUsage(input_tokens=5, cost_usd=0.5),
        "strange": ModelUsage(),
    }
    assert message.model_usage["m"].raw == frame["modelUsage"]["m"]
    assert message.model_usage["strange"].raw == {}


def test_a_deferred_tool_stands_on_the_result() -> None:
    (frame,) = [each for each in frames("hook_pre_defer") if each.get("deferred_tool_use")]

    message = parse_message(frame)

    assert isinstance(message, Result)
    found = frame["deferred_tool_use"]
    assert message.deferred_tool_use == DeferredToolUse(**found)
    assert message.deferred_tool_use.raw == found


def test_reports_on_usage_stand_on_the_message_that_brings_them() -> None:
    frame = sample("assistant")
    frame["context_usage"] = {"model": "m", "total_tokens": 10, "new": True}
    frame["usage_report"] = {"session": {"cost": 1}, "rate_limits": None}

    message = parse_message(frame)

    assert isinstance(message, Assistant)
    assert message.context_usage == ContextUsage(model="m", total_tokens=10)
    assert message.context_usage.raw == frame["context_usage"]
    assert message.usage_report == UsageReport(session={"cost": 1})
    assert message.usage_report.raw == frame["usage_report"]


def test_a_prompt_of_somebody_else_says_whose_it_is() -> None:
    origin = {"kind": "peer", "from": "lead", "fromMode": 5}

    message = parse_message({"type": "user", "message": {"content": "hi"}, "origin": origin})

    assert isinstance(message, User)
    assert message.origin == MessageOrigin(kind="peer", from_="lead")
    assert message.origin.raw == origin


def test_a_foreign_result_says_whose_it_is() -> None:
    results = [
        message.origin
        for message in map(parse_message, frames("subagent_background"))
        if isinstance(message, Result)
    ]

    assert [origin and origin.kind for origin in results] == [None, "task-notification"]


def test_a_stream_event_holds_the_event_of_the_api_as_it_is() -> None:
    frame = sample("stream_event/content_block_delta")

    message = parse_message(frame)

    assert isinstance(message, StreamEvent)
    assert message.event == frame["event"]


def test_a_heartbeat_names_its_tool() -> None:
    message = parse_message(sample("tool_progress"))

    assert isinstance(message, ToolProgress)
    assert message.tool_name
    assert "heartbeat" in message.tool_use_id


def test_a_lifecycle_names_the_prompt() -> None:
    states = [
        (message.command_uuid[0], message.state)
        for message in map(parse_message, frames("user_duplicate_uuid"))
        if isinstance(message, CommandLifecycle)
    ]

    assert states == [("1", "queued"), ("1", "started"), ("1", "completed")]
