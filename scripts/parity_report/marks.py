"""What the code of the tests touches, one file at a time.

Turns syntax into marks. A mark is a string for something that code touches:

    steersman.messages.system.Status    a class or function of ours, under any imported name
    each:steersman.messages.User        a member of a table or union that is iterated over
    name:steersman._launch.plan.ROWS    anything of ours, by the path it was imported from
    option:max_turns                    an option, passed to something that takes options
    table option:max_turns              an option in a table, which counts if the table is unpacked
    .set_model                          an attribute of anything
    field:steersman.Allow.message       a keyword of a class of ours
    text:system/status                  a string literal
    test:tests/live/test_x.py::test_y   the test itself, for entries that name it by hand

Comments, docstrings and annotations touch nothing.
"""

from __future__ import annotations

import ast
import dataclasses
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TypeGuard, cast, get_args

from steersman.options import Options

__all__ = [
    "TAKE_OPTIONS",
    "UNPACKS",
    "Module",
    "mark_of",
    "names_in",
    "passes_options_on",
    "union_members",
]

NO_EVIDENCE = ("tests/house/", "tests/samples/")
"""Folders whose tests do not count: rules that read everything, and samples."""

OPTIONS = frozenset(each.name for each in dataclasses.fields(Options))
TAKE_OPTIONS = frozenset({"Agent", "Options", "query", "replace", "run", "session", "start"})
ITERATING = frozenset({"get_args", "items", "list", "parametrize", "sorted", "values"})
UNPACKS = "unpacks options"
"""The mark of code that unpacks a mapping into something that takes options."""

NOT_RUN = frozenset({"skip", "xfail"})
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of tests."""

    path: str
    tree: ast.Module
    imports: dict[str, str] = field(init=False, default_factory=dict[str, str])
    """The dotted name of each imported name."""
    defined: dict[str, list[ast.stmt]] = field(
        init=False, default_factory=dict[str, list[ast.stmt]]
    )

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports.update(_imported(node))
        for statement in self.tree.body:
            for name in _defined_by(statement):
                self.defined.setdefault(name, []).append(statement)

    def tests(self) -> Iterator[Function]:
        """Yield the test functions that pytest runs."""
        functions = (each for each in self.tree.body if isinstance(each, Function))
        for each in functions:
            is_run = NOT_RUN.isdisjoint(_markers(each.decorator_list))
            if each.name.startswith("test_") and is_run:
                yield each

    @property
    def is_evidence(self) -> bool:
        """Whether a test here exercises what it touches; if not, entries can still name it."""
        return not self.path.startswith(NO_EVIDENCE)

    def is_live(self, function: Function) -> bool:
        """Return whether a test runs the stock CLI."""
        everywhere = [
            each.value
            for each in self.defined.get("pytestmark", [])
            if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None
        ]
        is_marked = "live" in _markers([*function.decorator_list, *everywhere])
        return is_marked or self.path.startswith("tests/live/")

    def marks(self, statement: ast.stmt, takers: frozenset[str]) -> Iterator[str]:
        """Yield the marks of the code of one definition."""
        for node in _code_of(statement):
            match node:
                case ast.Name() | ast.Attribute():
                    yield from self._named(node)
                case ast.Call():
                    yield from self._called(node, takers)
                case ast.For(iter=table) | ast.comprehension(iter=table):
                    yield from self._iterated([table] if isinstance(table, ast.Name) else [])
                    yield from _rows_in(table)
                case ast.Assign(value=table) | ast.AnnAssign(value=ast.expr() as table):
                    yield from _rows_in(table)
                case ast.Constant(value=str() as text):
                    yield f"text:{text}"
                    yield from (f"text:{name}" for name in VARIABLE.findall(text))
                case _:
                    pass

    def _named(self, node: ast.Name | ast.Attribute) -> Iterator[str]:
        if isinstance(node, ast.Attribute):
            yield f".{node.attr}"
        dotted = self._dotted(node)
        if dotted.startswith("steersman."):
            yield f"name:{dotted}"
            yield from _marks_of_dotted(dotted)

    def _called(self, node: ast.Call, takers: frozenset[str]) -> Iterator[str]:
        name = _last_name(node.func)
        dotted = self._dotted(node.func)
        is_foreign = dotted != "" and not dotted.startswith(("steersman.", "tests."))
        if name in takers and (not is_foreign or name == "replace"):
            for each in node.keywords:
                yield from [f"option:{each.arg}"] if each.arg else _options_in(each.value)
                yield from [] if each.arg else [UNPACKS]
        thing = _resolved(dotted)
        if isinstance(thing, type):
            yield from (f"field:{mark_of(thing)}.{each.arg}" for each in node.keywords)
        if name == "parametrize":
            yield from _rows_in(node)
        if name in ITERATING:
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else node
            yield from self._iterated([receiver, *node.args])

    def _iterated(self, nodes: Iterable[ast.expr]) -> Iterator[str]:
        """Yield a mark for each class in the unions and tables that code iterates over."""
        parts = [part for node in nodes for part in ast.walk(node)]
        single = [id(part.value) for part in parts if isinstance(part, ast.Subscript)]
        for part in parts:
            members = [] if id(part) in single else _members(_resolved(self._dotted(part)))
            yield from (f"each:{mark_of(member)}" for member in members)

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self._dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""


def mark_of(thing: object) -> str:
    """Return the mark of a class or function."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


