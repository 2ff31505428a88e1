"""An MCP server that lives in this process, made of Python functions.

JSON-RPC messages go in, answers come out. Knows nothing of the CLI or of sessions.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, Unpack, cast

from steersman._json import is_mapping, is_object
from steersman.errors import UsageError
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp import jsonrpc
from steersman.tools._run.heartbeats import running_calls
from steersman.tools.context import ToolContext, call_in
from steersman.tools.definition import Tool, as_tool
from steersman.tools.prompts import Prompt, prompt_answers
from steersman.tools.resources import Resource, resource_answers
from steersman.tools.results import ToolError
from steersman.tools.run import RunKeywords, RunSettings, run_tool

__all__ = ["NamedItems", "Toolbox"]

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

logger = logging.getLogger("steersman.tools")


class Toolbox:
    """Tools, resources and prompts under one name; may serve several sessions at once.

    The name is for people: the key in `mcp_servers` is the route and the prefix of the tools.
    Other keywords say how tools are run: `heartbeat`, `stall_after`, `explain`; see `RunSettings`.
    """

    def __init__(
        self,
        name: str,
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
        *,
        version: str = "1.0.0",
        resources: Iterable[Resource] | None = None,
        prompts: Iterable[Prompt] | None = None,
        instructions: str | None = None,
        **manner: Unpack[RunKeywords],
    ) -> None:
        if not isinstance(cast("object", name), str) or not name:
            raise UsageError("name", name, "a name that is not empty")
        self.name = name
        self.version = version
        self.instructions = instructions
        """What the model is told about the whole of it."""
        self._manner = RunSettings(**manner)
        self._callers: dict[Caller, asyncio.AbstractEventLoop] = {}
        self._tools = NamedItems[Tool[..., Any]]("tools", lambda t: t.name, lambda t: t.handler)
        self._resources = NamedItems[Resource]("resources", lambda r: r.uri, lambda r: r.content)
        self._prompts = NamedItems[Prompt]("prompts", lambda p: p.name, lambda p: p.function)
        self._changing = threading.Lock()
        self._capabilities: dict[str, Any] = {}
        self._answers: dict[str, Any] = {"initialize": self._initialize, "ping": _pong}
        self._offer(self._tools, {"tools/list": self._list})
        if resources is not None:
            self._offer(self._resources, resource_answers(self._resources))
        if prompts is not None:
            self._offer(self._prompts, prompt_answers(self._prompts))
        self.register(*tools, *(resources or ()), *(prompts or ()))

    def __repr__(self) -> str:
        return f"Toolbox({self.name!r}, tools={list(self.tool_names)})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        return self._tools.names

    @property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools, in the order they were given."""
        return tuple(self._tools)

    # What is in it

    def register(self, *added: Tool[..., Any] | Callable[..., Any] | Resource | Prompt) -> None:
        """Add tools, resources and prompts, all or none; running sessions are told.

        May be called in any thread. A CLI learns at its start whether there are resources and
        prompts at all: give `resources=()` for those that come later.
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
                self._offer(self._resources, resource_answers(self._resources))
            if prompts:
                self._offer(self._prompts, prompt_answers(self._prompts))
        self._tell_of(tools=tools, resources=resources, prompts=prompts)

    def unregister(
        self, *gone: str | Tool[..., Any] | Callable[..., Any] | Resource | Prompt
    ) -> None:
        """Take out tools, by name or as they were given, resources and prompts, all or none.

        Calls that run go on.
        """
        resources = [each.uri for each in gone if isinstance(each, Resource)]
        prompts = [each.name for each in gone if isinstance(each, Prompt)]
        with self._changing:
            tools = [
                self._name_of(each) for each in gone if not isinstance(each, (Resource, Prompt))
            ]
            _do_all(
                self._tools.removing(tools, self.name),
                self._resources.removing(resources, self.name),
                self._prompts.removing(prompts, self.name),
            )
        self._tell_of(tools=tools, resources=resources, prompts=prompts)

    def _name_of(self, gone: Any) -> Any:
        handler = getattr(gone, "handler", gone)
        return next((each.name for each in self._tools if each.handler == handler), gone)

    def _offer(self, shelf: NamedItems[Any], answers: jsonrpc.Answers) -> None:
        self._capabilities[shelf.kind] = {"listChanged": True}
        self._answers |= answers

    def _tell_of(self, **changed: list[Any]) -> None:
        for kind in (kind for kind, things in changed.items() if things):
            message = jsonrpc.notification(f"{kind}/list_changed")
            for caller, loop in list(self._callers.items()):
                call_in(loop, caller.notify, message)

    # Whom it serves

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
            return jsonrpc.answer(request_id, await self._result(method, message, caller))
        except jsonrpc.Refused as refused:
            return jsonrpc.refusal(request_id, refused.code, str(refused))
        except ToolError as error:
            return jsonrpc.refusal(request_id, jsonrpc.INTERNAL_ERROR, str(error))
        # Also what the host's own functions raise that give resources and prompts.
        except Exception:
            logger.exception("toolbox %r failed to answer %r", self.name, method)
            return jsonrpc.refusal(
                request_id, jsonrpc.INTERNAL_ERROR, f"internal error in {method!r}"
            )

    async def _result(self, method: Any, message: JsonObject, caller: Caller) -> JsonObject:
        params: Any = message.get("params")
        params = {} if params is None else params
        if not is_mapping(params):
            raise jsonrpc.Refused(jsonrpc.INVALID_PARAMS, "params: an object is needed")
        if method == "tools/call":
            return await self._call(params, message["id"], caller)
        if not isinstance(method, str):
            raise jsonrpc.Refused(jsonrpc.INVALID_REQUEST, "method: a string is needed")
        find_answer = self._answers.get(method)
        if find_answer is None:
            raise jsonrpc.Refused(jsonrpc.METHOD_NOT_FOUND, f"method not found: {method}")
        found = find_answer(params)
        return cast("JsonObject", await found if inspect.isawaitable(found) else found)

    async def _call(self, params: JsonObject, request_id: int | str, caller: Caller) -> JsonObject:
        name, given = params.get("name"), params.get("arguments")
        tool = self._tools.get(name)
        if tool is None:
            raise jsonrpc.Refused(jsonrpc.INVALID_PARAMS, f"name: there is no tool {name!r}")
        if given is not None and not is_mapping(given):
            raise jsonrpc.Refused(jsonrpc.INVALID_PARAMS, "arguments: an object is needed")
        context = _context_of(tool.name, params, request_id, caller)
        return await run_tool(tool, given or {}, context, self._manner)

    def _initialize(self, params: Mapping[str, Any]) -> JsonObject:
        asked = params.get("protocolVersion")
        told = {
            "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[-1],
            "capabilities": dict(self._capabilities),
            "serverInfo": {"name": self.name, "version": self.version},
        }
        return told if self.instructions is None else {**told, "instructions": self.instructions}

    def _list(self, params: Mapping[str, Any]) -> JsonObject:
        jsonrpc.refuse_cursor(params)
        return {"tools": [each.listed() for each in self._tools]}


def _do_all(*acts: Callable[[], None]) -> None:
    for act in acts:
        act()


def _pong(_: Mapping[str, Any]) -> JsonObject:
    return {}


def _context_of(
    tool_name: str, params: JsonObject, request_id: int | str, caller: Caller
) -> ToolContext:
    given = params.get("_meta")
    meta = given if is_object(given) else {}
    return ToolContext(
        tool_name=tool_name,
        tool_use_id=meta.get("claudecode/toolUseId", ""),
        session_id=caller.session_id,
        server=caller.server,
        request_id=request_id,
        turn=caller.turn(),
        caller=caller,
        progress_token=meta.get("progressToken"),
        loop=asyncio.get_running_loop(),
    )


T = TypeVar("T")


class NamedItems(Generic[T]):
    """Things of one kind, in the order in which they came."""

    def __init__(self, kind: str, key: Callable[[T], str], origin: Callable[[T], Any]) -> None:
        self.kind = kind
        """Their name in MCP: tools, resources, prompts."""
        self._key = key
        self._origin = origin
        self._things: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(self._things.values())

    @property
    def names(self) -> tuple[str, ...]:
        """What the things are called."""
        return tuple(self._things)

    def get(self, name: Any) -> T | None:
        """The thing of that name, if there is one."""
        return self._things.get(name) if isinstance(name, str) else None

    def adding(self, things: Iterable[T], owner: str) -> Callable[[], None]:
        """Make sure that all of them can be here; give the act that puts them here."""
        added = dict(self._things)
        for thing in things:
            name = self._key(thing)
            if name in added:
                raise UsageError(
                    f"{self.kind} of {owner!r}",
                    name,
                    f"one of each name among the {self.kind}",
                    hint=f"{self._named(added[name])} and {self._named(thing)} share it",
                )
            added[name] = thing
        return lambda: self._hold(added)

    def removing(self, names: Iterable[Any], owner: str) -> Callable[[], None]:
        """Make sure that all of them are here; give the act that takes them away."""
        left = dict(self._things)
        for name in names:
            if not isinstance(name, str) or left.pop(name, None) is None:
                there = ", ".join(self._things) or "none"
                raise UsageError(f"{self.kind} of {owner!r}", name, f"one of those here: {there}")
        return lambda: self._hold(left)

    def _hold(self, things: dict[str, T]) -> None:
        # Another dict: somebody may be reading the old one, in another thread too.
        self._things = things

    def _named(self, thing: T) -> str:
        origin = self._origin(thing)
        if not callable(origin):
            return repr(thing)
        name = getattr(origin, "__qualname__", type(origin).__qualname__)
        return f"{getattr(origin, '__module__', '?')}.{name}"
