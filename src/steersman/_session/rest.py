"""Waits until a session is at rest: everything has finished, or background work takes too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from steersman._session.lifecycle import Lifecycle
from steersman._session.parts import Parts

log = logging.getLogger("steersman.session")

CEILING = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
"""The CLI's own variable: how long a one-shot run waits for background work between turns."""

DEFAULT = 600.0


def ceiling_of(env: Mapping[str, str]) -> float | None:
    """Return the seconds that `CEILING` allows; `None` is for ever."""
    given = env.get(CEILING, "").strip()
    if not (given.isascii() and given.isdigit()):
        return DEFAULT
    return int(given) / 1000 or None


async def wait_for_rest(parts: Parts, lifecycle: Lifecycle) -> None:
    """Return when nothing runs, or when only background work has run for `CEILING`."""
    ceiling = _ceiling(parts)
    loop = asyncio.get_running_loop()
    since: float | None = None
    """When the last turn ended, while none runs."""
    while not (lifecycle.is_at_rest or parts.status.phase.is_over):
        if ceiling is None or not _is_between_turns(parts, lifecycle):
            since = None
            await parts.journal.signal.wait()
            continue
        since = loop.time() if since is None else since
        left = since + ceiling - loop.time()
        if left <= 0:
            _report(parts, ceiling)
            return
        await _wait_at_most(parts, left)


async def _wait_at_most(parts: Parts, seconds: float) -> None:
    """Return at the next entry of the journal, or after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await parts.journal.signal.wait()
    except TimeoutError:
        return


def _is_between_turns(parts: Parts, lifecycle: Lifecycle) -> bool:
    """Whether only background work is left: no turn runs, and no prompt waits for one."""
    prompts = parts.prompts
    is_free = not (prompts.is_busy or prompts.queued or lifecycle.is_restarting)
    return is_free and parts.status.is_between_turns and parts.status.waiting is None


def _ceiling(parts: Parts) -> float | None:
    cli = parts.slot.running
    return DEFAULT if cli is None else ceiling_of(cli.link.env)


def _report(parts: Parts, ceiling: float) -> None:
    running = ", ".join(each.task_id for each in parts.prompts.totals.running_tasks) or "the CLI"
    what = f"background work is stopped: {running} still ran {ceiling:g} s after the last turn"
    log.warning("%s (%s)", what, CEILING)
    parts.journal.fault("finish", what)
