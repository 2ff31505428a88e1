"""What is loaded when, and that what is loaded late looks as if it had always been there."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import steersman

pytestmark = pytest.mark.process

SOURCE = Path(steersman.__file__).parent

FRONT_DOOR = {"steersman", "steersman._lazy"}

FRONT_DESK = FRONT_DOOR | {
    "steersman._json",
    "steersman._tool_names",
    "steersman._prompt_content",
    "steersman.agent",
    "steersman.errors",
    "steersman.options",
    "steersman.options.checks",
    "steersman.options.conflicts",
    "steersman.options.fields",
    "steersman.options.forms",
    "steersman.options.limits",
    "steersman.options.own_flags",
    "steersman.options.servers",
    "steersman.options.table",
    "steersman.options.words",
    "steersman.transports",
    "steersman.transports.at_exit",
}
"""What it takes to say `steersman.Agent`; think twice before you add to it."""

SLOW = {
    "difflib",
    "email",
    "hashlib",
    "http",
    "importlib.metadata",
    "json",
    "pathlib",
    "random",
    "secrets",
    "tempfile",
    "urllib.parse",
    "uuid",
}
"""Of the standard library, and not loaded by asyncio or msgspec anyway."""

NOT_FOR_EVERY_SESSION = {
    "steersman.inbox",
    "steersman.journal.blocks",
    "steersman.journal.files",
    "steersman.journal.partial_json",
    "steersman.journal.replaying",
    "steersman.messages.builtin",
    "steersman.messages.streaming",
    "steersman.observe",
    "steersman.options.agents",
    "steersman.options.plugins",
    "steersman.permissions.policy",
    "steersman.permissions.rules",
    "steersman.skills",
    "steersman.stores",
    "steersman.testing",
    "steersman.tools",
    "steersman.transports.command",
    "steersman.transports.memory",
    "steersman.transports.replay",
}


def loaded_by(*statements: str) -> set[str]:
    """The modules that a fresh interpreter has after `statements`, and had not before."""
    program = "\n".join(
        [
            "import sys, asyncio, msgspec, msgspec.json",
            "before = set(sys.modules)",
            *statements,
            "loaded = sorted(set(sys.modules) - before)",
            "import json",
            "print(json.dumps(loaded))",
        ]
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SOURCE.parent), "HOME": os.devnull},
        capture_output=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(run.stdout))


def ours(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.split(".")[0] == "steersman"}


def test_the_front_door_loads_itself_alone() -> None:
    assert ours(loaded_by("import steersman")) == FRONT_DOOR


def test_the_front_desk_loads_only_what_it_takes_to_say_what_one_wants() -> None:
    loaded = loaded_by("import steersman", "steersman.Agent")

    assert ours(loaded) == FRONT_DESK
    assert loaded & SLOW == set()


def test_a_plain_session_loads_none_of_the_rooms_that_it_does_not_enter() -> None:
    loaded = loaded_by(
        "import steersman", "steersman.Agent(cli_path=sys.executable, revive=False).session()"
    )

    assert loaded & NOT_FOR_EVERY_SESSION == set()


@dataclass(frozen=True)
class Door:
    """A module that loads its names late, as it is written."""

    name: str
    tree: ast.Module

    @property
    def typed(self) -> dict[str, set[str]]:
        """What type checkers are told: the names by file, `*` for all of it."""
        block = next(each for each in self.tree.body if isinstance(each, ast.If))
        found: dict[str, set[str]] = {}
        for each in block.body:
            if isinstance(each, ast.ImportFrom):
                found.setdefault(str(each.module), set()).update(name.name for name in each.names)
        return found


def doors() -> list[Door]:
    found: list[Door] = []
    for path in sorted(SOURCE.rglob("__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if "from steersman._lazy import" in ast.unparse(tree):
            name = ".".join(("steersman", *path.parent.relative_to(SOURCE).parts))
            found.append(Door(name, tree))
    return found


DOORS = {door.name: door for door in doors()}
each_door = pytest.mark.parametrize("name", sorted(DOORS))


def test_the_large_rooms_are_loaded_late() -> None:
    assert set(DOORS) >= {
        "steersman",
        "steersman.options",
        "steersman.permissions",
        "steersman.testing",
        "steersman.tools",
    }


NOT_IN_A_STAR = {"steersman.compat": {"install"}}
"""Names that a star import does not give: here it gives those of the official package."""


@each_door
def test_every_name_that_a_type_checker_sees_is_there_and_no_other(name: str) -> None:
    module = importlib.import_module(name)
    homes = {each: importlib.import_module(each) for each in DOORS[name].typed}

    seen = {
        each: getattr(homes[home], each)
        for home, names in DOORS[name].typed.items()
        for each in (homes[home].__all__ if names == {"*"} else names)
    }

    # A constant of the module's own is imported from nowhere.
    given = {each: getattr(module, each) for each in module.__all__ if each != "__version__"}
    # A file that was loaded by itself hides the thing of the same name in it.
    files = {each for each in given if isinstance(given[each], ModuleType)}
    seen = {each: seen[each] for each in set(seen) - NOT_IN_A_STAR.get(name, set())}
    assert set(given) == set(seen)
    assert {each: given[each] for each in set(given) - files} == {
        each: seen[each] for each in set(seen) - files
    }
    assert files <= {"executable"}


@each_door
def test_what_is_not_loaded_yet_is_listed_and_given_all_the_same(name: str) -> None:
    program = (
        f"import {name} as room",
        "listed = set(dir(room)) >= set(room.__all__)",
        f"given = {{}}; exec('from {name} import *', given)",
        "assert listed and set(given) >= set(room.__all__), room",
    )

    assert name in loaded_by(*program)


@each_door
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    module = importlib.import_module(name)

    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Agnet'"):
        getattr(module, "Agnet")  # noqa: B009 - a type checker knows better


def test_a_file_of_a_room_is_had_by_its_own_name_alone() -> None:
    loaded = loaded_by("import steersman.options", "steersman.options.limits.Caps")

    assert "steersman.options.limits" in loaded
    assert "steersman.options.plugins" not in loaded


def test_values_from_rooms_that_are_loaded_late_can_be_pickled() -> None:
    program = (
        "import pickle",
        "from steersman import Allow, Options",
        "kept = pickle.dumps((Allow(), Options(model='opus').limits))",
        "for name in [name for name in sys.modules if name.startswith('steersman')]:",
        "    del sys.modules[name]",
        "allow, limits = pickle.loads(kept)",
        "import steersman.permissions",
        "assert type(allow) is steersman.permissions.Allow",
    )

    assert "steersman.permissions.decisions" in loaded_by(*program)
