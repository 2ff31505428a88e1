"""A session is put together from parts, not cut over files by inheritance."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from steersman._session.parts import Parts

ROOM = Path(__file__).parents[2] / "src/steersman/_session"


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ROOM.rglob("*.py")):
        yield str(file.relative_to(ROOM)), ast.parse(file.read_text())


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
