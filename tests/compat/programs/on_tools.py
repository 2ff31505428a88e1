"""Tools of the program itself: schemas, results, errors, and MCP servers at run time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from steersman.testing.script import call, calls, say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage

SEEN = {"ENABLE_TOOL_SEARCH": "false"}
"""So that the model is offered all tools at once, with their schemas."""


class Point(TypedDict):
    """Arguments of a tool, as a type."""

    x: int
    y: int


Tool = Callable[[dict[str, Any]], Awaitable[Any]]


def tool(sdk: Any, name: str, description: str, schema: Any, **more: Any) -> Callable[[Tool], Any]:
    """Return the package's own decorator."""
    made: Callable[[Tool], Any] = sdk.tool(name, description, schema, **more)
    return made


def server(sdk: Any, *tools: Any, name: str = "own") -> dict[str, Any]:
    """Return the options of one server."""
    return {name: sdk.create_sdk_mcp_server(name, "1.0.0", list(tools))}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


async def using(sdk: Any, stage: Stage, *tools: Any, **options: Any) -> None:
    """Run a turn with tools, in one shot."""
    own = {"mcp_servers": server(sdk, *tools), "allowed_tools": ["mcp__own"], "env": SEEN}
    given = stage.options(**{**own, **options})
    await stage.read(sdk.query(prompt="use it", options=given))


def schemas(stage: Stage) -> list[Any]:
    """Return the schemas of our tools that the model was offered."""
    tools = stage.model.asked[0].body["tools"]
    return [
        {key: each.get(key) for key in ("name", "description", "input_schema")}
        for each in tools
        if each["name"].startswith("mcp__own")
    ]


