"""Plays scenes, a few at a time, and lets their checks look. Every scene ends in time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from steersman._json import Json, JsonDict
from steersman.errors import StartupError
from steersman.testing.sandbox import CliSandbox
from steersman_conformance.checks import Check, Scene
from steersman_conformance.stage import Stage

__all__ = ["PATIENCE", "OnDone", "play", "version_of"]

PATIENCE = 30.0
"""Seconds for anything that should happen at once; a busy machine needs some of them."""

SCENE_LIMIT = 90.0

OnDone = Callable[[Scene[Any]], None]
"""Told when a scene is over."""


async def play(
    scenes: Sequence[Scene[Any]],
    program: str,
    *,
    jobs: int = 2,
    patience: float = PATIENCE,
    on_done: OnDone = lambda _: None,
) -> JsonDict:
    """What each check observes, by its name. Raises `LaunchError` if `program` cannot be run."""
    turnstile = asyncio.Semaphore(jobs)

    async def in_turn(scene: Scene[Any]) -> JsonDict:
        async with turnstile:
            seen = await _play(scene, program, patience)
        on_done(scene)
        return seen

    async with asyncio.TaskGroup() as group:
        playing = [group.create_task(in_turn(scene)) for scene in scenes]
    return {name: observed for each in playing for name, observed in each.result().items()}


async def _play(scene: Scene[Any], program: str, patience: float) -> JsonDict:
    with CliSandbox() as box:
        try:
            async with asyncio.timeout(SCENE_LIMIT):
                seen = await scene.play(Stage(program, box, patience))
        except Exception as error:  # noqa: BLE001 - whatever a broken CLI makes of a scene
            return dict.fromkeys((check.name for check in scene.checks), _fault(error))
        return {check.name: _look(check, seen) for check in scene.checks}


def _look(check: Check[Any], seen: Json) -> Json:
    try:
        return check.look(seen)
    except Exception as error:  # noqa: BLE001 - it looked for something that is not there
        return _fault(error)


def _fault(error: Exception) -> dict[str, str]:
    return {"fault": f"{type(error).__name__}: {error}"}


async def version_of(program: str, patience: float = PATIENCE) -> str:
    """The version that a CLI claims to be. Raises `LaunchError`, or `StartupError` without one."""
    with CliSandbox() as box:
        async with Stage(program, box, patience).cli(argv=["--version"]) as cli:
            await cli.wait_exited()
    found = re.search(r"\d+\.\d+\.\d+", "\n".join(cli.noise))
    if found is None:
        raise StartupError(
            f"{program} does not tell its version",
            hint="name a Claude Code CLI with --cli PATH",
        )
    return found[0]
