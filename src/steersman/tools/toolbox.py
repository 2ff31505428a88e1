"""`Toolbox`: an in-process MCP server made of Python functions.

Takes JSON-RPC requests and returns the responses. Knows nothing of the CLI or of sessions.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, Unpack, cast

from steersman._json import Json, JsonDict, is_mapping
from steersman.errors import UsageError
from steersman.ports import Caller, JsonObject
from steersman.tools._calls import running_calls
from steersman.tools._mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    TOOL_USE_ID_META,
    JsonRpcError,
    Method,
    RequestId,
    check_no_cursor,
    jsonrpc_error,
    jsonrpc_result,
    meta_of,
    notification,
)
from steersman.tools._threads import Function
from steersman.tools.context import ToolContext, call_in
from steersman.tools.definition import AnyTool, as_tool
from steersman.tools.prompts import Prompt, prompt_methods
from steersman.tools.resources import Resource, resource_methods
from steersman.tools.results import ToolError
from steersman.tools.run import RunKeywords, RunSettings, run_tool

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

T = TypeVar("T")

logger = logging.getLogger("steersman.tools")


class Toolbox:
    """Tools, resources and prompts under one name; may serve several sessions at once.

    The name is informative: the key in `mcp_servers` is what routes calls and prefixes the tools.
    The other keywords set how tools are run: `heartbeat`, `stall_after`, `explain`; see
    `RunSettings`.
    """

    def __init__(
        self,
        name: str,
        tools: Iterable[AnyTool | Function] = (),
        *,
        version: str = "1.0.0",
        resources: Iterable[Resource] | None = None,
        prompts: Iterable[Prompt] | None = None,
        instructions: str | None = None,
        **settings: Unpack[RunKeywords],
    ) -> None:
        if not isinstance(cast("object", name), str) or not name:
            raise UsageError("name", name, "a name that is not empty")
        self.name = name
        self.version = version
        self.instructions = instructions
        """Instructions for the model about the whole toolbox."""
        self._settings = RunSettings(**settings)
        self._callers: dict[Caller, asyncio.AbstractEventLoop] = {}
        self._tools = NamedItems[AnyTool]("tools", lambda t: t.name, lambda t: t.handler)
        self._resources = NamedItems[Resource]("resources", lambda r: r.uri, lambda r: r.content)
        self._prompts = NamedItems[Prompt]("prompts", lambda p: p.name, lambda p: p.function)
        self._changing = threading.Lock()
        self._capabilities: JsonDict = {}
        self._methods: dict[str, Method] = {"initialize": self._initialize, "ping": _ping}
        self._offer("tools", {"tools/list": self._list})
        if resources is not None:
            self._offer("resources", resource_methods(self._resources))
        if prompts is not None:
            self._offer("prompts", prompt_methods(self._prompts))
        self.register(*tools, *(resources or ()), *(prompts or ()))

    def __repr__(self) -> str:
        return f"Toolbox({self.name!r}, tools={list(self.tool_names)})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        return self._tools.names

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, in the order in which they were added."""
        return tuple(self._tools)

    # --- Contents

    def register(self, *added: AnyTool | Function | Resource | Prompt) -> None:
        """Add tools, resources and prompts, all or none; running sessions are notified.

        May be called in any thread. A CLI learns only at its start whether there are resources and
        prompts at all: pass `resources=()` to the toolbox if some will be added later.
        """
        resources = [each for each in added if isinstance(each, Resource)]
        prompts = [each for each in added if isinstance(each, Prompt)]
        tools = [as_tool(each) for each in added if not isinstance(each, (Resource, Prompt))]
        with self._changing:
            _do_all(
                self._tools.adding(tools, self.name),
                self._resources.adding(resources, self.name),
                self._prompts.adding(prompts, self.name),
            )
            if resources:
                self._offer("resources", resource_methods(self._resources))
            if prompts:
                self._offer("prompts", prompt_methods(self._prompts))
        self._notify_changes(tools=tools, resources=resources, prompts=prompts)

    def unregister(self, *removed: str | AnyTool | Function | Resource | Prompt) -> None:
        """Remove tools (by name or as they were added), resources and prompts, all or none.

        Calls in progress continue.
        """
        resources = [each.uri for each in removed if isinstance(each, Resource)]
        prompts = [each.name for each in removed if isinstance(each, Prompt)]
        with self._changing:
            tools = [
                self._name_of(each) for each in removed if not isinstance(each, (Resource, Prompt))
            ]
            _do_all(
                self._tools.removing(tools, self.name),
                self._resources.removing(resources, self.name),
                self._prompts.removing(prompts, self.name),
            )
        self._notify_changes(tools=tools, resources=resources, prompts=prompts)

    def _name_of(self, removed: object) -> object:
        handler = getattr(removed, "handler", removed)
        return next((each.name for each in self._tools if each.handler == handler), removed)

    def _offer(self, kind: str, methods: dict[str, Method]) -> None:
        self._capabilities[kind] = {"listChanged": True}
        self._methods |= methods

    def _notify_changes(self, **changed: Sequence[object]) -> None:
        for kind in (kind for kind, items in changed.items() if items):
            message = notification(f"notifications/{kind}/list_changed")
            for caller, loop in list(self._callers.items()):
                call_in(loop, caller.notify, message)

    # --- The port

    async def attach(self, caller: Caller) -> None:
        self._callers[caller] = asyncio.get_running_loop()

    async def detach(self, caller: Caller) -> None:
        self._callers.pop(caller, None)
        running_calls().rest()

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        method, request_id = message.get("method"), message.get("id")
        if request_id is None or (method is None and ("result" in message or "error" in message)):
            return None
        try:
            return jsonrpc_result(request_id, await self._result(method, message, caller))
        except JsonRpcError as error:
            return jsonrpc_error(request_id, error.code, str(error))
        except ToolError as error:
            return jsonrpc_error(request_id, INTERNAL_ERROR, str(error))
        # Functions of the host program that provide resources and prompts raise what they like.
        except Exception:
            logger.exception("toolbox %r failed to answer %r", self.name, method)
            return jsonrpc_error(request_id, INTERNAL_ERROR, f"internal error in {method!r}")

    async def _result(self, method: object, message: JsonObject, caller: Caller) -> JsonObject:
        params: Json = message.get("params")
        params = {} if params is None else params
        if not is_mapping(params):
            raise JsonRpcError(INVALID_PARAMS, "params: an object is needed")
        if method == "tools/call":
            return await self._call(params, message["id"], caller)
        if not isinstance(method, str):
            raise JsonRpcError(INVALID_REQUEST, "method: a string is needed")
        answer = self._methods.get(method)
        if answer is None:
            raise JsonRpcError(METHOD_NOT_FOUND, f"method not found: {method}")
        found = answer(params)
        return await found if inspect.isawaitable(found) else found

    async def _call(self, params: JsonObject, request_id: RequestId, caller: Caller) -> JsonObject:
        name, given = params.get("name"), params.get("arguments")
        tool = self._tools.get(name)
        if tool is None:
            raise JsonRpcError(INVALID_PARAMS, f"name: there is no tool {name!r}")
        if given is not None and not is_mapping(given):
            raise JsonRpcError(INVALID_PARAMS, "arguments: an object is needed")
        context = _context_of(tool.name, params, request_id, caller)
        return await run_tool(tool, given or {}, context, self._settings)

    def _initialize(self, params: JsonObject) -> JsonObject:
        asked = params.get("protocolVersion")
        result = {
            "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[-1],
            "capabilities": dict(self._capabilities),
            "serverInfo": {"name": self.name, "version": self.version},
        }
        if self.instructions is not None:
            result["instructions"] = self.instructions
        return result

    def _list(self, params: JsonObject) -> JsonObject:
        check_no_cursor(params)
        return {"tools": [each.listed() for each in self._tools]}


