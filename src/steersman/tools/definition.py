"""`@tool`: a Python function that the model may call.

Takes a function, with its signature or with declared parameters, and returns a `Tool`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from steersman._json import Json, JsonDict
from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._schema.declared import InputSchema, declared_arguments
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.signatures import Arguments, arguments_of
from steersman.tools._threads import ConcurrencyLimit, Function, is_async
from steersman.tools.context import ToolContext

YES_OR_NO = ("read_only", "destructive", "idempotent", "open_world", "always_load")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """Hints for the CLI about a tool; `None` sends no hint."""

    title: str | None = None
    read_only: bool | None = None
    """The tool changes nothing. The CLI runs calls of such tools in parallel, others in turn."""
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    """The tool reaches beyond this program, such as to the web."""
    max_result_size: int | None = None
    """Characters up to which the CLI shows a whole result instead of saving it to a file."""
    always_load: bool | None = None
    """The model sees the tool from the start; it may have to search for other tools first."""
    search_hint: str | None = None
    """A text by which the model's tool search finds the tool."""

    def __post_init__(self) -> None:
        for name in YES_OR_NO:
            if getattr(self, name) not in (None, True, False):
                raise UsageError(name, getattr(self, name), "True, False or None")
        for name in ("title", "search_hint"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(name, getattr(self, name), "text or None")
        size = cast("object", self.max_result_size)
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise UsageError("max_result_size", size, "a whole number above 0, or None")

    def annotations(self) -> JsonDict:
        """Return `annotations` of `tools/list`: the hints that MCP defines."""
        return _without_none(
            {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": self.open_world,
            }
        )

    def meta(self) -> JsonDict:
        """Return `_meta` of `tools/list`: the hints that only Claude Code knows."""
        return _without_none(
            {
                "anthropic/maxResultSizeChars": self.max_result_size,
                "anthropic/alwaysLoad": self.always_load,
                "anthropic/searchHint": self.search_hint,
            }
        )


class HintKeywords(TypedDict, total=False):
    """The keywords of `@tool` that become its hints."""

    title: str | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    max_result_size: int | None
    always_load: bool | None
    search_hint: str | None


def _without_none(hints: JsonDict) -> JsonDict:
    return {name: value for name, value in hints.items() if value is not None}


NO_HINTS = ToolHints()
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

P = ParamSpec("P")
R = TypeVar("R")
Start: TypeAlias = Callable[[Json, ToolContext], object]
"""Calls a handler with the values that `Arguments.read` returned."""


@dataclass(frozen=True, slots=True)
class Call:
    """How a handler is called: which arguments it takes, and how they are passed."""

    arguments: Arguments
    start: Start
    handler: Function
    is_async: bool
    limit: ConcurrencyLimit | None = None


@dataclass(frozen=True)
class Tool(Generic[P, R]):
    """A function that the model may call; a `Tool` is still callable like the function.

    Usually made by `@tool`. If made directly, `input_schema` declares the parameters, and the
    handler takes them as one dict; with `None`, the handler's signature is read.
    """

    name: str
    description: str
    input_schema: InputSchema | None
    handler: Callable[P, R]
    hints: ToolHints = NO_HINTS
    timeout: float | None = None
    """Seconds that a call may take, including the wait for `max_concurrency`; `None` for ever."""
    max_concurrency: int | None = None
    """Calls that may run at the same time, over all sessions; `None` for any number."""
    call: Call = field(default=cast("Call", None), repr=False, compare=False)
    """Set by the constructor; do not pass it."""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not NAME.fullmatch(self.name):
            raise UsageError("name", self.name, "1 to 64 of A-Z a-z 0-9 _ -")
        if not isinstance(cast("object", self.description), str):
            raise UsageError("description", self.description, "text")
        _check_limits(self.timeout, self.max_concurrency)
        call = self.call if self._has_its_call() else _call_of(self.handler, self.input_schema)
        if (call.limit and call.limit.most) != self.max_concurrency:
            most = self.max_concurrency
            call = dataclasses.replace(call, limit=None if most is None else ConcurrencyLimit(most))
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "input_schema", call.arguments.schema)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself. Nothing is checked or converted."""
        return self.handler(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[P, R]:
        return self.handler

    def listed(self) -> JsonObject:
        """Return the entry for `tools/list`."""
        listed: JsonDict = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        if annotations := self.hints.annotations():
            listed["annotations"] = annotations
        if meta := self.hints.meta():
            listed["_meta"] = meta
        return listed

    def _has_its_call(self) -> bool:
        # `dataclasses.replace` passes the old call.
        call = cast("Call | None", self.call)
        return (
            call is not None
            and call.handler is self.handler
            and call.arguments.schema is self.input_schema
        )


AnyTool: TypeAlias = Tool[..., Any]


@overload
def tool(
    function: Callable[P, R],
    /,
    description: str | None = None,
    input_schema: InputSchema | None = None,
    *,
    name: str | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    **hints: Unpack[HintKeywords],
) -> Tool[P, R]: ...


@overload
def tool(
    function: str | None = None,
    /,
    description: str | None = None,
    input_schema: InputSchema | None = None,
    *,
    name: str | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    **hints: Unpack[HintKeywords],
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Function | str | None = None,
    /,
    description: str | None = None,
    input_schema: InputSchema | None = None,
    *,
    name: str | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    **hints: Unpack[HintKeywords],
) -> AnyTool | Callable[[Function], AnyTool]:
    """Make a tool from a function, by its name, docstring and signature.

    `@tool` is enough. `@tool("name", "description", {"a": float})` declares the parameters instead,
    as Python types, JSON type names or a JSON Schema, and the function takes them as one dict.
    A parameter annotated with `ToolContext` gets the context of the call.
    `timeout` limits a call in seconds, `max_concurrency` the number of calls at the same time.
    """
    if isinstance(function, str):
        function, name = None, function
    rest = (ToolHints(**hints), timeout, max_concurrency)

    def decorate(function: Function) -> AnyTool:
        called, about = _named(function, name, description)
        return Tool(called, about, input_schema, function, *rest)

    return decorate if function is None else decorate(function)


def as_tool(given: object) -> AnyTool:
    """Return `given` if it is a tool, else make a tool from the function."""
    if isinstance(given, Tool):
        return cast("AnyTool", given)
    if not callable(given):
        raise UsageError("tools", given, "functions and Tool values")
    return tool(given)


def _named(function: Function, name: str | None, description: str | None) -> tuple[str, str]:
    """Return the given name and description, or the function's own."""
    if type(function) is Tool:
        raise UsageError("function", function, "a function that is not yet a tool")
    described: object = function
    if isinstance(described, functools.partial):
        described = cast("functools.partial[object]", described).func
    if name is None:
        name = str(getattr(described, "__name__", type(described).__name__))
    if description is None:
        description = read_docstring(described.__doc__).description
    return name, description


