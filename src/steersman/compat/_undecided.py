"""What of a program the rewriting of imports cannot decide: found in its tree, or in its lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

OLDER = "claude_code_sdk"
PACKAGES = frozenset({"claude_agent_sdk", OLDER})
RENAMED = {"ClaudeCodeOptions": "ClaudeAgentOptions"}
"""Names of the older package that have another name since."""
MENTION = re.compile(rb"claude[-_](?:agent|code)[-_]sdk")
PATH = re.compile(r"claude_(?:agent|code)_sdk(?:\.\w+)*\.?\Z")
DISTRIBUTION = re.compile(r"claude-(?:agent|code)-sdk\Z")
PRIVATE = {
    "_query": "private; use client.session, or raw_of(message) for what the CLI sent",
    "_transport": "private; pass transport= to the client, or use client.session",
    "_internal": "private; steersman.compat has no such module",
}
DYNAMIC = frozenset({"import_module", "__import__", "find_spec", "reload"})
PATCHING = frozenset({"patch", "object", "setattr", "delattr", "dict", "multiple"})
PROMPT = (
    "claude_code_sdk had the system prompt of Claude Code where none is given;"
    ' pass system_prompt={"type": "preset", "preset": "claude_code"} to keep that'
)
REMOVED = {
    "append_system_prompt": 'use system_prompt={"type": "preset", "preset": "claude_code",'
    ' "append": ...}',
}
"""Options of the older package that are no more."""


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something that is left for the author of a program to decide."""

    line: int
    text: str


def notes_of_tree(tree: ast.Module) -> Iterator[Note]:
    """Yield what is left of the official package beside its imports."""
    harmless = set(_harmless(tree))
    calls = {
        id(argument): _last_name(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for argument in (*node.args, *(each.value for each in node.keywords))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in harmless:
                yield from _of_text(node, node.value, calls.get(id(node), ""))
        elif isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            yield Note(node.lineno, f".{node.attr} is {PRIVATE[node.attr]}")
    yield from _of_older(tree)


def notes_of_lines(data: bytes, words: str) -> Iterator[Note]:
    """Yield the lines of another file that name the package."""
    for number, line in enumerate(data.splitlines(), start=1):
        found = MENTION.search(line)
        if found is not None:
            yield Note(number, f"{found.group().decode()}: {words}")


def _harmless(tree: ast.Module) -> Iterator[int]:
    """Yield the texts that are docstrings or annotations, whose names stay bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield id(node.value)
        written: list[ast.expr | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            written = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            written = [node.returns]
        for each in written:
            yield from map(id, ast.walk(each) if each is not None else ())


def _of_text(node: ast.Constant, text: str, call: str) -> Iterator[Note]:
    """Yield what a text names, if it is a name of the package and not a sentence about it."""
    if DISTRIBUTION.match(text):
        yield Note(node.lineno, f"{text!r} names the distribution")
    elif not PATH.match(text):
        return
    elif call in DYNAMIC:
        yield Note(node.lineno, f"{call}({text!r}) imports by a name; write steersman.compat")
    elif call in PATCHING:
        yield Note(
            node.lineno,
            f"{call}({text!r}) replaces a name of the official package, which is no longer used;"
            " replace the name in the module that uses it, or in steersman.compat",
        )
    else:
        yield Note(node.lineno, f"{text!r} names the package in a text")


def _of_older(tree: ast.Module) -> Iterator[Note]:
    """Yield what the older package did in another way."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    first = next((node for node in imports if _imports_older(node)), None)
    if first is None:
        return
    yield Note(first.lineno, PROMPT)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in REMOVED:
            yield Note(node.lineno, f"{node.arg}= is no more: {REMOVED[node.arg]}")


def _imports_older(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] == OLDER and not node.level
    return any(each.name.partition(".")[0] == OLDER for each in node.names)


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
