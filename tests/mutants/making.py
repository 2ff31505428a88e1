"""The mutants of a source file: small changes, one at a time, each of which a test should notice.

The changes are those of mutmut's operators, and some of our own. Left out is what no test can
notice (annotations, imports, docstrings, `__all__`), what the type checkers hold (decorators,
`Literal`, that a class is frozen, the types of declared defaults), and prose: a text with a space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

TYPING = ("cast", "TypeVar", "ParamSpec", "TypeAliasType")
CHECKED = ("len", "isinstance", "field")
"""Calls for which any other argument is an error at once, or of types."""
DECLARED = ("frozen", "kw_only", "slots", "weakref", "gc", "eq")
SKIPPED = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.TypeAlias)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    file: str
    """Below the root of the repository."""
    line: int
    code: str
    """The line of source, without indentation."""
    before: str
    after: str
    first: int
    last: int
    """Lines of the statement, or of its header."""
    function: str
    """Qualified name of the outermost function around it; empty outside of functions."""
    module: Any
    node: Any
    changed: Any

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names the mutant even when lines move."""
        return (self.file, self.code, self.before, self.after)

    def source(self) -> str:
        """Return the whole file with the change."""
        return str(self.module.deep_replace(self.node, self.changed).code)


def mutants_of(root: Path, path: Path) -> list[Mutant]:
    """Return every mutant of a file, in the order of its lines."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text()), unsafe_skip_copy=True)
    module = wrapper.module
    places = wrapper.resolve(PositionProvider)
    lines = path.read_text().split("\n")
    file = path.relative_to(root).as_posix()
    found: dict[tuple[int, str, str], Mutant] = {}
    for place in _places(module, places, _Place(1, 1, "", "")):
        node = place.node
        for changed in _changes(node, is_inside=bool(place.function)):
            line = places[node].start.line if node in places else place.first
            before, after = _told(module, node, changed)
            key = (line, before, after)
            if before == after or key in found:
                # The same change twice on a line: the second is told by its number.
                if before == after:
                    continue
                before = f"{before} #{sum(k[0] == line and k[1:] == key[1:] for k in found) + 1}"
                key = (line, f"{before}@{len(found)}", after)
            found[key] = Mutant(
                file, line, lines[line - 1].strip(), before, after,
                place.first, place.last, place.function, module, node, changed,
            )  # fmt: skip
    return sorted(found.values(), key=lambda each: each.line)


@dataclass(frozen=True, slots=True)
class _Place:
    first: int
    last: int
    function: str
    scope: str
    node: Any = None


def _places(node: Any, places: Any, around: _Place) -> Iterator[_Place]:
    """Yield the nodes that may be changed, each with its statement and its function."""
    if _is_left_out(node):
        return
    first, last, function, scope = around.first, around.last, around.function, around.scope
    if isinstance(node, cst.BaseStatement | cst.ExceptHandler | cst.MatchCase):
        first = places[node].start.line
        body = getattr(node, "body", None)
        is_block = isinstance(body, cst.BaseSuite)
        last = places[body].start.line if is_block else places[node].end.line
        last = max(first, last - is_block)
    yield _Place(first, last, function, scope, node)
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        scope = f"{scope}.{node.name.value}" if scope else node.name.value
        if isinstance(node, cst.FunctionDef):
            function = function or scope
    inner = _Place(first, last, function, scope)
    for child in node.children:
        yield from _places(child, places, inner)


def _is_left_out(node: Any) -> bool:
    match node:
        case cst.Call(func=cst.Name(value=name)):
            return name in TYPING
        case cst.Arg(keyword=cst.Name(value=name)):
            return name in DECLARED
        case cst.FormattedString():
            return all(isinstance(part, cst.FormattedStringText) for part in node.parts)
        case (
            cst.Expr(value=cst.BaseString())
            | cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="__all__"))])
            | cst.AugAssign(target=cst.Name(value="__all__"))
            | cst.If(test=cst.Name(value="TYPE_CHECKING"))
            | cst.Subscript(value=cst.Name(value="Literal"))
        ):
            return True
        case _:
            return isinstance(node, SKIPPED)


def _changes(node: Any, *, is_inside: bool) -> Iterator[Any]:
    """Yield the replacements of a node, one mutant each."""
    if isinstance(node, cst.SimpleString):
        yield from _changed_string(node)
        return
    is_type = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr)
    if not is_inside and (is_type or isinstance(node, cst.Assign | cst.AnnAssign)):
        return  # a union of types, or a value that is changed from within
    if isinstance(node, cst.Call) and getattr(node.func, "value", None) in CHECKED:
        return
    if isinstance(node, cst.Assign | cst.AnnAssign) and getattr(node.value, "value", "") == "False":
        return  # None is as false, and the type checkers hold the difference
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            yield from operator(node)
    if is_inside:
        yield from _removals(node)


def _changed_string(node: Any) -> Iterator[Any]:
    if " " not in node.value and not node.quote.startswith(('"""', "'''")):
        at = len(node.prefix) + 1
        marked = f"{node.value[:at]}XX{node.value[at:]}"
        yield node.with_changes(value=marked)


def _removals(node: Any) -> Iterator[Any]:
    """Yield our own changes: a statement left out, a condition turned round, a result dropped."""
    match node:
        case cst.Expr(value=cst.Call() | cst.Await() | cst.Yield()) | cst.Raise() | cst.Del():
            yield cst.Pass()
        case cst.If(test=test) | cst.While(test=test) if not isinstance(test, cst.Comparison):
            turned = cst.parse_expression(f"not ({_text(cst.Module([]), test)})")
            yield node.with_changes(test=turned)
        case cst.Return(value=value) if value is not None:
            if not (isinstance(value, cst.Name) and value.value in {"None", "True", "False"}):
                yield node.with_changes(value=cst.Name("None"))


def _told(module: Any, node: Any, changed: Any) -> tuple[str, str]:
    if isinstance(node, cst.Match):
        (gone,) = (each for each in node.cases if each not in changed.cases)
        return f"case {_text(module, gone.pattern)}", ""
    return _text(module, node), _text(module, changed)


def _text(module: Any, node: Any) -> str:
    """Return the code of a node in one short line."""
    if isinstance(node, cst.If | cst.While):
        node = node.test
    return " ".join(str(module.code_for_node(node)).split())
