"""Loads the script of a scripted CLI: by module and name, from a Python file, or from JSON.

In JSON, a script is an array of steps. A step is a part, `{"say": "Done."}`, an array of parts, or
`{"step": [...], "stop_reason": ..., "usage": {...}}`; `{"when": "text", "steps": [...]}` is a scene
and `{"branch": "text", "steps": [...]}` a branch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject, is_array, is_object
from steersman.errors import UsageError
from steersman.testing.script import (
    Answer,
    Cut,
    Fail,
    Part,
    Scene,
    Script,
    Stall,
    Step,
    Text,
    Thinking,
    ToolUse,
    Usage,
    chunked,
)
from steersman.testing.scripted.cli import ScriptedCLI

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


FORMS = "steps such as {'say': 'Done.'}, arrays of them, or {'when': 'text', 'steps': [...]}"


def script_to_json(script: Script) -> list[Json]:
    """Return a script as JSON. Raises `UsageError` for a function, which JSON cannot hold."""
    scenes = [
        _scene("when", each) if isinstance(each, Scene) else _step(each) for each in script.steps
    ]
    return [*scenes, *(_scene("branch", each) for each in script.branches)]


def script_from_json(found: Json, *, strict: bool) -> Script:
    """Return the script that `script_to_json` wrote. Raises `UsageError`."""
    if not is_array(found):
        raise UsageError("script", found, f"an array of {FORMS}")
    branches = [each for each in found if is_object(each) and "branch" in each]
    steps = [_read(each) for each in found if each not in branches]
    script = Script(*steps, strict=strict)
    for each in branches:
        script.branch(str(each["branch"]), *_read_steps(each))
    return script


# Writing


def _scene(kind: str, scene: Scene) -> JsonDict:
    if not isinstance(scene.match, str):
        raise _unwritable(scene.match)
    return {kind: scene.match, "steps": [_step(each) for each in scene.steps]}


def _step(answer: Answer) -> Json:
    if not isinstance(answer, Step):
        raise _unwritable(answer)
    parts = [_part(each) for each in answer.parts]
    more: JsonDict = {}
    if answer.usage is not None:
        more["usage"] = asdict(answer.usage)
    if answer.stop_reason is not None:
        more["stop_reason"] = answer.stop_reason
    return {"step": parts, **more} if more else parts


def _part(part: Part) -> JsonDict:
    match part:
        case Text(chunks):
            return {"say": "".join(chunks), "chunks": list(chunks)}
        case Thinking(text, signature):
            return {"think": text, "signature": signature}
        case ToolUse(name, given, id_):
            return {"call": name, "input": given, "id": id_}
        case Fail():
            return {"fail": part.status, **{name: getattr(part, name) for name in FAILURE}}
        case Stall(seconds):
            return {"stall": seconds}
        case Cut():
            return {"cut": True}


FAILURE = ("message", "retry_after", "once")


def _unwritable(function: Callable[..., object]) -> UsageError:
    return UsageError(
        "script",
        function,
        "steps without functions",
        hint='give a script with functions by its place: "module:name" or "file.py:name"',
    )


# Reading


def _read(found: Json) -> Answer | Scene:
    if is_object(found) and "when" in found:
        return Scene(str(found["when"]), tuple(_read_steps(found)))
    return _read_step(found)


def _read_steps(found: JsonObject) -> Iterable[Step]:
    return [_read_step(each) for each in found.get("steps", ())]


def _read_step(found: Json) -> Step:
    if is_array(found):
        return Step(tuple(map(_read_part, found)))
    if is_object(found) and "step" in found:
        parts = cast("list[Json]", found["step"])
        usage = Usage(**found["usage"]) if found.get("usage") else None
        return Step(tuple(map(_read_part, parts)), usage, found.get("stop_reason"))
    return Step((_read_part(found),))


def _read_part(found: Json) -> Part:
    match found:
        case {"say": str(text), **more}:
            return Text(chunked(text, cast("Json", more.get("chunks"))))
        case {"think": str(text), **more}:
            return Thinking(text, str(more.get("signature", "scripted-signature")))
        case {"call": str(name), **more}:
            return ToolUse(
                name, cast("Json", more.get("input") or {}), cast("Json", more.get("id"))
            )
        case {"fail": int(status), **more}:
            given: JsonDict = {"message": "scripted failure"}
            return Fail(status, **{**given, **cast("JsonDict", more)})
        case {"stall": seconds}:
            return Stall(None if seconds is None else float(cast("float", seconds)))
        case {"cut": True}:
            return Cut()
        case _:
            raise UsageError("script", found, FORMS)