@program(call("mcp__own__add", a=2, b=3), say("five"))
async def tool_with_a_simple_schema(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "add", "Adds two numbers", {"a": float, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("add", arguments)
        return text(str(arguments["a"] + arguments["b"]))

    await using(sdk, stage, add)
    stage.note("schemas", schemas(stage))


@program(call("mcp__own__pick", colour="red"), say("picked"))
async def tool_with_a_json_schema(sdk: Any, stage: Stage) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["colour"],
    }

    @tool(sdk, "pick", "Picks a colour", schema)
    async def pick(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("pick", arguments)
        return text(f"picked {arguments['colour']}")

    await using(sdk, stage, pick)
    stage.note("schemas", schemas(stage))


@program(call("mcp__own__draw", x=1, y=2), say("drawn"))
async def tool_with_a_typed_dict(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "draw", "Draws a point", Point)
    async def draw(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("draw", arguments)
        return text("drawn")

    await using(sdk, stage, draw)
    stage.note("schemas", schemas(stage))


@program(call("mcp__own__now"), say("told"))
async def tool_without_arguments(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "now", "Tells the time", {})
    async def now(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("now", arguments)
        return text("noon")

    await using(sdk, stage, now)
    stage.note("schemas", schemas(stage))


@program(call("mcp__own__fail"), call("mcp__own__raise"), say("both failed"))
async def tools_that_fail(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "fail", "Fails", {})
    async def failing(_arguments: dict[str, Any]) -> dict[str, Any]:
        return text("it went wrong", is_error=True)

    @tool(sdk, "raise", "Raises", {})
    async def raising(_arguments: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no such row")

    await using(sdk, stage, failing, raising)


@program(call("mcp__own__add", a="two", b=3), call("mcp__own__add", a=2), say("wrong arguments"))
async def tool_with_wrong_arguments(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "add", "Adds two numbers", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("add", arguments)
        return text("?")

    await using(sdk, stage, add)


@program(call("mcp__own__paint"), say("a dot"))
async def tool_with_a_picture(sdk: Any, stage: Stage) -> None:
    pixel = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
        "rkJggg=="
    )

    @tool(sdk, "paint", "Paints", {})
    async def paint(_arguments: dict[str, Any]) -> dict[str, Any]:
        image = {"type": "image", "data": pixel, "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": "here:"}, image]}

    await using(sdk, stage, paint)


@program(call("mcp__own__link"), say("read"))
async def tool_with_resources(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "link", "Links", {})
    async def link(_arguments: dict[str, Any]) -> dict[str, Any]:
        where = {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "description": "A"}
        whole = {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside"}}
        return {"content": [where, whole]}

    await using(sdk, stage, link)


@program(call("mcp__own__empty"), call("mcp__own__odd"), say("nothing"))
async def tools_with_odd_results(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "empty", "Gives nothing", {})
    async def empty(_arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": []}

    @tool(sdk, "odd", "Gives a text", {})
    async def odd(_arguments: dict[str, Any]) -> Any:
        return {"other": 1}

    await using(sdk, stage, empty, odd)


@program(
    calls(call("mcp__one__who", id_="toolu_1"), call("mcp__two__who", id_="toolu_2")),
    say("both answered"),
)
async def tools_of_two_servers(sdk: Any, stage: Stage) -> None:
    def who(name: str) -> Any:
        @tool(sdk, "who", "Tells its name", {}, annotations=sdk.ToolAnnotations(readOnlyHint=True))
        async def tell(_arguments: dict[str, Any]) -> dict[str, Any]:
            stage.called(name)
            return text(name)

        return tell

    servers = {**server(sdk, who("one"), name="one"), **server(sdk, who("two"), name="two")}
    options = stage.options(mcp_servers=servers, allowed_tools=["mcp__one__who", "mcp__two__who"])
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("who are you?")
        await stage.read(client.receive_response())
        status = await client.get_mcp_status()
    stage.unordered()
    for each in status["mcpServers"]:
        stage.note("server", {key: each.get(key) for key in ("name", "status", "tools")})


@program(call("mcp__own__add", a=1, b=1), say("not allowed"))
async def tool_without_permission(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "add", "Adds", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("add", arguments)
        return text("2")

    await using(sdk, stage, add, allowed_tools=[])


@program(call("mcp__own__gone"), say("no such tool"))
async def tool_that_does_not_exist(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "there", "Is there", {})
    async def there(_arguments: dict[str, Any]) -> dict[str, Any]:
        return text("yes")

    await using(sdk, stage, there)


@program(call("mcp__own__much"), say("much"))
async def tool_with_a_long_result(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "much", "Gives much", {})
    async def much(_arguments: dict[str, Any]) -> dict[str, Any]:
        return text("abc " * 5000)

    await using(sdk, stage, much)


@program(say("one"), say("two"))
async def servers_switched_at_run_time(sdk: Any, stage: Stage) -> None:
    @tool(sdk, "there", "Is there", {})
    async def there(_arguments: dict[str, Any]) -> dict[str, Any]:
        return text("yes")

    options = stage.options(mcp_servers=server(sdk, there))
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("first")
        await stage.read(client.receive_response())
        await stage.trying("off", client.toggle_mcp_server("own", False))  # noqa: FBT003
        status = await client.get_mcp_status()
        stage.note("status", [each["status"] for each in status["mcpServers"]])
        await stage.trying("unknown", client.toggle_mcp_server("nothing", True))  # noqa: FBT003
        await stage.trying("reconnect", client.reconnect_mcp_server("nothing"))
        await client.query("second")
        await stage.read(client.receive_response())


@program(say("no tools"))
async def server_without_tools(sdk: Any, stage: Stage) -> None:
    options = stage.options(mcp_servers=server(sdk))
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("go")
        await stage.read(client.receive_response())
        status = await client.get_mcp_status()
        stage.note("status", [each["status"] for each in status["mcpServers"]])


@program(say("it failed to start"))
async def server_that_does_not_start(sdk: Any, stage: Stage) -> None:
    servers = {"broken": {"type": "stdio", "command": "/bin/false", "args": []}}
    async with sdk.ClaudeSDKClient(stage.options(mcp_servers=servers)) as client:
        await client.query("go")
        await stage.read(client.receive_response())
        status = await client.get_mcp_status()
        stage.note("status", [each["status"] for each in status["mcpServers"]])


@program(call("mcp__own__slow"), say("after"))
async def tool_call_that_is_interrupted(sdk: Any, stage: Stage) -> None:
    running = asyncio.Event()

    @tool(sdk, "slow", "Takes long", {})
    async def slow(_arguments: dict[str, Any]) -> dict[str, Any]:
        stage.called("slow")
        running.set()
        await asyncio.sleep(3600)
        return text("never")

    options = stage.options(mcp_servers=server(sdk, slow), allowed_tools=["mcp__own__slow"])
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("use it")
        reading = asyncio.ensure_future(stage.read(client.receive_response()))
        await running.wait()
        await client.interrupt()
        await reading
        await client.query("and now?")
        await stage.read(client.receive_response())
