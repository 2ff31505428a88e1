"""Plays scenes, a few at a time, and runs their checks. Every scene has a time limit."""

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
"""Seconds to wait for anything that is expected; long enough for a busy machine."""

SCENE_LIMIT = 90.0

OnDone = Callable[[Scene[Any]], None]
"""Called after each scene."""


async def play(
    scenes: Sequence[Scene[Any]],
    program: str,
    *,
    jobs: int = 2,
    patience: float = PATIENCE,
    on_done: OnDone = lambda _: None,
) -> JsonDict:
    """Return the observations by check name. Raises `LaunchError` if `program` cannot be run."""
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
        except Exception as error:  # noqa: BLE001 - a broken CLI may cause any error
            return dict.fromkeys((check.name for check in scene.checks), _fault(error))
        return {check.name: _look(check, seen) for check in scene.checks}


def _look(check: Check[Any], seen: Json) -> Json:
    try:
        return check.look(seen)
    except Exception as error:  # noqa: BLE001 - the check may look for something that is missing
        return _fault(error)


def _fault(error: Exception) -> dict[str, str]:
    return {"fault": f"{type(error).__name__}: {error}"}


async def version_of(program: str, patience: float = PATIENCE) -> str:
    """Return the version that a CLI prints. Raises `LaunchError`, or `StartupError` without one."""
    with CliSandbox() as box:
        async with Stage(program, box, patience).cli(argv=["--version"]) as cli:
            await cli.wait_exited()
    found = re.search(r"\d+\.\d+\.\d+", "\n".join(cli.noise))
    if found is None:
        raise StartupError(
            f"{program} does not print its version",
            hint="pass the path of a Claude Code CLI with --cli PATH",
        )
    return found[0]
