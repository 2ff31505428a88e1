"""Loads the script of a scripted CLI: by module and name, from a Python file, or from JSON."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import UsageError
from steersman.testing.script import Answer, Scene, Script, Step
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.testing.scripted.script_json import script_from_json

Playable = ScriptedCLI | Script | Step | Scene | list[Answer | Scene]
"""What a place may hold."""

PLACES = '"module:name", "path/to/file.py:name" or "path/to/steps.json"'


def anchored(place: str) -> str:
    """Return `place` with an absolute path, for another working directory. Raises `UsageError`."""
    path, colon, name = place.rpartition(":")
    if place.endswith(".json"):
        return str(Path(place).absolute())
    if not colon or not path or not name:
        raise UsageError("script", place, PLACES)
    return f"{Path(path).absolute()}:{name}" if path.endswith(".py") else place


def load(place: str) -> ScriptedCLI:
    """Return the scripted CLI at `place`.

    The place holds a script, steps, a `ScriptedCLI`, or a function that returns one of those.
    Raises `UsageError`.
    """
    if place.endswith(".json"):
        found = _json.loads(_bytes_of(place))
        strict = isinstance(found, dict) and bool(cast("JsonDict", found).get("strict"))
        steps = cast("JsonDict", found)["steps"] if isinstance(found, dict) else found
        return ScriptedCLI(script_from_json(steps, strict=strict))
    where, _, name = place.rpartition(":")
    module = _module_in(where) if where.endswith(".py") else _module_named(where)
    try:
        named = reduce(getattr, name.split("."), cast("Any", module))
    except AttributeError as error:
        raise UsageError("script", place, f"{PLACES} ({error})") from None
    return _cli_of(_called(named), place)


def rewound(script: Script) -> Script:
    """Return a copy of the script in which no step is used."""
    fresh = Script(*script.steps, strict=script.strict)
    for branch in script.branches:
        fresh.branch(branch.match, *branch.steps)
    return fresh


def _cli_of(found: Any, place: str) -> ScriptedCLI:
    match found:
        case ScriptedCLI():
            return found
        case Script():
            return ScriptedCLI(found)
        case Step() | Scene():
            return ScriptedCLI(Script(found, strict=True))
        case list() | tuple():
            return ScriptedCLI(Script(*cast("list[Any]", found), strict=True))
        case _:
            raise UsageError(
                "script", place, "the place of a Script, steps, a ScriptedCLI, or a function"
            )


def _called(found: Any) -> Any:
    return cast("Callable[[], Any]", found)() if callable(found) else found


def _module_named(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError("script", name, f"a module that can be imported ({error})") from error


def _module_in(path: str) -> ModuleType:
    name = f"steersman_script_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise UsageError("script", path, "a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module by its name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError("script", path, f"a file that can be read ({error.strerror})") from None
