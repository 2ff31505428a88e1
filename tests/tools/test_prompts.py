from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.tools import Prompt, Toolbox, ToolContext, prompt
from tests.tools.clients import Client


@prompt
def review(path: str, depth: int = 1) -> str:
    """Review a file.

    Args:
        path: the file to look at
    """
    return f"Review {path} to depth {depth}."


@prompt(name="talk", title="A talk", description="Two say something.")
async def conversation() -> Any:
    return ["Hello.", {"role": "assistant", "content": "Good day."}]


def client(*prompts: Prompt) -> Client:
    return Client(box=Toolbox("box", prompts=prompts))


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


async def test_prompts_are_listed_with_their_arguments() -> None:
    listed = (await client(review, conversation).ask("prompts/list"))["result"]

    assert listed == {
        "prompts": [
            {
                "name": "review",
                "description": "Review a file.",
                "arguments": [
                    {"name": "path", "description": "the file to look at", "required": True},
                    {"name": "depth", "description": "", "required": False},
                ],
            },
            {
                "name": "talk",
                "description": "Two say something.",
                "title": "A talk",
                "arguments": [],
            },
        ]
    }


async def test_a_prompt_is_made_of_its_arguments_which_are_texts_on_the_wire() -> None:
    params = {"name": "review", "arguments": {"path": "7", "depth": "3"}}

    answer = await client(review).ask("prompts/get", params)

    assert answer["result"] == {
        "description": "Review a file.",
        "messages": [message("user", "Review 7 to depth 3.")],
    }


async def test_a_prompt_may_be_several_messages() -> None:
    answer = await client(conversation).ask("prompts/get", {"name": "talk"})

    assert answer["result"]["messages"] == [
        message("user", "Hello."),
        message("assistant", "Good day."),
    ]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"name": "none"}, "name: there is no prompt 'none'"),
        ({}, "name: text is needed"),
        ({"name": "review"}, "arguments: Object missing required field `path`"),
        (
            {"name": "review", "arguments": {"path": "x", "depth": "deep"}},
            "arguments: depth: Expected `int`, got `str`",
        ),
        ({"name": "review", "arguments": ["x"]}, "arguments: an object is needed"),
    ],
)
async def test_a_request_that_does_not_fit_is_refused(params: Any, message: str) -> None:
    answer = await client(review).ask("prompts/get", params)

    assert answer["error"] == {"code": -32602, "message": message}


async def test_what_is_no_message_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    answer = await client(Prompt("odd", "", lambda: 3)).ask("prompts/get", {"name": "odd"})

    assert answer["error"] == {"code": -32603, "message": "internal error in 'prompts/get'"}
    assert "a int is no message" in caplog.text


async def test_prompts_come_and_go() -> None:
    served = client()
    await served.toolbox.attach(served.caller)

    served.toolbox.register(review, conversation)
    served.toolbox.unregister(review)
    listed = (await served.ask("prompts/list"))["result"]["prompts"]

    assert [each["name"] for each in listed] == ["talk"]
    assert [each["method"] for each in served.notifications] == [
        "notifications/prompts/list_changed",
        "notifications/prompts/list_changed",
    ]


def with_context(context: ToolContext) -> str:
    return context.tool_name


@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("name", lambda: Prompt("", "", str)),
        ("description", lambda: Prompt("x", None, str)),  # type: ignore[arg-type]
        ("function", lambda: Prompt("x", "", "text")),  # type: ignore[arg-type]
        ("function", lambda: Prompt("x", "", with_context)),
        ("parameter 'all'", lambda: Prompt("x", "", lambda *all: "")),
    ],
)
def test_a_prompt_that_cannot_be_is_refused(argument: str, make: Any) -> None:
    with pytest.raises(UsageError) as refused:
        make()

    assert refused.value.argument == argument


def test_two_prompts_of_one_name_are_refused_with_both() -> None:
    other = prompt(name="review")(lambda: "")

    with pytest.raises(UsageError, match=r"test_prompts\.review and .*<lambda> share"):
        client(review, other)
