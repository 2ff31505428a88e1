"""What an editor offers on the objects that callers hold is for callers: documented, importable."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

import steersman
from steersman import Agent, Hooks, Inbox, Policy, Session, Turn
from steersman.agent import Query
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI

ROOT = Path(__file__).parents[2]

KEPT: dict[type, set[str]] = {
    Agent: {"open", "options", "prewarm", "query", "run", "run_result", "session", "start"},
    Inbox: {
        *("answer", "answer_many", "close", "close_ask", "delegate", "expire", "get", "list"),
        *("open", "watch"),
    },
    Hooks: {"on"},
    Policy: {
        *(
            "auto_approve",
            "available",
            "check",
            "decide",
            "dry_run",
            "explain",
            "forbid",
            "from_toml",
        ),
        *("may_repeat", "otherwise", "remember", "repeatable", "rules"),
    },
    Query: {"aclose", "session"},
    Session: {
        *("abandon", "aclose", "agents", "call", "cancel", "capabilities", "cause"),
        "checkpoint",
        *(
            "command",
            "context_usage",
            "control",
            "cost_usd",
            "describe",
            "faults",
            "finish",
            "fork",
            "id",
        ),
        *("initialized", "interrupt", "is_saved", "journal", "last_seq", "mcp_reconnect"),
        *("mcp_set_servers", "mcp_status", "mcp_toggle", "messages", "on", "options", "park"),
        "pause",
        *(
            "phase",
            "pid",
            "raw",
            "redacted",
            "restarts",
            "resume",
            "rewind",
            "rewind_files",
            "run",
            "send",
        ),
        *("set_model", "set_permission_mode", "snapshot", "start", "state", "stop_task"),
        *("resume_turns", "tasks", "turn", "turns", "wait_idle", "withdraw"),
    },
    Turn: {
        *("begun", "blocks", "delivery", "has_begun", "interrupt", "is_settled", "messages"),
        "state",
        *("raw", "result", "session", "text", "uuid", "withdraw"),
    },
}
"""What callers may use. A name that only this library uses begins with an underscore."""


NOT_FOR_CALLERS = {"ToolCall: Effort": "a counter that the rules of a policy share"}
"""Types that a caller can get and does not need, with the reason."""


async def held() -> dict[type, Any]:
    """One object of each class."""
    agent, inbox = Agent(transport=ScriptedCLI(Script(say("hi")))), Inbox()
    async with agent.session() as session:
        turn = await session.send("hi")
        await turn
    mine = {Agent: agent, Inbox: inbox, Session: session, Turn: turn, Query: agent.query("hi")}
    return {**mine, Hooks: Hooks(), Policy: Policy()}


@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.__name__)
async def test_an_object_offers_what_callers_may_use_and_nothing_else(kind: type) -> None:
    offered = {name for name in dir((await held())[kind]) if not name.startswith("_")}

    assert offered == KEPT[kind]


@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.__name__)
def test_a_page_names_everything_that_is_offered(kind: type) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(each.read_text(encoding="utf-8") for each in pages)

    unnamed = [each for each in KEPT[kind] if not re.search(rf"[.`]{each}\b", text)]

    assert unnamed == []


# --- Types ---------------------------------------------------------------------------------


def public_modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(steersman.__path__, "steersman."):
        if "._" not in found.name and "__main__" not in found.name and ".cli" not in found.name:
            yield importlib.import_module(found.name)


def public_types() -> set[int]:
    """The ids of all classes and aliases that a module without an underscore gives."""
    return {
        id(getattr(module, name))
        for module in (steersman, *public_modules())
        for name in getattr(module, "__all__", None) or defined_in(module)
    }


def defined_in(module: Any) -> list[str]:
    """The public names that the module itself defines: classes and aliases, nothing imported."""
    found: list[str] = []
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                found.append(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.append(name)
            case _:
                pass
    return [name for name in found if not name.startswith("_") and hasattr(module, name)]


@cache
def imports_of(module: str) -> dict[str, tuple[str, str]]:
    """Where a module's names come from, including those that only type checkers import."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        each.asname or each.name: (node.module or "", each.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }


def annotations_of(kind: type) -> Iterator[tuple[str, str]]:
    """Every annotation of what callers use of a class, and the module that it is written in."""
    for owner in kind.__mro__:
        if not owner.__module__.startswith("steersman"):
            continue
        for name, value in vars(owner).items():
            if name.startswith("_") and name not in ("__aenter__", "__aiter__", "__await__"):
                continue
            function = value.fget if isinstance(value, property) else inspect.unwrap(value)
            for text in getattr(function, "__annotations__", {}).values():
                yield str(text), owner.__module__
        for name, text in vars(owner).get("__annotations__", {}).items():
            if not name.startswith("_") and "ClassVar" not in str(text):
                yield str(text), owner.__module__


def types_in(text: str, module: str) -> Iterator[Any]:
    names = imports_of(module)
    for name in re.findall(r"[A-Za-z_]\w*", text):
        home, original = names.get(name, (module, name))
        if not home.startswith("steersman"):
            continue
        value = getattr(importlib.import_module(home), original, None)
        if value is not None and not isinstance(value, TypeVar):
            yield name, value


def reachable(*begin: type) -> Iterator[tuple[str, Any]]:
    """Every type of this library that an annotation leads to from these classes."""
    left, seen = list(begin), set[int]()
    while left:
        kind = left.pop()
        for text, module in annotations_of(kind):
            for name, value in types_in(text, module):
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{kind.__name__}: {name}", value
                    if isinstance(value, type):
                        left.append(value)


def test_every_type_that_a_caller_can_get_can_be_imported_from_a_public_room() -> None:
    known = public_types()

    hidden = {where for where, value in reachable(*KEPT) if id(value) not in known}

    assert hidden == set(NOT_FOR_CALLERS)


async def test_every_attribute_has_a_type_that_can_be_imported() -> None:
    known = public_types()
    kinds: dict[str, type] = {
        f"{kind.__name__}.{name}": type(value)
        for kind, each in (await held()).items()
        for name, value in cast("dict[str, object]", getattr(each, "__dict__", {})).items()
        if not name.startswith("_")
    }

    ours = {where: kind for where, kind in kinds.items() if "steersman" in kind.__module__}
    assert {where for where, kind in ours.items() if id(kind) not in known} == set()
