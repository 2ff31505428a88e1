from __future__ import annotations

from typing import Any

import pytest

from steersman import _json
from steersman._values import read_leniently
from steersman.control import (
    Answer,
    CancelAsyncMessage,
    Initialize,
    Initialized,
    Interrupt,
    InterruptReceipt,
    McpMessage,
    ModelSet,
    PermissionModeSet,
    SetModel,
    SetPermissionMode,
    Verb,
    Withdrawn,
)
from tests.samples import Frame, dialogue, frames


def answers_to(trace: str, subtype: str) -> list[Frame]:
    """The payloads of the CLI's successes for one kind of request."""
    ids = {
        frame["request_id"]
        for side, frame in dialogue(trace)
        if side == "sdk>cli" and frame.get("request", {}).get("subtype") == subtype
    }
    return [
        frame["response"]["response"]
        for frame in frames(trace)
        if frame["type"] == "control_response"
        and frame["response"]["request_id"] in ids
        and "response" in frame["response"]
    ]


@pytest.mark.parametrize(
    ("verb", "wire"),
    [
        (Interrupt(), {"subtype": "interrupt"}),
        (Interrupt(cancel_queued=True), {"subtype": "interrupt", "cancel_queued": True}),
        (SetModel(model="opus"), {"subtype": "set_model", "model": "opus"}),
        (SetModel(model=None), {"subtype": "set_model", "model": None}),
        (SetPermissionMode(mode="plan"), {"subtype": "set_permission_mode", "mode": "plan"}),
        (
            CancelAsyncMessage(message_uuid="u"),
            {"subtype": "cancel_async_message", "message_uuid": "u"},
        ),
        (
            McpMessage(server_name="calc", message={"method": "x"}),
            {"subtype": "mcp_message", "server_name": "calc", "message": {"method": "x"}},
        ),
        (Initialize(), {"subtype": "initialize"}),
        (
            Initialize(
                hooks={"Stop": [{"hookCallbackIds": ["hook_0"]}]},
                agents={"a": {"prompt": "x"}},
                sdk_mcp_servers=["calc"],
                json_schema={"type": "object"},
                system_prompt=[""],
                append_system_prompt="more",
            ),
            {
                "subtype": "initialize",
                "hooks": {"Stop": [{"hookCallbackIds": ["hook_0"]}]},
                "agents": {"a": {"prompt": "x"}},
                "sdkMcpServers": ["calc"],
                "jsonSchema": {"type": "object"},
                "systemPrompt": [""],
                "appendSystemPrompt": "more",
            },
        ),
    ],
    ids=lambda value: value.operation if isinstance(value, Verb) else "",
)
def test_a_verb_is_written_as_the_cli_reads_it(verb: Verb[Any], wire: Frame) -> None:
    assert _json.loads(_json.dumps(verb)) == wire
    assert verb.operation == wire["subtype"]


@pytest.mark.parametrize(
    ("trace", "verb", "answers"),
    [
        (
            "queue_interrupt",
            Interrupt,
            [
                InterruptReceipt(still_queued=["22222222-2222-4222-8222-222222222222"]),
                InterruptReceipt(cancelled=["44444444-4444-4444-8444-444444444444"]),
            ],
        ),
        (
            "queue_interrupt",
            CancelAsyncMessage,
            [Withdrawn(cancelled=True), Withdrawn(cancelled=False)],
        ),
    ],
)
def test_an_answer_reads_what_the_cli_was_seen_to_answer(
    trace: str, verb: type[Verb[Any]], answers: list[Answer]
) -> None:
    found = answers_to(trace, str(verb.__struct_config__.tag))

    read = [read_leniently(verb.ANSWER, each).came_from(each) for each in found]

    assert read == answers
    assert [each.raw for each in read] == found


def test_the_recorded_models_are_read() -> None:
    found = answers_to("set_model", "set_model")

    read = [read_leniently(ModelSet, each) for each in found]

    assert [each.model for each in read] == [each["model"] for each in found]
    assert all(each.model for each in read)


def test_the_recorded_handshake_is_read() -> None:
    (found,) = answers_to("handshake_bare", "initialize")

    read = read_leniently(Initialized, found)

    assert read == Initialized(
        commands=found["commands"],
        agents=found["agents"],
        models=found["models"],
        account=found["account"],
        output_style=found["output_style"],
        pid=found["pid"],
        claude_code_version="2.1.325",
        current_permission_mode=found["current_permission_mode"],
        capabilities=found["capabilities"],
        hook_on_failure_supported=True,
    )


def test_every_verb_says_what_it_is_answered_with() -> None:
    answers = {
        verb: verb.ANSWER
        for verb in (Initialize, Interrupt, SetModel, SetPermissionMode, CancelAsyncMessage)
    }

    assert answers == {
        Initialize: Initialized,
        Interrupt: InterruptReceipt,
        SetModel: ModelSet,
        SetPermissionMode: PermissionModeSet,
        CancelAsyncMessage: Withdrawn,
    }
    assert McpMessage.ANSWER is Answer
