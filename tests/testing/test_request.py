from __future__ import annotations

from typing import Any

import pytest

from steersman.testing.request import Kind, ModelRequest, auxiliary_purpose, kind_of

REMINDER = "<system-reminder>\nAttribution for git commits\n</system-reminder>\n"
FOLDED = (
    "The user sent a new message while you were working:\nalso this\n\n"
    "This is how Claude Code surfaces messages the user sends mid-turn."
)


def text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in texts]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def asking(*messages: dict[str, Any], **fields: Any) -> ModelRequest:
    return ModelRequest({"messages": list(messages), **fields})


def test_the_reminders_of_the_cli_are_not_what_the_person_wrote() -> None:
    request = asking(user(text(REMINDER, "go")), {"role": "system", "content": "# Environment"})

    assert (request.first_text, request.last_text) == ("go", "go")
    assert request.latest == f"{REMINDER}\ngo"


def test_the_last_text_is_the_last_of_the_prompts_in_one_message() -> None:
    request = asking(user(text("failed before\n", "[Request interrupted by user]", "go")))

    assert (request.first_text, request.last_text) == ("failed before", "go")


def test_tool_results_do_not_hide_the_prompt() -> None:
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "done"},
        {"type": "tool_result", "tool_use_id": "t2", "content": text("a", "b")},
    ]

    request = asking(user("go"), {"role": "assistant", "content": []}, user(results))

    assert request.last_text == "go"
    assert request.tool_results == {"t1": "done", "t2": "a\nb"}


def test_a_prompt_folded_into_the_turn_is_the_last_text() -> None:
    request = asking(user("go"), {"role": "system", "content": text(FOLDED)})

    assert request.last_text == "also this"


@pytest.mark.parametrize(
    "synthetic",
    [
        "Output token limit hit. Resume directly",
        "Your response above was cut off mid-stream.",
        "[Your previous response had no visible output. Please continue]",
    ],
)
def test_what_the_cli_writes_in_the_persons_place_is_not_a_prompt(synthetic: str) -> None:
    assert asking(user("go"), user(text(synthetic))).last_text == "go"


def test_an_empty_request_has_empty_parts() -> None:
    request = ModelRequest({})

    assert (request.first_text, request.last_text, request.system, request.latest) == ("",) * 4
    assert (request.tools, request.tool_results) == ((), {})
    assert (request.model, request.is_streaming) == ("scripted", False)


def test_a_repetition_has_the_same_position_and_another_session_has_not() -> None:
    asked = asking(user("go"), metadata={"user_id": "a"}, tools=[{"name": "Bash"}])

    assert asked.position == asking(user("go"), metadata={"user_id": "a"}).position
    assert asked.position != asking(user("go"), metadata={"user_id": "b"}).position


SCHEMA = {"format": {"type": "json_schema", "schema": {}}}


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (asking(user("go"), tools=[{"name": "Bash"}]), "main"),
        (asking(user("go"), tools=[], output_config={"effort": "medium"}), "main"),
        (asking(user("go"), tools=[{"name": "Bash"}], output_config=SCHEMA), "main"),
        (
            asking(user("go"), system=text("cc_entrypoint=sdk-cli; cc_is_subagent=true;")),
            "subagent",
        ),
    ],
)
def test_conversations_are_told_from_their_subagents(request_: ModelRequest, kind: Kind) -> None:
    assert kind_of(request_) == kind
    assert auxiliary_purpose(request_) is None


@pytest.mark.parametrize(
    ("request_", "purpose"),
    [
        (asking(user("<session>"), tools=[], output_config=SCHEMA), "json"),
        (
            asking(
                user("<transcript>"),
                system=text("You are a security monitor for autonomous AI coding agents.\n"),
            ),
            "classifier",
        ),
        (
            asking(
                user(text("<system-reminder>This is a side question from the user. …", "why?")),
                tools=[{"name": "Bash"}],
            ),
            "side_question",
        ),
        (
            asking(
                user("go"),
                user(
                    "CRITICAL: Respond with TEXT ONLY.\n\n"
                    "Your task is to create a detailed summary of the conversation so far"
                ),
                tools=[{"name": "Bash"}],
            ),
            "summary",
        ),
        (asking(user("quota"), max_tokens=1), "probe"),
    ],
)
def test_what_the_cli_asks_on_its_own_account_is_recognised(
    request_: ModelRequest, purpose: str
) -> None:
    assert auxiliary_purpose(request_) == purpose
    assert kind_of(request_) == "auxiliary"
