"""Does this program run inside another Claude Code."""

from __future__ import annotations

from collections.abc import Iterable

from steersman._launch.environment import MARKS
from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, skipped, warned

INSIDE = ("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID")


async def _run(machine: Machine) -> Iterable[Finding]:
    passed = sorted(set(machine.options.env) & (MARKS - {"CLAUDE_CODE_ENTRYPOINT"}))
    if passed:
        return failed(
            f"env= passes {passed[0]}, so the CLI takes itself for a child of another one",
            f"leave {passed[0]} out of env=",
        )
    if not any(machine.environ.get(name) for name in INSIDE):
        return skipped("not inside another Claude Code")
    return warned(
        "this runs inside another Claude Code, whose variables sessions do not inherit",
        "if a session behaves oddly, start the program in a terminal of its own",
    )


NESTING = Check("nested", _run)
