"""Tools of the scripted CLI: hooks, permissions, servers of the host, structured output."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.testing.script import Script, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.testing.scripted.permissions import is_harmless
from steersman.testing.scripted.schema import schema_errors
from tests.testing.scripted_hosts import Frame, Host, hosted

ASKING = "--permission-prompt-tool=stdio"
TOUCH = {"command": "touch x"}


def bash(**given: Any) -> ScriptedCLI:
    return ScriptedCLI(
        Script(call("Bash", {**TOUCH, **given}, id_="t1"), say("done")),
        tools={"Bash": lambda given: f"ran {given['command']}"},
    )


def outcome(host: Host) -> Frame:
    """Return the first tool result that the CLI wrote."""
    block: Frame = next(
        frame["message"]["content"][0]
        for frame in host.said
        if frame["type"] == "user" and frame["message"]["content"][0]["type"] == "tool_result"
    )
    return block


async def run(cli: ScriptedCLI, *flags: str, answer: Any = None, **initialize: Any) -> Host:
    async with hosted(cli, *flags, answer=answer, **initialize) as host:
        host.prompt("go")
        await host.result()
    return host


# Permissions


@pytest.mark.parametrize(
    ("flag", "runs"),
    [
        ("--allowedTools=Bash", True),
        ("--allowedTools=Read,Bash(touch:*)", True),
        ("--allowedTools=Bash(touch x)", True),
        ("--allowedTools=Bash(rm:*),Write", False),
        ("--permission-mode=bypassPermissions", True),
        ("--permission-mode=acceptEdits", False),
        ("--disallowedTools=Bash", False),
        ("--disallowedTools=Bash(touch:*)", False),
        ("--tools=Read", False),
    ],
)
async def test_rules_and_modes_decide_without_asking(flag: str, *, runs: bool) -> None:
    host = await run(bash(), flag)

    assert (outcome(host)["content"] == "ran touch x") is runs
    assert host.all_asked("can_use_tool") == []


async def test_what_cannot_be_asked_is_denied_and_told() -> None:
    host = await run(bash())

    (denied,) = [frame for frame in host.said if frame.get("subtype") == "permission_denied"]
    assert denied["tool_use_id"] == "t1"
    assert outcome(host)["is_error"]
    results = [frame for frame in host.said if frame["type"] == "result"]
    assert results[0]["permission_denials"] == [
        {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": TOUCH}
    ]


async def test_a_question_is_bracketed_by_the_states() -> None:
    host = await run(bash(), ASKING, answer=lambda _: {"behavior": "allow"})

    kinds = [k for k in host.kinds() if k in ("running", "requires_action", "can_use_tool", "idle")]
    assert kinds[:4] == ["running", "requires_action", "can_use_tool", "running"]
    asked = host.all_asked("can_use_tool")[0]["request"]
    assert (asked["tool_name"], asked["input"], asked["tool_use_id"]) == ("Bash", TOUCH, "t1")


@pytest.mark.parametrize(
    ("answer", "content", "is_error"),
    [
        ({"behavior": "allow"}, "ran touch x", False),
        ({"behavior": "allow", "updatedInput": {"command": "true"}}, "ran true", False),
        ({"behavior": "deny", "message": "no!"}, "no!", True),
        ({"behavior": "deny"}, "invalid permission result", True),
        ({"behavior": "allow", "updatedInput": None}, "invalid permission result", True),
        ({"behavior": "allow", "updatedInput": "str"}, "invalid permission result", True),
        ({"behavior": "perhaps"}, "invalid permission result", True),
        ("yes", "invalid permission result", True),
    ],
)
async def test_only_a_valid_answer_allows(answer: Any, content: str, *, is_error: bool) -> None:
    host = await run(bash(), ASKING, answer=lambda _: answer)

    assert content in outcome(host)["content"]
    assert outcome(host).get("is_error", False) is is_error


async def test_an_error_for_an_answer_refuses() -> None:
    async with hosted(bash(), ASKING) as host:
        host.prompt("go")
        host.refuse((await host.asked("can_use_tool"))["request_id"], "exploded")
        await host.result()

    assert "exploded" in outcome(host)["content"]


async def test_an_answer_may_change_the_rules_of_the_session() -> None:
    script = Script(*[call("Bash", TOUCH)] * 3, say("done"))
    rule = {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "touch x"}],
        "behavior": "allow",
        "destination": "session",
    }
    mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    answer = {"behavior": "allow", "updatedPermissions": [rule, mode]}

    host = await run(ScriptedCLI(script), ASKING, answer=lambda _: answer)

    assert len(host.all_asked("can_use_tool")) == 1
    (status,) = [frame for frame in host.said if frame.get("subtype") == "status"]
    assert status["permissionMode"] == "acceptEdits"


async def test_only_suggestions_for_this_session_count() -> None:
    script = Script(*[call("Bash", TOUCH)] * 2, say("done"))
    rule = {
        "type": "addRules",
        "rules": [{"toolName": "Bash"}],
        "behavior": "allow",
        "destination": "localSettings",
    }

    host = await run(
        ScriptedCLI(script),
        ASKING,
        answer=lambda _: {"behavior": "allow", "updatedPermissions": [rule]},
    )

    assert len(host.all_asked("can_use_tool")) == 2


@pytest.mark.parametrize(
    ("command", "harmless"),
    [
        ("true", True),
        ("cd sub && pwd", True),
        ("echo hi", True),
        ("echo hi > file", False),
        ("ls; rm -rf x", False),
        ("cat $(which x)", False),
        ("touch x", False),
        ("", False),
    ],
)
def test_only_commands_that_change_nothing_are_harmless(command: str, *, harmless: bool) -> None:
    assert is_harmless("Bash", {"command": command}) is harmless


# Hooks


def pre_tool_use(**fields: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"hookCallbackIds": ["h"], **fields}]}}


def about(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def decision(kind: str, **fields: Any) -> dict[str, Any]:
    return about("PreToolUse", permissionDecision=kind, **fields)


def answering(**by_callback: Any) -> Any:
    """Answers hooks by their id, and allows whatever is asked."""

    def answer(request: Frame) -> Any:
        if request["subtype"] == "hook_callback":
            return by_callback[request["callback_id"]]
        return {"behavior": "allow"}

    return answer


async def test_a_hook_sees_the_call_before_anyone_is_asked() -> None:
    host = await run(bash(), ASKING, answer=answering(h={}), **pre_tool_use())

    (called,) = host.all_asked("hook_callback")
    seen = called["request"]["input"]
    assert (seen["hook_event_name"], seen["tool_name"]) == ("PreToolUse", "Bash")
    assert (seen["tool_input"], seen["tool_use_id"]) == (TOUCH, "t1")
    kinds = host.kinds()
    assert kinds.index("hook_callback") < kinds.index("can_use_tool")


@pytest.mark.parametrize(
    ("replies", "content", "asks"),
    [
        ({"h": decision("deny", permissionDecisionReason="no")}, "hook error: no", 0),
        ({"h": decision("allow")}, "ran touch x", 0),
        ({"h": decision("allow", updatedInput={"command": "true"})}, "ran true", 0),
        ({"h": {"decision": "block", "reason": "old style"}}, "old style", 0),
        ({"h": about("PreToolUse", updatedInput={"command": "ls"})}, "ran ls", 0),
        ({"h": {}}, "ran touch x", 1),
    ],
)
async def test_a_hook_decides(replies: Any, content: str, asks: int) -> None:
    host = await run(bash(), ASKING, answer=answering(**replies), **pre_tool_use())

    assert content in outcome(host)["content"]
    assert len(host.all_asked("can_use_tool")) == asks


async def test_a_hook_may_ask_for_a_person_where_nobody_would_be_asked() -> None:
    cli = ScriptedCLI(Script(call("Read", file_path="a"), say("done")))
    replies = answering(h=decision("ask", permissionDecisionReason="look"))

    host = await run(cli, ASKING, answer=replies, **pre_tool_use())

    (asked,) = host.all_asked("can_use_tool")
    assert asked["request"]["decision_reason"] == "look"


@pytest.mark.parametrize("first", ["allow", "ask"])
async def test_deny_wins_over_all_others(first: str) -> None:
    hooks = {"PreToolUse": [{"hookCallbackIds": ["one", "two"]}]}
    replies = answering(one=decision(first), two=decision("deny", permissionDecisionReason="no"))

    host = await run(bash(), ASKING, answer=replies, hooks=hooks)

    assert len(host.all_asked("hook_callback")) == 2
    assert outcome(host)["is_error"]


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        ("Bash", True),
        ("Write|Bash", True),
        ("B.*", True),
        ("*", True),
        ("", True),
        (None, True),
        ("bash", False),
        ("Bas", False),
        ("Write", False),
        ("(", False),
    ],
)
async def test_a_matcher_is_a_name_some_names_or_a_pattern(matcher: Any, *, fits: bool) -> None:
    host = await run(bash(), answer=answering(h={}), **pre_tool_use(matcher=matcher))

    assert bool(host.all_asked("hook_callback")) is fits


@pytest.mark.parametrize("on_failure", [None, "block"])
@pytest.mark.parametrize("reply", ["nonsense", decision("perhaps"), {"continue": "no"}])
async def test_a_hook_that_fails_blocks_only_where_it_should(on_failure: Any, reply: Any) -> None:
    fields = {} if on_failure is None else {"onFailure": on_failure}

    host = await run(bash(), ASKING, answer=answering(h=reply), **pre_tool_use(**fields))

    assert outcome(host).get("is_error", False) is (on_failure == "block")
    (note,) = [frame for frame in host.said if frame.get("tag") == "hook_callback_failed"]
    assert note["level"] == "warning"


async def test_a_hook_that_does_not_answer_in_time_stops_the_tool() -> None:
    host = await run(bash(), ASKING, **pre_tool_use(timeout=0.01))

    (called,) = host.all_asked("hook_callback")
    assert {"type": "control_cancel_request", "request_id": called["request_id"]} in host.said
    assert "did not respond before its timeout" in outcome(host)["content"]


async def test_a_hook_may_end_the_turn_after_the_tool() -> None:
    hooks = {"PostToolUse": [{"hookCallbackIds": ["h"]}]}
    replies = answering(h={"continue": False, "stopReason": "enough"})
    cli = bash()

    host = await run(cli, ASKING, answer=replies, hooks=hooks)

    results = [frame for frame in host.said if frame["type"] == "result"]
    assert (results[0]["terminal_reason"], results[0]["result"]) == ("hook_stopped", "")
    assert len(cli.asked) == 1


async def test_a_hook_may_add_to_what_the_model_knows_and_change_what_a_tool_gave() -> None:
    hooks = {"PostToolUse": [{"hookCallbackIds": ["h"]}]}
    reply = about("PostToolUse", updatedToolOutput="better", additionalContext="by the way")
    cli = bash()

    await run(cli, ASKING, answer=answering(h=reply), hooks=hooks)

    assert cli.asked[-1].tool_results == {"t1": "better"}
    assert "by the way" in cli.asked[-1].latest


async def test_a_tool_that_fails_is_told_to_its_own_hook() -> None:
    def fails(_given: dict[str, Any]) -> str:
        raise OSError("disk on fire")

    cli = ScriptedCLI(Script(call("Write", file_path="a"), say("oh")), tools={"Write": fails})
    hooks = {
        "PostToolUse": [{"hookCallbackIds": ["no"]}],
        "PostToolUseFailure": [{"hookCallbackIds": ["h"]}],
    }

    host = await run(cli, "--allowedTools=Write", answer=answering(h={}, no={}), hooks=hooks)

    (called,) = host.all_asked("hook_callback")
    assert called["request"]["input"]["error"] == "disk on fire"
    assert outcome(host)["content"] == "disk on fire"


# Servers of the host


class Server:
    """An MCP server of the host, as answers to control requests."""

    def __init__(self, **tools: Any) -> None:
        self.tools = tools
        self.calls: list[Frame] = []

    def __call__(self, request: Frame) -> Any:
        message = request["message"]
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}},
            "tools/list": {"tools": [{"name": name} for name in self.tools]},
        }
        method = message["method"]
        if method == "tools/call":
            self.calls.append(message["params"])
            result = self.tools[message["params"]["name"]]
            if result is None:
                return None
            return {"mcp_response": {"jsonrpc": "2.0", "id": message["id"], **result}}
        response = {"jsonrpc": "2.0", "result": results.get(method, {})}
        if "id" in message:
            response["id"] = message["id"]
        return {"mcp_response": response}


def gives(**result: Any) -> dict[str, Any]:
    return {"result": result}


TEXT = {"type": "text", "text": "hello"}


@pytest.mark.parametrize(
    ("result", "content", "is_error"),
    [
        (gives(content=[TEXT]), [TEXT], False),
        (gives(content=[TEXT], isError=True), "hello", True),
        (gives(content=[]), "(mcp__lab__t completed with no output)", False),
        (gives(content=[], structuredContent={"a": 1}), '{"a":1}', False),
        ({"error": {"code": -1, "message": "broken"}}, "broken", True),
    ],
)
async def test_what_a_server_gives_is_told_to_the_model(
    result: Any, content: Any, *, is_error: bool
) -> None:
    server = Server(t=result)
    cli = ScriptedCLI(Script(call("mcp__lab__t", n=1, id_="t1"), say("done")))

    host = await run(cli, "--allowedTools=mcp__lab", answer=server, sdkMcpServers=["lab"])

    assert (outcome(host)["content"], outcome(host).get("is_error", False)) == (content, is_error)
    (called,) = server.calls
    assert (called["name"], called["arguments"]) == ("t", {"n": 1})
    assert called["_meta"]["claudecode/toolUseId"] == "t1"


async def test_a_tool_that_is_not_there_is_told_to_the_model() -> None:
    cli = ScriptedCLI(Script(call("mcp__lab__nosuch"), call("Nosuch"), say("done")))

    await run(cli, answer=Server(t=None), sdkMcpServers=["lab"])

    for request in cli.asked[1:]:
        assert "No such tool available" in "".join(request.tool_results.values())


async def test_an_interrupt_is_told_to_the_server_and_its_late_answer_is_ignored() -> None:
    cli = ScriptedCLI(Script(call("mcp__lab__t"), say("next")))

    async with hosted(
        cli, "--allowedTools=mcp__lab", answer=Server(t=None), sdkMcpServers=["lab"]
    ) as host:
        host.prompt("go")
        called = await host.until(
            lambda f: f.get("request", {}).get("message", {}).get("method") == "tools/call"
        )
        number = called["request"]["message"]["id"]
        await host.ask("interrupt")
        await host.result(0)
        late = {"jsonrpc": "2.0", "id": number, "result": {"content": [TEXT]}}
        host.respond(called["request_id"], {"mcp_response": late})
        host.prompt("again")
        following = await host.result(1)

    (told,) = [
        frame["request"]["message"]["params"]
        for frame in host.all_asked("mcp_message")
        if frame["request"]["message"]["method"] == "notifications/cancelled"
    ]
    assert told["requestId"] == number
    assert following["result"] == "next"


async def test_a_bad_answer_of_a_server_is_silence() -> None:
    def bad(request: Frame) -> Any:
        message = request["message"]
        if message["method"] == "tools/call":
            return {"mcp_response": {"jsonrpc": "2.0", "id": "another", "result": {}}}
        return Server(t=None)(request)

    cli = ScriptedCLI(Script(call("mcp__lab__t")))
    async with hosted(cli, "--allowedTools=mcp__lab", answer=bad, sdkMcpServers=["lab"]) as host:
        host.prompt("go")
        await host.until(lambda frame: frame["type"] == "assistant")
        for _ in range(20):
            await asyncio.sleep(0)
        kinds = host.kinds()

    assert "result" not in kinds


async def test_a_server_that_changed_its_tools_is_listed_again() -> None:
    server = Server(old=gives(content=[TEXT]))

    async with hosted(ScriptedCLI(), answer=server, sdkMcpServers=["lab"]) as host:
        host.prompt("one")
        await host.result(0)
        server.tools["new"] = gives(content=[TEXT])
        message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        await host.ask("mcp_message", server_name="lab", message=message)
        status = await host.ask("mcp_status")
        host.prompt("two")
        await host.result(1)

    inits = [frame for frame in host.said if frame.get("subtype") == "init"]
    assert "mcp__lab__new" not in inits[0]["tools"]
    assert "mcp__lab__new" in inits[1]["tools"]
    assert status["response"]["mcpServers"][0]["status"] == "connected"


async def test_tools_that_only_read_run_together_and_others_one_by_one() -> None:
    running: set[str] = set()
    most: dict[str, int] = {"Read": 0, "Write": 0}

    def tool(name: str) -> Any:
        async def play(given: dict[str, Any]) -> str:
            running.add(given["n"])
            most[name] = max(most[name], len(running))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running.discard(given["n"])
            return "ok"

        return play

    script = Script(
        calls(*(call("Read", n=f"r{n}") for n in range(3))),
        calls(*(call("Write", n=f"w{n}") for n in range(3))),
        say("done"),
    )
    cli = ScriptedCLI(script, tools={name: tool(name) for name in ("Read", "Write")})

    host = await run(cli, "--allowedTools=Write")

    assert most == {"Read": 3, "Write": 1}
    results = [frame for frame in host.said if frame["type"] == "result"]
    assert results[0]["num_turns"] == 7


# Structured output

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


async def test_structured_output_ends_the_turn_as_soon_as_it_fits() -> None:
    wrong = call("StructuredOutput", answer="nope")
    cli = ScriptedCLI(Script(wrong, call("StructuredOutput", answer=42), say("not reached")))

    host = await run(cli, jsonSchema=SCHEMA)

    (result,) = [frame for frame in host.said if frame["type"] == "result"]
    assert (result["structured_output"], result["result"]) == ({"answer": 42}, '{"answer":42}')
    assert outcome(host)["content"] == (
        "Output does not match required schema: /answer: must be integer"
    )
    assert len(cli.asked) == 2


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"answer": 1}, None),
        ({}, "/: must have required property 'answer'"),
        ({"answer": True}, "/answer: must be integer"),
        ({"answer": 1, "more": 2}, "/: must NOT have additional properties"),
        ([], "/: must be object"),
    ],
)
def test_a_value_fits_a_schema_or_it_is_said_where_not(value: Any, problem: str | None) -> None:
    assert schema_errors(value, SCHEMA) == ([] if problem is None else [problem])


def test_a_schema_may_refer_to_its_parts() -> None:
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "kind": {"enum": ["leaf", "branch"]},
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
            }
        },
    }

    assert schema_errors({"kind": "leaf", "next": {"kind": "branch", "next": None}}, schema) == []
    assert schema_errors({"kind": "twig"}, schema) == [
        "/kind: must be equal to one of the allowed values"
    ]
    assert schema_errors({"next": {"next": 5}}, schema) == ["/next: must match a schema in anyOf"]
    assert schema_errors({"tags": ["a", 1]}, schema) == ["/tags/1: must be string"]


def test_limits_of_numbers_and_texts_are_worded_as_the_cli_words_them() -> None:
    schema = {
        "properties": {
            "number": {"type": ["integer", "null"], "minimum": 3},
            "text": {"minLength": 2, "pattern": "^a"},
            "one": {"oneOf": [{"type": "integer"}, {"minimum": 1}]},
        }
    }

    assert schema_errors({"number": 2, "text": "b", "one": 5}, schema) == [
        "/number: must be >= 3",
        "/text: must NOT have fewer than 2 characters",
        '/text: must match pattern "^a"',
        "/one: must match exactly one schema in oneOf",
    ]
    assert schema_errors({"number": "three"}, schema)[:1] == ["/number: must be integer,null"]


def test_without_the_library_the_error_names_the_extra() -> None:
    with pytest.raises(UsageError, match="jsonschema") as caught:
        schema_errors({"answer": 1}, SCHEMA, library="no_such_library")

    assert "steersman[testing]" in caught.value.hint