class NamedItems(Generic[T]):
    """The tools, resources or prompts of a toolbox, by name, in the order they were added.

    Two of one name are refused with an error that names both.
    """

    def __init__(self, kind: str, key: Callable[[T], str], origin: Callable[[T], object]) -> None:
        self._kind = kind
        self._key = key
        self._origin = origin
        self._items: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items."""
        return tuple(self._items)

    def get(self, name: object) -> T | None:
        """Return the item of that name, or `None`."""
        return self._items.get(name) if isinstance(name, str) else None

    def adding(self, items: Iterable[T], owner: str) -> Callable[[], None]:
        """Check that all `items` can be added; return the function that adds them."""
        added = dict(self._items)
        for item in items:
            name = self._key(item)
            if name in added:
                raise UsageError(
                    f"{self._kind} of {owner!r}",
                    name,
                    f"one of each name among the {self._kind}",
                    hint=f"{self._describe(added[name])} and {self._describe(item)} share it",
                )
            added[name] = item
        return lambda: self._replace(added)

    def removing(self, names: Iterable[object], owner: str) -> Callable[[], None]:
        """Check that all `names` are here; return the function that removes them."""
        left = dict(self._items)
        for name in names:
            if not isinstance(name, str) or left.pop(name, None) is None:
                there = ", ".join(self._items) or "none"
                raise UsageError(f"{self._kind} of {owner!r}", name, f"one of those here: {there}")
        return lambda: self._replace(left)

    def _replace(self, items: dict[str, T]) -> None:
        # A new dict: another thread may be iterating over the old one.
        self._items = items

    def _describe(self, item: T) -> str:
        origin = self._origin(item)
        if not callable(origin):
            return repr(item)
        name = getattr(origin, "__qualname__", type(origin).__qualname__)
        return f"{getattr(origin, '__module__', '?')}.{name}"


def _do_all(*acts: Callable[[], None]) -> None:
    for act in acts:
        act()


def _ping(_: JsonObject) -> JsonObject:
    return {}


def _context_of(
    tool_name: str, params: JsonObject, request_id: RequestId, caller: Caller
) -> ToolContext:
    meta = meta_of(params)
    return ToolContext(
        tool_name=tool_name,
        tool_use_id=meta.get(TOOL_USE_ID_META, ""),
        session_id=caller.session_id,
        server=caller.server,
        request_id=request_id,
        turn=caller.turn(),
        caller=caller,
        progress_token=meta.get("progressToken"),
        loop=asyncio.get_running_loop(),
    )