def union_members(union: object) -> list[type]:
    """Return the classes of a union."""
    return [each for each in get_args(union) if isinstance(each, type)]


@cache
def _resolved(dotted: str) -> object:
    if not dotted.startswith("steersman."):
        return None
    try:
        return pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return None


def _marks_of_dotted(dotted: str) -> list[str]:
    thing = _resolved(dotted)
    is_named = hasattr(thing, "__qualname__") and not isinstance(thing, ModuleType)
    return [mark_of(thing)] if is_named else []


def _members(thing: object) -> list[type]:
    """Return the classes in a union, in the values of a mapping, or in a sequence."""
    if isinstance(thing, Mapping):
        thing = tuple(cast("Mapping[object, object]", thing).values())
    if isinstance(thing, list | tuple | set | frozenset):
        things = cast("Iterable[object]", thing)
        return [each for each in things if isinstance(each, type)]
    return union_members(thing)


def _options_in(*tables: ast.expr) -> Iterator[str]:
    """Yield marks for the options in tables: keys of mappings, or first elements of rows."""
    for table in tables:
        match table:
            case ast.Dict(keys=keys, values=values):
                names = {str(each.value) for each in keys if isinstance(each, ast.Constant)}
                unpacked = [each for key, each in zip(keys, values, strict=True) if key is None]
                if names <= OPTIONS:
                    yield from (f"option:{each}" for each in names)
                # Other keys are labels.
                yield from _options_in(*(unpacked if names <= OPTIONS else values))
            case ast.List(elts=rows) | ast.Tuple(elts=rows) | ast.Set(elts=rows):
                firsts = [row.elts[0] for row in rows if isinstance(row, ast.Tuple) and row.elts]
                yield from _option_marks(firsts)
                yield from _options_in(*rows)
            case ast.Call(func=function, args=given, keywords=named):
                yield from _option_marks(given[:1] if _last_name(function) == "param" else [])
                owner = [function.value] if isinstance(function, ast.Attribute) else []
                yield from _options_in(*owner, *given, *(each.value for each in named))
            case _:
                pass


def _rows_in(table: ast.expr) -> Iterator[str]:
    """Yield marks for options in a table that may not be passed to anything."""
    return (f"table {mark}" for mark in _options_in(table))


def _option_marks(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield f"option:{node.value}"


def passes_options_on(node: ast.AST) -> TypeGuard[Function]:
    """Return whether a function, or a function inside it, takes `**options`."""
    if not isinstance(node, Function):
        return False
    inside = [each for each in ast.walk(node) if isinstance(each, Function)]
    return "options" in [each.args.kwarg.arg for each in inside if each.args.kwarg is not None]


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(node, ast.ImportFrom):
        return {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {
        each.asname or each.name.partition(".")[0]: (
            each.name if each.asname else each.name.partition(".")[0]
        )
        for each in node.names
    }


def _defined_by(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _markers(nodes: Iterable[ast.expr]) -> set[str]:
    return {
        part.attr for node in nodes for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def names_in(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement reads, and its parameters, which may be fixtures."""
    for node in _code_of(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node below `node`, except annotations and docstrings."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        silent = _annotation_of(found)
        for child in ast.iter_child_nodes(found):
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if child is not silent and not is_docstring:
                waiting.append(child)


def _annotation_of(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.arg | ast.AnnAssign):
        return node.annotation
    return node.returns if isinstance(node, Function) else None
