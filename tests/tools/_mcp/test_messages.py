"""What is answered to a server, and which of its tools are shown. Plain values, no connection."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import McpNotReady, UsageError
from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp.jsonrpc import (
    JsonRpcError,
    cancellation,
    check_no_cursor,
    error_message,
    jsonrpc_request,
    meta_of,
    notification,
    required_text,
)
from steersman.tools._mcp.peer import answer_server
from steersman.tools.mcp_remote import ExposedTools, ToolFilter, expose


def test_messages_have_the_fields_of_json_rpc() -> None:
    assert jsonrpc_request(1, "ping") == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert jsonrpc_request("a", "x", {"b": 2})["params"] == {"b": 2}
    assert notification("n") == {"jsonrpc": "2.0", "method": "n"}
    assert cancellation(3, "why") == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 3, "reason": "why"},
    }


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"error": {"code": 1, "message": "no"}}, "no"),
        ({"error": {"code": 1}}, ""),
        ({"error": "no"}, ""),
        ({"result": {}}, ""),
    ],
)
def test_the_message_of_an_error_is_text(response: JsonObject, message: str) -> None:
    assert error_message(response) == message


def test_what_is_missing_in_a_request_is_named() -> None:
    assert meta_of({"_meta": {"a": 1}}) == {"a": 1}
    assert [meta_of({}), meta_of({"_meta": 5})] == [{}, {}]
    assert required_text({"uri": "x"}, "uri") == "x"
    check_no_cursor({})

    with pytest.raises(JsonRpcError, match="uri: text is needed") as missing:
        required_text({"uri": 5}, "uri")
    with pytest.raises(JsonRpcError, match="cursor: there is no further page") as paged:
        check_no_cursor({"cursor": "2"})

    assert (missing.value.code, paged.value.code) == (-32602, -32602)


class Person:
    """Answers elicitations, and keeps what was asked."""

    def __init__(self, answer: ElicitationAnswer) -> None:
        self.asked: list[Elicitation] = []
        self._answer = answer

    async def elicit(self, asked: Elicitation) -> ElicitationAnswer:
        self.asked.append(asked)
        return self._answer

    @property
    def caller(self) -> Caller:
        return Caller("session", "lab", lambda _: None, lambda *_: None, elicit=self.elicit)


def asking(**params: Any) -> JsonObject:
    return jsonrpc_request(4, "elicitation/create", params)


async def test_a_server_asks_the_person_with_all_that_it_said() -> None:
    person = Person(ElicitationAnswer("accept", {"name": "Ada"}))
    schema = {"type": "object", "properties": {"name": {}, "age": {}}}

    form = await answer_server(asking(message="Who?", requestedSchema=schema), person.caller)
    await answer_server(asking(mode="url", url="https://x", elicitationId="e"), person.caller)

    assert form == {
        "jsonrpc": "2.0",
        "id": 4,
        "result": {"action": "accept", "content": {"name": "Ada"}},
    }
    assert person.asked == [
        Elicitation(
            mcp_server_name="lab",
            message="Who?",
            mode="form",
            requested_schema=schema,
            property_order=["name", "age"],
        ),
        Elicitation(mcp_server_name="lab", mode="url", url="https://x", elicitation_id="e"),
    ]


async def test_only_an_accepted_answer_has_content() -> None:
    person = Person(ElicitationAnswer("cancel", {"name": "Ada"}))

    assert (await answer_server(asking(), person.caller))["result"] == {"action": "cancel"}
    assert (await answer_server(asking(), None))["result"] == {"action": "decline"}


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (jsonrpc_request(1, "sampling/createMessage"), -32601, "this client samples no model"),
        (jsonrpc_request(1, "roots/list"), -32601, "this client shows no roots"),
        (jsonrpc_request(1, "x/y"), -32601, "method not found: x/y"),
        (jsonrpc_request(1, "elicitation/create"), -32602, "params: an object is needed"),
    ],
)
async def test_what_a_server_may_not_ask_is_refused(
    request_: JsonObject, code: int, reason: str
) -> None:
    error = (await answer_server(request_, None))["error"]

    assert (error["code"], error["message"].startswith(reason)) == (code, True)


async def test_a_server_may_ask_whether_anybody_is_there() -> None:
    assert (await answer_server(jsonrpc_request(1, "ping"), None))["result"] == {}


LISTED = [{"name": "add", "title": "Add"}, {"name": "greet"}]


def test_all_tools_are_shown_unless_some_are_chosen() -> None:
    every = expose(LISTED, ToolFilter(None, None), "far")
    some = expose(LISTED, ToolFilter(["greet"], {"greet": "hello", "x": "y"}), "far")
    by_functions = expose(LISTED, ToolFilter(lambda name: name == "add", "far_{}".format), "far")

    assert every == ExposedTools(
        {each["name"]: each for each in LISTED}, {"add": "add", "greet": "greet"}
    )
    assert some == ExposedTools({"hello": {"name": "hello"}}, {"hello": "greet"})
    assert by_functions.tools == {"far_add": {"name": "far_add", "title": "Add"}}


def test_a_chosen_tool_that_a_server_does_not_have_is_named() -> None:
    with pytest.raises(McpNotReady, match=r"it has no tool 'x', but \['add', 'greet'\]") as missing:
        expose(LISTED, ToolFilter(["add", "x"], None), "far")

    assert (missing.value.name, missing.value.status) == ("far", "failed")


def test_two_tools_that_get_one_name_are_both_named() -> None:
    with pytest.raises(UsageError, match="'add' and 'greet' share it") as refused:
        expose(LISTED, ToolFilter(None, lambda _: "same"), "far")

    assert refused.value.argument == "rename"


@pytest.mark.parametrize(
    ("tools", "rename", "argument"),
    [
        ("add", None, "tools"),
        (5, None, "tools"),
        ([5], None, "tools"),
        (None, ["add"], "rename"),
        (None, {"add": 5}, "rename"),
    ],
)
def test_a_wrong_choice_of_tools_is_refused_by_name(tools: Any, rename: Any, argument: str) -> None:
    with pytest.raises(UsageError, match="names") as refused:
        ToolFilter(tools, rename)

    assert refused.value.argument == argument
