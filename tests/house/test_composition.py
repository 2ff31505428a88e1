"""A session is put together from parts, not cut over files by inheritance."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from steersman._session.parts import Parts

SOURCE = Path(__file__).parents[2] / "src/steersman"
ROOMS = ("_session", "durable")

SET_LATER = {"on_remembered", "recheck", "_initialized"}
"""Of the policy hook, which the launch plan needs before there is a session: decision 4, rule 2."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(file for room in ROOMS for file in (SOURCE / room).rglob("*.py")):
        yield str(file.relative_to(SOURCE)), ast.parse(file.read_text())


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for file, tree in trees():
        yield from ((file, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_no_class_of_the_session_inherits_from_one_in_another_file() -> None:
    home = {node.name: file for file, node in classes()}

    inherited = [
        f"{file}: {node.name} inherits {ast.unparse(base)}"
        for file, node in classes()
        for base in node.bases
        if home.get(ast.unparse(base).split("[")[0], file) != file
    ]

    assert inherited == []


def test_no_part_is_missing_or_set_later() -> None:
    fields = dataclasses.fields(Parts)

    assert fields
    assert Parts.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert [each.name for each in fields if "None" in str(each.type)] == []
    assert [each.name for each in fields if each.default is not dataclasses.MISSING] == []


def assigned_in(tree: ast.AST) -> Iterator[tuple[ast.Attribute, str]]:
    """The attributes that are assigned, each with the type in the code, if it has one there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node.target, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            of_targets = [each for target in node.targets for each in ast.walk(target)]
            given = node.value.id if isinstance(node.value, ast.Name) else ""
            for each in of_targets:
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                    yield each, given


def calls_kept_by(init: ast.FunctionDef) -> Iterator[ast.Attribute]:
    """The attributes in which a constructor keeps what a part calls."""
    types = {each.arg: ast.unparse(each.annotation) for each in init.args.args if each.annotation}
    for attribute, given in assigned_in(init):
        if "Callable[" in types.get(given, given):
            yield attribute


def set_later(sources: Iterable[tuple[str, ast.Module]]) -> set[str]:
    """The names of what a part calls and is not given by its constructor."""
    trees = [tree for _, tree in sources]
    names, found = set[str](), set[str]()
    for owner in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(owner, ast.ClassDef):
            methods = [each for each in owner.body if isinstance(each, ast.FunctionDef)]
            init = [each for each in methods if each.name == "__init__"]
            own = {each.attr for method in init for each in calls_kept_by(method)}
            later = [method for method in methods if method not in init]
            names |= own
            found |= own & {each.attr for method in later for each, _ in assigned_in(method)}
    by_others = (each for tree in trees for each, _ in assigned_in(tree))
    return found | {
        each.attr for each in by_others if each.attr in names and ast.unparse(each.value) != "self"
    }


def test_what_a_part_calls_is_given_by_its_constructor() -> None:
    assert set_later(trees()) == SET_LATER


def test_a_call_that_is_set_later_is_seen() -> None:
    given = """
class Part:
    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self.was_shown: Callable[[Ask], bool] = no
        self._count = None

    def connect(self, report, count):
        self._report, self._count = report, count

def build(part, hook):
    part.was_shown = hook.requested
    part.open = True
"""

    assert set_later([("part.py", ast.parse(given))]) == {"was_shown", "_report"}


def test_no_attribute_is_looked_up_on_a_callers_object() -> None:
    looked_up = [
        f"{file}:{node.lineno} {ast.unparse(node)}"
        for file, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr"}
    ]

    # Payloads of asks, rows of limits and definitions of agents are our own classes.
    ours = ("getattr(ask.payload,", "getattr(caps,", "getattr(used,", "getattr(agent,")
    assert [each for each in looked_up if not each.split(" ", 1)[1].startswith(ours)] == []
