from __future__ import annotations

import dataclasses
import functools
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.tools import Tool, ToolContext, ToolHints, tool


@tool
def add(a: float, b: float = 1.0) -> float:
    """Add two numbers.

    Carefully.

    Args:
        a: the first
    """
    return a + b


def test_a_function_is_a_tool_by_its_name_docstring_and_signature() -> None:
    assert add.listed() == {
        "name": "add",
        "description": "Add two numbers.\n\nCarefully.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "the first"},
                "b": {"type": "number", "default": 1.0},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }


def test_a_tool_is_still_the_function() -> None:
    total: float = add(1, b=2)

    assert total == 3
    assert inspect.signature(add) == inspect.signature(add.handler)


def test_names_and_hints_may_be_given_by_keyword() -> None:
    @tool(
        name="look-up",
        description="Look it up.",
        title="Look up",
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        max_result_size=500_000,
    )
    async def look_up(word: str) -> str:
        return word

    listed = look_up.listed()

    assert (listed["name"], listed["description"]) == ("look-up", "Look it up.")
    assert listed["annotations"] == {
        "title": "Look up",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert listed["_meta"] == {"anthropic/maxResultSizeChars": 500_000}


def test_the_declared_form_gives_the_handler_one_dict() -> None:
    @tool("add", "Add two numbers", {"a": float, "b": float})
    async def add_numbers(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{args['a'] + args['b']}"}]}

    listed = add_numbers.listed()

    assert (listed["name"], listed["description"]) == ("add", "Add two numbers")
    assert listed["inputSchema"]["required"] == ["a", "b"]


def test_a_tool_may_be_written_down_without_a_decorator() -> None:
    def multiply(args: dict[str, Any]) -> float:
        return float(args["a"] * args["b"])

    made = Tool("multiply", "Multiply", {"a": "number", "b": "number"}, multiply)

    assert made.listed()["inputSchema"]["properties"] == {
        "a": {"type": "number"},
        "b": {"type": "number"},
    }


def test_a_renamed_tool_is_called_as_before() -> None:
    renamed = dataclasses.replace(add, name="plus", hints=ToolHints(read_only=True))

    assert renamed.call is add.call
    assert renamed.listed()["inputSchema"] == add.listed()["inputSchema"]


def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        """Sells."""

        def sell(self, what: str) -> str:
            """Sell something."""
            return what

        async def __call__(self, what: str) -> str:
            return what

    sell = tool(Shop().sell)
    half = tool(functools.partial(add.handler, b=0.5))
    shop = tool(Shop(), read_only=True)

    assert (sell.name, sell.description) == ("sell", "Sell something.")
    assert (half.name, half.description) == ("add", "Add two numbers.\n\nCarefully.")
    assert (shop.name, shop.description, shop.call.is_async) == ("Shop", "Sells.", True)


def test_the_context_is_no_part_of_the_schema() -> None:
    @tool
    def where(context: ToolContext, city: str) -> str:
        return city

    assert list(where.listed()["inputSchema"]["properties"]) == ["city"]


LISTS_HEAVY_IMPORTS = """
import sys
import steersman.tools
print({"pydantic", "mcp"} & set(sys.modules))
"""

TAKES_A_FUNCTION = """
import sys
from collections.abc import Callable
from steersman.errors import UsageError
from steersman.tools import tool
def call(x: Callable[[], int]) -> None: ...
try:
    tool(call)
except UsageError as refused:
    print(refused.argument, {"pydantic"} & set(sys.modules))
"""


def generate() -> Iterator[int]:
    yield 1


async def generate_async() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: tool(name="no spaces")(add.handler), "name"),
        (lambda: tool(name="")(add.handler), "name"),
        (lambda: tool("x" * 65, "")(add.handler), "name"),
        (lambda: tool(lambda: 1), "name"),
        (lambda: tool(add), "function"),
        (lambda: tool(description=3)(add.handler), "description"),  # type: ignore[call-overload]
        (lambda: tool(generate), "handler"),
        (lambda: tool(generate_async), "handler"),
        (lambda: tool("x", "d", {"a": int})(lambda: 1), "handler"),
        (lambda: Tool("x", "d", None, 3), "handler"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_a_tool_is_refused_by_name(
    make: Callable[[], object], argument: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make()

    assert refused.value.argument == argument


def run_apart(program: str) -> str:
    """Run a program in an interpreter that has imported nothing yet."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


def test_importing_the_tools_imports_neither_pydantic_nor_mcp() -> None:
    assert run_apart(LISTS_HEAVY_IMPORTS) == "set()\n"


def test_a_type_that_only_pydantic_would_know_is_refused_without_it() -> None:
    assert run_apart(TAKES_A_FUNCTION) == "parameter 'x' set()\n"


@pytest.mark.parametrize(
    ("hint", "given", "allowed"),
    [
        ("read_only", "yes", "True, False or None"),
        ("title", 5, "text or None"),
        ("search_hint", 5, "text or None"),
        ("max_result_size", 0, "a whole number above 0, or None"),
        ("max_result_size", 1.5, "a whole number above 0, or None"),
    ],
)
def test_a_wrong_hint_is_refused_with_what_is_allowed(hint: str, given: Any, allowed: str) -> None:
    with pytest.raises(UsageError, match=f"allowed: {allowed}") as refused:
        ToolHints(**{hint: given})

    assert refused.value.argument == hint