def _check_limits(timeout: object, max_concurrency: object) -> None:
    is_time = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    if timeout is not None and not is_time:
        raise UsageError("timeout", timeout, "seconds above 0, or None")
    if max_concurrency is not None and (type(max_concurrency) is not int or max_concurrency < 1):
        raise UsageError("max_concurrency", max_concurrency, "a whole number above 0, or None")


def _call_of(handler: Function, input_schema: InputSchema | None) -> Call:
    _refuse_generators(handler)
    if input_schema is None:
        arguments = arguments_of(handler)
        start = _start_by_name(handler, arguments.context)
    else:
        arguments = declared_arguments(input_schema)
        start = _start_with_one(handler)
    return Call(arguments, start, handler, is_async(handler))


def _start_by_name(handler: Function, context_name: str | None) -> Start:
    def start(values: Json, _: ToolContext) -> object:
        return handler(**values)

    def start_with_context(values: Json, context: ToolContext) -> object:
        return handler(**values, **{cast("str", context_name): context})

    return start if context_name is None else start_with_context


def _start_with_one(handler: Function) -> Start:
    """Pass one dict, and the context if the handler has a second parameter."""
    parameters = list(inspect.signature(handler).parameters)
    if not parameters:
        raise UsageError("handler", handler, "a function of one dict")

    def start(values: Json, _: ToolContext) -> object:
        return handler(values)

    return start if len(parameters) == 1 else handler


def _refuse_generators(handler: Function) -> None:
    if not callable(cast("object", handler)):
        raise UsageError("handler", handler, "a function")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise UsageError("handler", handler, "a function that returns its result, not a generator")
