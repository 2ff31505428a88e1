"""Prompts: messages that a toolbox has ready, by name.

A function gives them: a text is one message of the user's. The stock CLI does not ask a server in
this process for prompts; other MCP clients do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, overload

import msgspec

from steersman._json import is_object
from steersman.errors import UsageError
from steersman.ports import JsonObject
from steersman.tools._mcp.jsonrpc import INVALID_PARAMS, Answers, Refused, refuse_cursor, text_of
from steersman.tools._run.threads import Handler, handler_of, run_handler
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.signatures import Arguments, arguments_of
from steersman.tools.results import text_block
from steersman.tools.toolbox import NamedItems

__all__ = ["Prompt", "prompt", "prompt_answers"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages that a function makes of its arguments.

    It gives a text, a message `{"role": ..., "content": ...}`, or several of these.
    """

    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
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
        """Describe it for `prompts/list`."""
        schema = self._arguments.schema
        required = schema.get("required", ())
        listed: dict[str, Any] = {"name": self.name, "description": self.description}
        if self.title is not None:
            listed["title"] = self.title
        listed["arguments"] = [
            {"name": name, "description": about.get("description", ""), "required": is_required}
            for name, about in schema["properties"].items()
            for is_required in [name in required]
        ]
        return listed

    async def get(self, given: Mapping[str, Any]) -> JsonObject:
        """Make the messages. Raises `Refused` naming the argument that does not fit."""
        try:
            values = self._arguments.read(self._typed(given))
        except ValueError as misfit:
            raise Refused(INVALID_PARAMS, f"arguments: {misfit}") from misfit
        made = await run_handler(self._handler, values)
        several = cast("list[Any]", made) if isinstance(made, list | tuple) else [made]
        return {"description": self.description, "messages": [_message(each) for each in several]}

    def _typed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of prompts are texts on the wire; what is no text is spelled as JSON."""
        properties = self._arguments.schema["properties"]
        return {name: _typed(value, properties.get(name, {})) for name, value in given.items()}


@overload
def prompt(function: Callable[..., Any], /) -> Prompt: ...


@overload
def prompt(
    *, name: str | None = None, description: str | None = None, title: str | None = None
) -> Callable[[Callable[..., Any]], Prompt]: ...


def prompt(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
) -> Prompt | Callable[[Callable[..., Any]], Prompt]:
    """Make a prompt of a function: its name, its docstring, its parameters."""

    def decorate(function: Callable[..., Any]) -> Prompt:
        called = getattr(function, "__name__", "") if name is None else name
        about = read_docstring(function.__doc__).description if description is None else description
        return Prompt(called, about, function, title)

    return decorate if function is None else decorate(function)


def prompt_answers(shelf: NamedItems[Prompt]) -> Answers:
    """Answer for the prompts of a toolbox."""

    def listed(params: Mapping[str, Any]) -> JsonObject:
        refuse_cursor(params)
        return {"prompts": [each.listed() for each in shelf]}

    async def get(params: Mapping[str, Any]) -> JsonObject:
        name, given = text_of(params, "name"), params.get("arguments")
        found = shelf.get(name)
        if found is None:
            raise Refused(INVALID_PARAMS, f"name: there is no prompt {name!r}")
        if given is not None and not is_object(given):
            raise Refused(INVALID_PARAMS, "arguments: an object is needed")
        return await found.get(given or {})

    return {"prompts/list": listed, "prompts/get": get}


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or schema.get("type") == "string":
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _message(made: Any) -> JsonObject:
    if is_object(made) and "role" in made and "content" in made:
        content = made["content"]
        return {**made, "content": text_block(content) if isinstance(content, str) else content}
    if isinstance(made, str):
        return {"role": "user", "content": text_block(made)}
    raise TypeError(f"a {type(made).__name__} is no message; give a text, or role and content")
