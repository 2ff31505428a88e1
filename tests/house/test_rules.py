"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.house.objects import all_objects_kept

ROOT = Path(__file__).parents[2]
LONGEST_FUNCTION = 60
FOR_EVER = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file and what Python reads in it."""

    path: Path
    tree: ast.Module

    def at(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def sources(*folders: str) -> list[Source]:
    return [source for folder in folders for source in sources_in(folder)]


@cache
def sources_in(folder: str) -> list[Source]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    with all_objects_kept():
        return [Source(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def defined(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def calls_outside_loops(node: ast.AST) -> Iterator[ast.Call]:
    """Every call but those in a `while`, which look again and again for something to happen."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.While):
            if isinstance(child, ast.Call):
                yield child
            yield from calls_outside_loops(child)


def waits_by_the_clock(call: ast.Call) -> bool:
    """Whether it is a nap of so many seconds; zero only yields, and an hour stands for ever."""
    if ast.unparse(call.func) not in ("time.sleep", "asyncio.sleep", "sleep"):
        return False
    seconds = [each.value for each in call.args if isinstance(each, ast.Constant)]
    return any(isinstance(each, int | float) and 0 < each < FOR_EVER for each in seconds)


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        source.at(function)
        for source in sources("src", "tests", "examples", "benchmarks")
        for function in defined(source.tree)
        if (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION
    ]

    assert long == []


def test_every_module_says_what_it_is_for() -> None:
    mute = [
        source.path.name
        for source in sources("src", "examples", "benchmarks")
        if ast.get_docstring(source.tree) is None
    ]

    assert mute == []


def test_tasks_begin_after_the_call_that_starts_them() -> None:
    """With `asyncio.eager_task_factory`, `create_task` runs the first step before it returns.

    What is then stored about the task overwrites what that step has done. `asyncio.Task(...)` is
    never eager. Two places are ready for both.
    """
    ready = {"requests/tasks.py", "scripted/turn.py"}
    found = [
        source.at(node)
        for source in sources("src")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr == "create_task"
        if "/".join(source.path.parts[-2:]) not in ready
    ]

    assert found == []


def test_no_test_replaces_what_it_tests() -> None:
    """The published packages of `real_clients` do, which is what is compared there."""
    suspects = {"mock", "mocker", "patch", "setattr", "setitem"}
    found = [
        source.at(node)
        for source in sources("tests")
        if "real_clients" not in source.path.parts
        for node in ast.walk(source.tree)
        if (isinstance(node, ast.Attribute) and node.attr in suspects)
        or (isinstance(node, ast.Name) and node.id in suspects - {"setattr"})
        or (isinstance(node, ast.ImportFrom) and "mock" in f"{node.module}")
    ]

    assert found == []


def test_no_test_waits_by_the_clock() -> None:
    """To look again and again, in a `while`, is fine; to hope that it is long enough is not."""
    found = [
        source.at(call)
        for source in sources("tests")
        for call in calls_outside_loops(source.tree)
        if waits_by_the_clock(call)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [
        ("asyncio.sleep(0)", False),
        ("asyncio.sleep(0.1)", True),
        ("asyncio.sleep(3600)", False),
        ("while not done: time.sleep(0.01)", False),
    ],
)
def test_the_clock_rule_tells_polling_from_hoping(line: str, *, is_wrong: bool) -> None:
    found = [call for call in calls_outside_loops(ast.parse(line)) if waits_by_the_clock(call)]

    assert bool(found) is is_wrong


def test_every_variation_that_make_test_leaves_out_is_one_of_a_test() -> None:
    lines = (ROOT / "tests/variations.txt").read_text(encoding="utf-8").splitlines()
    named = [line.partition("::") for line in lines if line and not line.startswith("#")]

    gone = [
        f"{path}::{test}"
        for path, _, test in named
        if f"def {test.partition('[')[0]}(" not in (ROOT / "tests" / path).read_text("utf-8")
    ]

    assert gone == []
    assert len(named) > 50
