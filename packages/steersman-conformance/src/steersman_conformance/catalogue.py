"""The list of all scenes, and the choice of checks by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from steersman.errors import UsageError
from steersman_conformance.checks import Scene
from steersman_conformance.scenes import (
    cancelling,
    control,
    ends,
    failures,
    handshake,
    hooks,
    names,
    permissions,
    queue,
    sessions,
    turns,
)

__all__ = ["ALL", "chosen"]

ALL: tuple[Scene[Any], ...] = (
    # The slowest first, so that no single scene runs alone at the end.
    *sessions.SCENES,
    *failures.SCENES,
    *hooks.SCENES,
    *turns.SCENES,
    *handshake.SCENES,
    *queue.SCENES,
    *permissions.SCENES,
    *names.SCENES,
    *cancelling.SCENES,
    *control.SCENES,
    *ends.SCENES,
)


def chosen(names: Sequence[str], scenes: Iterable[Scene[Any]] = ALL) -> list[Scene[Any]]:
    """Return the scenes with the checks that a name matches; all scenes if `names` is empty.

    A name is that of a check or of a scene, or a pattern such as `*-interrupt-*`. Raises
    `UsageError` for a name that matches nothing.
    """
    scenes = list(scenes)
    for name in names:
        if not any(
            _is_meant(check, scene.name, [name]) for scene in scenes for check in scene.names
        ):
            raise UsageError("only", name, "the name of a check or of a scene, or a pattern of one")
    if not names:
        return scenes
    picked = [
        dataclasses.replace(
            scene, checks=[each for each in scene.checks if _is_meant(each.name, scene.name, names)]
        )
        for scene in scenes
    ]
    return [scene for scene in picked if scene.checks]


def _is_meant(check: str, scene: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(check, name) or fnmatchcase(scene, name) for name in names)
