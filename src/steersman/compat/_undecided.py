"""What of a program the rewriting of imports cannot decide: found in its tree, or in its lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import steersman.compat

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
INSTRUMENTORS = {
    "atla_insights": "atla-insights",
    "braintrust": "braintrust",
    "ddtrace": "ddtrace",
    "langsmith.integrations.claude_agent_sdk": "langsmith",
    "lmnr": "lmnr",
    "logfire": "logfire",
    "openinference.instrumentation.claude_agent_sdk": (
        "openinference-instrumentation-claude-agent-sdk"
    ),
    "opentelemetry.instrumentation.claude_agent_sdk": (
        "opentelemetry-instrumentation-claude-agent-sdk"
    ),
    "posthog.ai.claude_agent_sdk": "posthog",
    "respan_instrumentation_claude_agent_sdk": "respan-instrumentation-claude-agent-sdk",
    "traceai_claude_agent_sdk": "traceai-claude-agent-sdk",
    "weave": "weave",
}
"""Modules that patch the official package, and the distributions that have them."""
INSTRUMENTING = re.compile(
    rb"\b(?:%s)\b" % b"|".join(sorted({each.partition(".")[0].encode() for each in INSTRUMENTORS}))
)
_REQUIRED = re.compile(rf"(?<![\w.-])({'|'.join(INSTRUMENTORS.values())})(?![\w.-]*\w)")


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
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _of_instrumentor(node)
    yield from _of_older(tree)


def notes_of_lines(data: bytes, words: str) -> Iterator[Note]:
    """Yield the lines of another file that name the package."""
    for number, line in enumerate(data.splitlines(), start=1):
        found = MENTION.search(line)
        if found is not None:
            yield Note(number, f"{found.group().decode()}: {words}")


def instrumentors_in(data: bytes) -> Iterator[Note]:
    """Yield the lines of a file of requirements that name what patches the official package."""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        named = line.partition("#")[0].lower().replace("_", "-")
        for found in _REQUIRED.finditer(named):
            yield _instrumented(number, found[1])


def _of_instrumentor(node: ast.Import | ast.ImportFrom) -> Iterator[Note]:
    """Yield what an import loads of the instrumentors, or of a module below one."""
    if isinstance(node, ast.Import):
        paths = [each.name for each in node.names]
    else:
        package = "" if node.level else node.module or ""
        paths = [f"{package}.{each.name}" for each in node.names]
    for module, name in INSTRUMENTORS.items():
        if any(f"{path}.".startswith(f"{module}.") for path in paths):
            yield _instrumented(node.lineno, name)


def _instrumented(line: int, name: str) -> Note:
    return Note(
        line,
        f"{name} patches claude_agent_sdk, and would record nothing of a program that imports"
        " steersman.compat: leave the imports as they are, and call steersman.compat.install()"
        " before them",
    )


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
    elif not PATH.match(text) or not _is_there(text):
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


def _is_there(path: str) -> bool:
    """Whether a string is the path of a module or a name of the package, and no other name."""
    names = path.rstrip(".").split(".")[1:]
    if any(each.startswith("_") for each in names) or names[:1] == ["query"]:
        # What is private there has no counterpart here to look at.
        return True
    found: object = steersman.compat
    for name in names:
        found = getattr(found, RENAMED.get(name, name), None)
    return found is not None


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
