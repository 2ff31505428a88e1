"""Scripts ⇄ JSON, for a scripted CLI in a separate process. Pure.

A script is an array of steps. A step is a part, `{"say": "Done."}`, an array of parts, or
`{"step": [...], "stop_reason": ..., "usage": {...}}`; `{"when": "text", "steps": [...]}` is a scene
and `{"branch": "text", "steps": [...]}` a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import cast

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
