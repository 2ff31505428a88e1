"""Tools of the official form: `tool`, `SdkMcpTool`, `create_sdk_mcp_server`, `ToolAnnotations`.

`create_sdk_mcp_server()["instance"]` is a `Toolbox`, not a server of the package `mcp`: calls reach
the functions without a server in between. Servers of that package work too, as `instance`.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from steersman._json import Json, JsonDict, JsonObject, is_mapping
from steersman.compat._argument_checks import problem_in
from steersman.compat._runtime import Call, call_here
from steersman.compat._tool_results import result_of
from steersman.compat._tool_schemas import schema_of
from steersman.compat._warnings import warn
from steersman.ports import Caller
from steersman.tools._mcp.jsonrpc import jsonrpc_result
from steersman.tools._schema.signatures import Arguments
from steersman.tools._threads import is_async
from steersman.tools.context import ToolContext
from steersman.tools.definition import Call as NativeCall
from steersman.tools.definition import Tool
from steersman.tools.results import ToolError, error_result, wire_result
from steersman.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from steersman.compat._annotations import ToolAnnotations
    from steersman.compat._shapes.mcp import McpSdkServerConfig

__all__ = ["SdkMcpTool", "SdkToolbox", "ToolAnnotations", "create_sdk_mcp_server", "tool"]

T = TypeVar("T")
Handler = Callable[[Any], Awaitable[dict[str, Any]]]

HINTS = {
    "title": "title",
    "readOnlyHint": "read_only_hint",
    "destructiveHint": "destructive_hint",
    "idempotentHint": "idempotent_hint",
    "openWorldHint": "open_world_hint",
}
RESULT_SIZE = ("maxResultSizeChars", "max_result_size_chars")
"""The hint that only Claude Code knows."""

logger = logging.getLogger("steersman.compat")


@dataclass
class SdkMcpTool(Generic[T]):
    """A tool: a function of one dict, and what the model knows about it."""

    name: str
    description: str
    input_schema: type[T] | dict[str, Any]
    handler: Callable[[T], Awaitable[dict[str, Any]]]
    annotations: ToolAnnotations | None = None


def tool(
    name: str,
    description: str,
    input_schema: type | dict[str, Any],
    annotations: ToolAnnotations | None = None,
) -> Callable[[Handler], SdkMcpTool[Any]]:
    """Make a tool from a function of one dict, which may also be a plain `def`."""

    def decorate(handler: Handler) -> SdkMcpTool[Any]:
        # Looked up in the package, where instrumentation replaces it.
        make: type[SdkMcpTool[Any]] = sys.modules["steersman.compat"].SdkMcpTool
        # By their names, as the official function does: replaced classes take them so.
        return make(
            name=name,
            description=description,
            input_schema=input_schema,
            handler=handler,
            annotations=annotations,
        )

    return decorate


def create_sdk_mcp_server(
    name: str, version: str = "1.0.0", tools: list[SdkMcpTool[Any]] | None = None
) -> McpSdkServerConfig:
    """Return the configuration of an MCP server in this process, for `mcp_servers`."""
    instance = SdkToolbox(name, version, tools or ())
    return cast("McpSdkServerConfig", {"type": "sdk", "name": name, "instance": instance})


class SdkToolbox(Toolbox):
    """A toolbox of official tools; unknown tools and bad arguments are results, not errors."""

    def __init__(
        self,
        name: str,
        version: str,
        tools: Iterable[SdkMcpTool[Any]],
        call: Call = call_here,
    ) -> None:
        self._official = tuple(tools)
        named = {each.name: each for each in self._official}
        if len(named) < len(self._official):
            warn(f"create_sdk_mcp_server: {name!r} has tools of the same name; the last one counts")
        super().__init__(
            name or "sdk", [_served(each, call) for each in named.values()], version=version
        )
        self.name = name

    def bound(self, call: Call) -> SdkToolbox:
        """Return a toolbox of the same tools, whose functions are called by `call`."""
        return SdkToolbox(self.name, self.version, self._official, call)

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        """Answer a request; a call of an unknown tool with an error for the model."""
        if message.get("method") == "tools/call" and message.get("id") is not None:
            params: Json = message.get("params")
            name = params.get("name") if is_mapping(params) else None
            if isinstance(name, str) and name not in self.tool_names:
                unknown = wire_result(error_result(f"Tool {name!r} not found"))
                return jsonrpc_result(message["id"], unknown)
        return await super().handle(message, caller)


@dataclass(frozen=True)
class _ServedTool(Tool[..., Any]):
    """A tool that is listed as the official SDK lists it, whatever its name and schema."""

    listing: JsonDict | None = None

    def __post_init__(self) -> None:
        """Check nothing: the tool has its `call` already."""

    def listed(self) -> JsonObject:
        """Return the entry for `tools/list`."""
        return self.listing or {}


def _served(given: SdkMcpTool[Any], call: Call) -> _ServedTool:
    schema = schema_of(given.input_schema)
    running = _Running(given.name, given.handler, schema, call)
    uses_thread = not is_async(given.handler)
    start = running.start_in_thread if uses_thread else running.start
    native = NativeCall(
        Arguments(schema, lambda arguments: arguments), start, given.handler, not uses_thread
    )
    return _ServedTool(
        given.name,
        given.description,
        schema,
        given.handler,
        call=native,
        listing=_listing(given, schema),
    )


@dataclass(frozen=True, slots=True)
class _Running:
    """Runs the calls of one tool."""

    name: str
    handler: Callable[[Any], Any]
    schema: JsonDict
    call: Call

    async def start(self, given: Json, context: ToolContext) -> object:
        """Check the arguments, await the function and return its result."""
        self._check(given)
        try:
            return result_of(await self.call(self.handler, given))
        except Exception as error:  # the program's own code; the model reads the text
            raise self._failure(error, context) from error

    def start_in_thread(self, given: Json, context: ToolContext) -> object:
        """Check the arguments and call the function, which is no async one, in this thread."""
        self._check(given)
        try:
            found = self.handler(given)
            return self._awaited(found, context) if inspect.isawaitable(found) else result_of(found)
        except Exception as error:
            raise self._failure(error, context) from error

    async def _awaited(self, given: Awaitable[Any], context: ToolContext) -> object:
        try:
            return result_of(await given)
        except Exception as error:
            raise self._failure(error, context) from error

    def _check(self, given: Json) -> None:
        problem = problem_in(self.schema, given)
        if problem is not None:
            raise ToolError(f"Input validation error: {problem}")

    def _failure(self, error: Exception, context: ToolContext) -> ToolError:
        """Report the error, and return what the model reads: its text, as in the official SDK."""
        if isinstance(error, ToolError):
            return error
        logger.error("tool %r failed", self.name, exc_info=error)
        if context.caller is not None:
            context.caller.report(self.name, error)
        return ToolError(str(error))


def _listing(given: SdkMcpTool[Any], schema: JsonDict) -> JsonDict:
    listing: JsonDict = {"name": given.name, "inputSchema": schema}
    if cast("object", given.description) is not None:
        listing["description"] = given.description
    if given.annotations is not None:
        hints = {name: _hint(given.annotations, name, snake) for name, snake in HINTS.items()}
        listing["annotations"] = {key: value for key, value in hints.items() if value is not None}
        size = _hint(given.annotations, *RESULT_SIZE)
        if size is not None:
            listing["_meta"] = {"anthropic/maxResultSizeChars": size}
    return listing


def _hint(annotations: object, *names: str) -> Any:
    """Return a hint of a mapping or an object, under any of its names."""
    for name in names:
        found = (
            annotations.get(name) if is_mapping(annotations) else getattr(annotations, name, None)
        )
        if found is not None:
            return found
    return None


def __getattr__(name: str) -> Any:
    if name == "ToolAnnotations":
        # The package `mcp` is slow to load, and few programs need it.
        from steersman.compat._annotations import ToolAnnotations  # noqa: PLC0415

        return ToolAnnotations
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
