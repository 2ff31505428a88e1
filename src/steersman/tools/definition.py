"""`@tool`: a Python function that the model may call.

Takes a function, with its signature or with declared parameters; gives a `Tool`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._run.concurrency import ConcurrencyLimit
from steersman.tools._run.threads import is_async
from steersman.tools._schema.declared import InputSchema, declared_arguments
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.signatures import Arguments, arguments_of
from steersman.tools.context import ToolContext

__all__ = ["Call", "HintKeywords", "Tool", "ToolHints", "as_tool", "tool"]

YES_OR_NO = ("read_only", "destructive", "idempotent", "open_world", "always_load")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What the CLI is told about a tool's manners; `None` says nothing."""

    title: str | None = None
    read_only: bool | None = None
    """Changes nothing. The CLI runs calls of such tools at the same time, of others in turn."""
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    """Reaches beyond this program, such as the web."""
    max_result_size: int | None = None
    """Characters up to which the CLI shows a result whole instead of saving it to a file."""
    always_load: bool | None = None
    """Stands before the model from the start; other tools may have to be searched for first."""
    search_hint: str | None = None
    """Words by which such a search finds it."""

    def __post_init__(self) -> None:
        for name in YES_OR_NO:
            if getattr(self, name) not in (None, True, False):
                raise UsageError(name, getattr(self, name), "True, False or None")
        for name in ("title", "search_hint"):
            if not isinstance(getattr(self, name), str | None):
                raise UsageError(name, getattr(self, name), "text or None")
        size = self.max_result_size
        if size is not None and (not isinstance(size, int) or size <= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("max_result_size", size, "a whole number above 0, or None")

    def annotations(self) -> dict[str, Any]:
        """Spell the hints as MCP does."""
        return _said(
            {
                "title": self.title,
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": self.open_world,
            }
        )

    def meta(self) -> dict[str, Any]:
        """Spell the hints that only Claude Code knows."""
        return _said(
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


def _said(spelled: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spelled.items() if value is not None}


NO_HINTS = ToolHints()
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

P = ParamSpec("P")
R = TypeVar("R")
Start = Callable[[Any, ToolContext], Any]


@dataclass(frozen=True, slots=True)
class Call:
    """How a handler is called: what it takes, and how that is handed over."""

    arguments: Arguments
    start: Start
    handler: Callable[..., Any]
    is_async: bool
    limit: ConcurrencyLimit | None = None


@dataclass(frozen=True)
class Tool(Generic[P, R]):
    """A function the model may call; still callable like the function.

    Usually made by `@tool`. Made by hand, `input_schema` declares the parameters and the handler
    takes them as one dict; `None` reads the handler's signature.
    """

    name: str
    description: str
    input_schema: InputSchema | None
    handler: Callable[P, R]
    hints: ToolHints = NO_HINTS
    timeout: float | None = None
    """Seconds that a call may take, the wait for its place included; `None` is for ever."""
    max_concurrency: int | None = None
    """Calls that may run at the same time, over all sessions; `None` is any number."""
    call: Call = field(default=cast("Call", None), repr=False, compare=False)
    """Made here; never given."""

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
        """Call the function itself: nothing is checked or converted."""
        return self.handler(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[P, R]:
        return self.handler

    def listed(self) -> JsonObject:
        """Describe the tool for `tools/list`."""
        listed: dict[str, Any] = {
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
        # `dataclasses.replace` hands the old call over.
        call = cast("Call | None", self.call)
        return (
            call is not None
            and call.handler is self.handler
            and call.arguments.schema is self.input_schema
        )


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
    function: Callable[..., Any] | str | None = None,
    /,
    description: str | None = None,
    input_schema: InputSchema | None = None,
    *,
    name: str | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    **hints: Unpack[HintKeywords],
) -> Tool[..., Any] | Callable[[Callable[..., Any]], Tool[..., Any]]:
    """Make a tool of a function: its name, its docstring, its signature.

    `@tool` is enough. `@tool("name", "description", {"a": float})` declares the parameters instead,
    by types, by JSON's words or as a JSON Schema, and the function takes them as one dict.
    A parameter annotated with `ToolContext` is given the context of the call.
    `timeout` bounds a call in seconds, `max_concurrency` the number of calls at the same time.
    """
    if isinstance(function, str):
        function, name = None, function
    rest = (ToolHints(**hints), timeout, max_concurrency)

    def decorate(function: Callable[..., Any]) -> Tool[..., Any]:
        called, about = _named(function, name, description)
        return Tool(called, about, input_schema, function, *rest)

    return decorate if function is None else decorate(function)


def as_tool(given: object) -> Tool[..., Any]:
    """Take a tool, or make one of a function."""
    if isinstance(given, Tool):
        return cast("Tool[..., Any]", given)
    if not callable(given):
        raise UsageError("tools", given, "functions and Tool values")
    return tool(given)


def _named(
    function: Callable[..., Any], name: str | None, description: str | None
) -> tuple[str, str]:
    """The name and the description: those given, or the function's own."""
    if type(function) is Tool:
        raise UsageError("function", function, "a function that is not yet a tool")
    described: Any = function
    if isinstance(described, functools.partial):
        described = cast("Any", described).func
    if name is None:
        name = str(getattr(described, "__name__", type(described).__name__))
    if description is None:
        description = read_docstring(described.__doc__).description
    return name, description


def _check_limits(timeout: Any, max_concurrency: Any) -> None:
    is_time = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    if timeout is not None and not is_time:
        raise UsageError("timeout", timeout, "seconds above 0, or None")
    if max_concurrency is not None and (type(max_concurrency) is not int or max_concurrency < 1):
        raise UsageError("max_concurrency", max_concurrency, "a whole number above 0, or None")


def _call_of(handler: Callable[..., Any], input_schema: InputSchema | None) -> Call:
    _refuse_generators(handler)
    if input_schema is None:
        arguments = arguments_of(handler)
        start = _start_by_name(handler, arguments.context)
    else:
        arguments = declared_arguments(input_schema)
        start = _start_with_one(handler)
    return Call(arguments, start, handler, is_async(handler))


def _start_by_name(handler: Callable[..., Any], context_name: str | None) -> Start:
    def start(values: Any, _: ToolContext) -> Any:
        return handler(**values)

    def start_with_context(values: Any, context: ToolContext) -> Any:
        return handler(**values, **{cast("str", context_name): context})

    return start if context_name is None else start_with_context


def _start_with_one(handler: Callable[..., Any]) -> Start:
    """Hand over one dict, and the context to a handler with a second parameter."""
    parameters = list(inspect.signature(handler).parameters)
    if not parameters:
        raise UsageError("handler", handler, "a function of one dict")

    def start(values: Any, _: ToolContext) -> Any:
        return handler(values)

    return start if len(parameters) == 1 else handler


def _refuse_generators(handler: Callable[..., Any]) -> None:
    if not callable(cast("object", handler)):
        raise UsageError("handler", handler, "a function")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise UsageError("handler", handler, "a function that returns its result, not a generator")
