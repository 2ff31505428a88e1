"""MCP prompts: messages that a toolbox provides by name.

A function returns the messages; a text is one user message. The stock CLI does not request prompts
from in-process MCP servers; other MCP clients do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast, overload

import msgspec

from steersman._json import Json, JsonDict, is_object
from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._mcp.jsonrpc import (
    INVALID_PARAMS,
    JsonRpcError,
    Method,
    check_no_cursor,
    required_text,
)
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.signatures import Arguments, arguments_of
from steersman.tools._threads import Function, Handler, handler_of, run_handler
from steersman.tools.results import text_block


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: a function whose return value becomes messages.

    The function returns a text, a message `{"role": ..., "content": ...}`, or a list of these.
    """

    name: str
    description: str
    function: Function = field(repr=False)
    title: str | None = None
    _arguments: Arguments = field(init=False, repr=False, compare=False)
    _handler: Handler = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name:
            raise UsageError("name", self.name, "a name that is not empty")
        if not isinstance(cast("object", self.description), str):
            raise UsageError("description", self.description, "text")
        if not callable(cast("object", self.function)):
            raise UsageError("function", self.function, "a function")
        arguments = arguments_of(self.function)
        if arguments.context is not None:
            raise UsageError("function", self.function, "a function without a ToolContext")
        object.__setattr__(self, "_arguments", arguments)
        object.__setattr__(self, "_handler", handler_of(self.function))

    def listed(self) -> JsonObject:
        """Return the entry for `prompts/list`."""
        schema = self._arguments.schema
        required = schema.get("required", ())
        listed: JsonDict = {"name": self.name, "description": self.description}
        if self.title is not None:
            listed["title"] = self.title
        listed["arguments"] = [
            {"name": name, "description": about.get("description", ""), "required": is_required}
            for name, about in schema["properties"].items()
            for is_required in [name in required]
        ]
        return listed

    async def get(self, given: JsonObject) -> JsonObject:
        """Return the result of `prompts/get`. Raises `JsonRpcError` for invalid arguments."""
        try:
            values = self._arguments.read(self._typed(given))
        except ValueError as invalid:
            raise JsonRpcError(INVALID_PARAMS, f"arguments: {invalid}") from invalid
        made = await run_handler(self._handler, values)
        several = cast("Sequence[object]", made) if isinstance(made, list | tuple) else [made]
        return {"description": self.description, "messages": [_message(each) for each in several]}

    def _typed(self, given: JsonObject) -> JsonDict:
        """Decode the arguments, which MCP sends as texts: all but text parameters are JSON."""
        properties = self._arguments.schema["properties"]
        return {name: _typed(value, properties.get(name, {})) for name, value in given.items()}


@overload
def prompt(function: Function, /) -> Prompt: ...


@overload
def prompt(
    *, name: str | None = None, description: str | None = None, title: str | None = None
) -> Callable[[Function], Prompt]: ...


def prompt(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
) -> Prompt | Callable[[Function], Prompt]:
    """Make a prompt from a function, by its name, docstring and parameters."""

    def decorate(function: Function) -> Prompt:
        called = getattr(function, "__name__", "") if name is None else name
        about = read_docstring(function.__doc__).description if description is None else description
        return Prompt(called, about, function, title)

    return decorate if function is None else decorate(function)


def prompt_methods(prompts: Iterable[Prompt]) -> dict[str, Method]:
    """Return the MCP methods that serve `prompts`, which are read anew at each request."""

    def listed(params: JsonObject) -> JsonObject:
        check_no_cursor(params)
        return {"prompts": [each.listed() for each in prompts]}

    async def get(params: JsonObject) -> JsonObject:
        name, given = required_text(params, "name"), params.get("arguments")
        found = next((each for each in prompts if each.name == name), None)
        if found is None:
            raise JsonRpcError(INVALID_PARAMS, f"name: there is no prompt {name!r}")
        if given is not None and not is_object(given):
            raise JsonRpcError(INVALID_PARAMS, "arguments: an object is needed")
        return await found.get(given or {})

    return {"prompts/list": listed, "prompts/get": get}


def _typed(value: Json, schema: JsonObject) -> Json:
    if not isinstance(value, str) or schema.get("type") == "string":
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _message(made: object) -> JsonObject:
    if is_object(made) and "role" in made and "content" in made:
        content = made["content"]
        return {**made, "content": text_block(content) if isinstance(content, str) else content}
    if isinstance(made, str):
        return {"role": "user", "content": text_block(made)}
    raise TypeError(f"a {type(made).__name__} is no message; give a text, or role and content")
