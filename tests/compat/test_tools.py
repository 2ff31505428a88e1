"""Tools of the official form: the model gets the schemas and results of the official package.

Both packages serve the same tools to the stand-in CLI, which calls them over `mcp_message`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NotRequired, Optional, TypeVar, Union

import claude_agent_sdk
import pytest

import steersman.compat
from steersman._json import is_mapping, is_sequence
from steersman.compat.tools import SdkMcpTool, create_sdk_mcp_server, tool
from tests.compat import texts
from tests.compat.recording import Line, StandIn, mcp_calls
from tests.compat.typed_dicts import Inner, Outer


@dataclass
class Point:
    x: int


class Color(enum.Enum):
    RED = "red"


T = TypeVar("T")
SCHEMAS: dict[str, Any] = {
    "plain": {"a": int, "b": str, "c": float, "d": bool, "e": list, "f": dict},
    "described": {
        "a": Annotated[int, "first"],
        "b": Annotated[str | None, "second"],
        "c": Annotated[list[str], 5, "third", "not this"],
    },
    "composed": {
        "a": int | str,
        "b": Optional[int],  # noqa: UP045 - a form that programs use
        "c": Union[int, str, None],  # noqa: UP007 - as above
        "d": list[dict[str, int]],
        "e": dict[str, list[int]],
        "f": list[Annotated[int, "item"]],
        "g": Inner,
        "h": NotRequired[int],
    },
    "strings": {
        "a": Literal["x", "y"],
        "b": Any,
        "c": None,
        "d": tuple[int, str],
        "e": set[int],
        "f": bytes,
        "g": dt.datetime,
        "h": Color,
        "i": Point,
        "j": "int",
        "k": Sequence[int],
        "l": {"type": "integer"},
    },
    "typed_dict": Inner,
    "outer": Outer,
    "empty": {},
    "class": Point,
    "builtin": int,
    "nothing": None,
    "schema": {
        "type": "object",
        "properties": {"a": {"type": "string", "description": "A"}},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"x": {"type": "string"}},
    },
    "no_properties": {"type": "object"},
    "no_type": {"properties": {"a": {"type": "string"}}},
    "types_named_so": {"type": str, "properties": dict},
}

TEXT = {"type": "text", "text": "hi"}
RESULTS: dict[str, Any] = {
    "text": {"content": [TEXT]},
    "error": {"content": [TEXT], "is_error": True},
    "mcp_error": {"content": [TEXT], "isError": True},
    "image": {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
    "no_mime_type": {"content": [{"type": "image", "data": "aGk="}]},
    "link": {
        "content": [{"type": "resource_link", "uri": "file:///x", "name": "n", "description": "d"}]
    },
    "bare_link": {"content": [{"type": "resource_link", "uri": "file:///x"}]},
    "resource": {
        "content": [{"type": "resource", "resource": {"uri": "file:///x", "text": "body"}}]
    },
    "blob": {"content": [{"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk="}}]},
    "audio": {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}, TEXT]},
    "odd_block": {"content": [{"type": "odd"}, {"text": "x"}, TEXT]},
    "structured": {"content": [TEXT], "structuredContent": {"a": 1}, "_meta": {"m": 1}},
    "no_text": {"content": [{"type": "text"}]},
    "no_content": {"x": 1},
}
BETTER_RESULTS: dict[str, tuple[Any, Line]] = {
    "nothing": (None, {"content": []}),
    "a_text": ("hi", {"content": [TEXT]}),
    "a_list": ([TEXT], {"content": [TEXT]}),
    "text_as_content": ({"content": "hi"}, {"content": [TEXT]}),
    "texts_as_content": ({"content": ["hi"]}, {"content": [TEXT]}),
    "a_number": ({"content": [{"type": "text", "text": 5}]}, {"content": [{**TEXT, "text": "5"}]}),
}
"""What the official package makes an error of."""

PROPERTIES: dict[str, Any] = {
    "a": {"type": "integer", "minimum": 3, "maximum": 9},
    "b": {"enum": ["x", "y"]},
    "c": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a"},
    "d": {"type": ["string", "null"]},
    "e": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "f": {
        "anyOf": [
            {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}}},
            {"type": "string"},
        ]
    },
    "g": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1,
        "maxItems": 2,
        "uniqueItems": True,
    },
    "h": {"const": 5},
    "i": {
        "type": "object",
        "properties": {"z": {"type": "integer"}},
        "required": ["z"],
        "additionalProperties": False,
    },
    "j": {"$ref": "#/$defs/J"},
    "k": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5, "multipleOf": 0.5},
    "l": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    "m": {"not": {"type": "string"}},
    "n": {"type": "string", "format": "date"},
    "o": {"allOf": [{"type": "integer"}, {"minimum": 5}]},
    "p": {"type": "object", "additionalProperties": {"type": "integer"}},
    "q": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
    "r": {"if": {"type": "integer"}, "then": {"minimum": 5}, "else": {"type": "string"}},
    "s": {"minLength": 1, "maxItems": 0, "minProperties": 2, "maxProperties": 2},
    "t": False,
    "v": {"minProperties": 1, "minItems": 1, "minLength": 1},
    "u": {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
}
ARGUMENTS: list[Any] = [
    {"a": 3, "b": "x", "c": "ab", "d": None, "e": 1, "g": [1], "h": 5, "i": {"z": 1}, "j": True},
    *({"a": value} for value in (2, 10, "x", None, True, 3.0, 3.5)),
    {"a": []},
    *({"b": "z"}, {"c": "a"}, {"c": "abcde"}, {"c": "xx"}, {"d": 5}, {"e": []}),
    *({"f": {}}, {"f": {"k": "x"}}, {"f": 5}),
    *({"g": value} for value in ([], [1, 2, 3], [1, 1], ["x", 2], "x")),
    *({"h": 6}, {"h": True}, {"i": {}}, {"i": {"z": 1, "y": 2}}, {"i": 5}, {"j": "x"}),
    *({"k": value} for value in (0, 5, 0.3, 1)),
    *({"l": 5}, {"l": 5.5}, {"l": "x"}, {"m": "s"}, {"m": 1}, {"n": "no date"}, {"o": 3}),
    *({"p": {"x": "y"}}, {"q": [1]}, {"q": ["x", "y"]}, {"r": 3}, {"r": []}, {"r": "x"}),
    *({"s": ""}, {"s": [1]}, {"s": {"a": 1}}, {"s": {"a": 1, "b": 2, "c": 3}}, {"t": 1}),
    *({"u": {"xa": "1", "xb": "2"}}, {"v": {}}, {"v": []}, {"v": ""}),
    *({"u": {"xa": "1"}}, {"u": {"ya": 1}}, {"y": 1}, {"y": 1, "z": 2}),
    {"a": "x", "b": "z"},
    {"i": {"z": "x"}, "a": 1},
]


Calls = Sequence[tuple[str, Any]]


async def served(sdk: ModuleType, place: Path, tools: list[Any], calls: Calls = ()) -> list[Line]:
    """Return the answers about a server with these tools: the list, and the results of calls."""
    options = {"mcp_servers": {"key": sdk.create_sdk_mcp_server("name", "2.0", tools)}}
    found = await StandIn(place).run(sdk, options, mcp_calls(calls))
    assert found.error is None
    answers = [each["response"]["mcp_response"] for each in found.answers]
    assert [each.get("id") for each in answers] == [0, None, *range(1, len(calls) + 2)]
    return [_plain(each["result"]) for each in answers[2:]]


def _plain(value: Any) -> Any:
    """Return a result without what has no effect: no error, nothing required."""
    if is_mapping(value):
        return {
            key: _plain(each)
            for key, each in value.items()
            if (key, each) not in (("isError", False), ("required", []))
        }
    return [_plain(each) for each in value] if is_sequence(value) else value


def returning(result: Any) -> Any:
    async def handler(_: Any) -> Any:
        return result

    return handler


async def echo(arguments: Any) -> Any:
    return {"content": [{"type": "text", "text": json.dumps(arguments)}]}


@pytest.mark.process
async def test_schemas_are_those_of_the_official_package(tmp_path: Path) -> None:
    listed: list[dict[str, Any]] = []

    for sdk in (claude_agent_sdk, steersman.compat):
        tools = [sdk.tool(name, f"does {name}", given)(echo) for name, given in SCHEMAS.items()]
        (found,) = await served(sdk, tmp_path, tools)
        listed.append({each["name"]: each for each in found["tools"]})

    assert listed[0] == listed[1]
    assert list(listed[1]) == list(SCHEMAS)


@pytest.mark.process
async def test_annotations_are_those_of_the_official_package(tmp_path: Path) -> None:
    from mcp.types import ToolAnnotations  # noqa: PLC0415 - slow

    listed: list[Line] = []

    for sdk in (claude_agent_sdk, steersman.compat):
        given: list[Any] = [
            sdk.ToolAnnotations(readOnlyHint=True, maxResultSizeChars=5),
            sdk.ToolAnnotations(title="T", destructiveHint=False, idempotentHint=True),
            sdk.ToolAnnotations(read_only_hint=True, max_result_size_chars=7, other=1),
            sdk.ToolAnnotations(openWorldHint=False, maxResultSizeChars=0),
            ToolAnnotations(title="x"),
            {"readOnlyHint": True},
            None,
        ]
        tools = [sdk.tool(f"t{n}", "", {}, each)(echo) for n, each in enumerate(given)]
        listed += await served(sdk, tmp_path, tools)

    assert listed[0] == listed[1]


@pytest.mark.process
async def test_results_are_those_of_the_official_package(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []

    for sdk in (claude_agent_sdk, steersman.compat):
        tools = [sdk.tool(name, "", {})(returning(each)) for name, each in RESULTS.items()]
        calls: Calls = [(name, {}) for name in (*RESULTS, "no_such_tool")]
        _, *found = await served(sdk, tmp_path, tools, calls)
        answers.append(dict(zip([*RESULTS, "no_such_tool"], found, strict=True)))

    assert answers[0] == answers[1]
    assert answers[1]["no_such_tool"]["isError"]


@pytest.mark.process
async def test_bad_arguments_have_the_wording_of_the_official_package(tmp_path: Path) -> None:
    answers: list[list[Line]] = []

    for sdk in (claude_agent_sdk, steersman.compat):
        tools = [
            sdk.tool(names, "", _checked(names))(echo)
            for names in {"".join(sorted(each)) for each in ARGUMENTS}
        ]
        calls: Calls = [("".join(sorted(each)), each) for each in ARGUMENTS]
        _, *found = await served(sdk, tmp_path, tools, calls)
        answers.append(found)

    pairs = zip(ARGUMENTS, *answers, strict=True)
    assert [row for row in pairs if row[1] != row[2]] == []
    refused = [each for each in answers[1] if each.get("isError")]
    assert all(
        each["content"][0]["text"].startswith("Input validation error: ") for each in refused
    )
    assert len(refused) > 40


def _checked(names: str) -> Line:
    """Return a schema of the properties with these names; others are refused."""
    return {
        "type": "object",
        "properties": {name: PROPERTIES[name] for name in names if name in PROPERTIES},
        "$defs": {"J": {"type": "boolean"}},
        "additionalProperties": False,
    }


# Without the CLI


class Host:
    """The session that calls a toolbox."""

    session_id = "s1"
    server = "key"

    def __init__(self) -> None:
        self.reported: list[tuple[str, BaseException | str]] = []

    def turn(self) -> None: ...

    def notify(self, message: Any) -> None: ...

    def report(self, where: str, problem: BaseException | str) -> None:
        self.reported.append((where, problem))


async def call(given: SdkMcpTool[Any], arguments: Line | None = None, host: Any = None) -> Line:
    """Return the result of one call."""
    box = create_sdk_mcp_server("box", tools=[given])["instance"]
    params: Line = {"name": given.name, "arguments": arguments or {}}
    message: Line = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with asyncio.timeout(5):
        answer: Any = await box.handle(message, host or Host())
    result: Line = answer["result"]
    return result


@pytest.mark.parametrize(("given", "wanted"), BETTER_RESULTS.values(), ids=BETTER_RESULTS)
async def test_results_that_are_no_mapping_of_blocks_reach_the_model(
    given: Any, wanted: Line
) -> None:
    assert await call(tool("t", "", {})(returning(given))) == wanted


async def test_a_plain_function_is_a_tool_too() -> None:
    @tool("add", "adds", {"a": int})
    def add(arguments: Any) -> Any:
        return {"content": [{"type": "text", "text": str(arguments["a"] + 1)}]}

    assert await call(add, {"a": 1}) == {"content": [{"type": "text", "text": "2"}]}


async def test_a_lambda_that_returns_an_awaitable_is_a_tool_too() -> None:
    made = tool("t", "", {})(lambda given: echo({**given}))

    assert await call(made) == {"content": [{"type": "text", "text": "{}"}]}


@pytest.mark.parametrize("is_plain", [False, True])
async def test_the_text_of_an_exception_reaches_the_model_and_the_journal(
    is_plain: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    error, host = ValueError("no disk"), Host()

    async def fail(_: Any) -> Any:
        raise error

    def fail_at_once(_: Any) -> Any:
        raise error

    result = await call(tool("t", "", {})(fail_at_once if is_plain else fail), host=host)

    assert result == {"content": [{"type": "text", "text": "no disk"}], "isError": True}
    assert host.reported == [("t", error)]


async def test_a_tool_is_called_by_the_function_of_the_client() -> None:
    called: list[Any] = []

    async def elsewhere(function: Any, *args: Any) -> Any:
        called.append(args)
        return await function(*args)

    box = create_sdk_mcp_server("box", tools=[tool("t", "", {})(echo)])["instance"]
    options = steersman.compat.ClaudeAgentOptions(
        mcp_servers={"key": {"type": "sdk", "name": "box", "instance": box}}
    )
    from steersman.compat.options import translate  # noqa: PLC0415 - used once

    servers: Any = translate(options, call=elsewhere).options.mcp_servers
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
    await servers["key"].handle(message, Host())

    assert called == [({},)]
    assert box.tool_names == ("t",)


@pytest.mark.process
@pytest.mark.parametrize("sdk", [claude_agent_sdk, steersman.compat])
def test_annotations_of_both_spellings_are_equal(sdk: Any) -> None:
    one = sdk.ToolAnnotations(readOnlyHint=True, maxResultSizeChars=3)
    other = sdk.ToolAnnotations(read_only_hint=True, max_result_size_chars=3)

    assert one == other
    assert (other.maxResultSizeChars, other.read_only_hint) == (3, True)
    assert one != sdk.ToolAnnotations(read_only_hint=True)
    assert not hasattr(one, "max_result_size_chars")


@pytest.mark.process
def test_annotations_of_both_spellings_are_equal_without_mcp() -> None:
    code = (
        "import sys\nsys.modules['mcp'] = sys.modules['mcp.types'] = None\n"
        "from steersman.compat import ToolAnnotations as A\n"
        "one, other = A(readOnlyHint=True, maxResultSizeChars=3), A(read_only_hint=True,"
        " max_result_size_chars=3)\n"
        "assert one == other != A() and other.maxResultSizeChars == 3 and other.read_only_hint\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("sdk", [claude_agent_sdk, steersman.compat])
def test_a_tool_is_made_with_the_class_that_the_package_has(sdk: Any) -> None:
    """Braintrust replaces it with its own."""
    original = sdk.SdkMcpTool

    class Traced(original[T]):  # type: ignore[misc, valid-type]
        pass

    sdk.SdkMcpTool = Traced
    try:
        made = sdk.tool("t", "", {})(echo)
    finally:
        sdk.SdkMcpTool = original

    assert type(made) is Traced


def test_of_two_tools_of_one_name_the_last_one_counts() -> None:
    first, last = tool("t", "first", {})(echo), tool("t", "last", {})(echo)

    with pytest.warns(UserWarning, match="same name"):
        box = create_sdk_mcp_server("box", tools=[first, last])["instance"]

    assert [each.description for each in box.tools] == ["last"]


def test_not_required_counts_where_annotations_are_text() -> None:
    """The official package requires such a key: the class has forgotten it on Python 3.11."""
    (made,) = create_sdk_mcp_server("box", tools=[tool("t", "", texts.Later)(echo)])[
        "instance"
    ].tools

    assert made.input_schema["required"] == ["a"]
    assert made.input_schema["properties"]["again"] == {"type": "object"}


@pytest.mark.process
def test_a_program_without_annotations_does_not_load_mcp() -> None:
    program = (
        "import sys\n"
        "from steersman.compat import create_sdk_mcp_server, tool\n"
        "create_sdk_mcp_server('box', tools=[tool('t', '', {})(print)])\n"
        "assert not {'mcp', 'pydantic', 'anyio'} & set(sys.modules), sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_what_the_model_does_not_read_is_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"content": [TEXT, {"type": "audio"}], "structuredContent": {"a": 1}, "_meta": {}}

    found = await call(tool("t", "", {})(returning(given)))

    assert found == {"content": [TEXT]}
    said = sorted(each.getMessage() for each in caplog.records if each.name == "steersman.compat")
    assert said == [
        "a tool returned '_meta', which the model does not read: it is left out",
        "a tool returned 'structuredContent', which the model does not read: it is left out",
        "a tool returned a block of the type 'audio', which is left out",
    ]


def test_the_names_of_the_module_are_those_that_it_lists() -> None:
    import steersman.compat.tools as module  # noqa: PLC0415 - used once

    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense
