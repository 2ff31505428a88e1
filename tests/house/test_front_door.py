"""`import steersman` gives a few names, cheaply."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import steersman

pytestmark = pytest.mark.process

HEAVY = {"pydantic", "mcp", "httpx", "anyio", "claude_agent_sdk", "http.server"}


def loaded_by(statement: str) -> set[str]:
    """Run `statement` in a fresh interpreter; gives the names of all modules it loaded."""
    program = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    source = str(Path(steersman.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": source},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(run.stdout))


def typed_names() -> dict[str, str]:
    """What the type checker is told: name to module."""
    tree = ast.parse(Path(steersman.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_the_front_door_has_at_most_forty_names() -> None:
    assert len(steersman.__all__) <= 40


def test_every_name_leads_to_the_thing_of_that_name() -> None:
    for name in steersman.__all__:
        home = importlib.import_module(typed_names()[name])
        assert getattr(steersman, name) is getattr(home, name)


def test_type_checker_and_interpreter_see_the_same_names() -> None:
    assert set(typed_names()) == set(steersman.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'steersman' has no attribute 'Agnet'"):
        _ = steersman.Agnet  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_import_loads_nothing_heavy() -> None:
    loaded = loaded_by("import steersman")

    assert loaded & (HEAVY | {"asyncio", "msgspec"}) == set()


@pytest.mark.parametrize("name", ["Agent", "query", "tool", "Hooks", "Options", "Assistant"])
def test_an_everyday_name_loads_nothing_heavy(name: str) -> None:
    assert loaded_by(f"from steersman import {name}") & HEAVY == set()
