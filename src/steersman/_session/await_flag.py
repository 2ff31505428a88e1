"""Whether a CLI knows `--await-initialize`, with which a resumed CLI waits for our hooks.

Older CLIs refuse to start with the flag. They are started once more without it, and their program
is remembered, so that the next start does not try the flag.
"""

from __future__ import annotations

import os

from steersman._launch.plan import AWAIT_INITIALIZE, LaunchPlan, without_waiting
from steersman.errors import OptionRefused

Program = tuple[str, int, int]
"""The path, the size and the time of the last change; zeros for a program on another machine."""


class AwaitFlag:
    """Removes the flag for programs that have refused it."""

    def __init__(self) -> None:
        self._refused_by: set[Program] = set()

    def adapt(self, plan: LaunchPlan) -> LaunchPlan:
        """Return the plan without the flag if its program is known to refuse it."""
        if not self._refused_by or program_of(plan) not in self._refused_by:
            return plan
        return without_waiting(plan) or plan

    def without_flag(self, plan: LaunchPlan, error: OptionRefused) -> LaunchPlan | None:
        """Return the plan for another start after `error`; None if another option was refused."""
        if f"unknown option '{AWAIT_INITIALIZE}'" not in str(error):
            return None
        self._refused_by.add(program_of(plan))
        return without_waiting(plan)


def program_of(plan: LaunchPlan) -> Program:
    """Return what identifies the program that the plan runs."""
    path = str(plan.launch.argv[0])
    try:
        found = os.stat(path)  # noqa: PTH116 - `pathlib` is slow to load
    except OSError:
        return path, 0, 0
    return path, found.st_size, found.st_mtime_ns
