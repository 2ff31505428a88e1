"""The hooks on a session's own beginning and end, which the CLI does not call."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from steersman._session.requests.hooks import HookRunner
from steersman.hooks.events.sessions import SessionEnd, SessionStart
from steersman.hooks.openings import openings
from steersman.hooks.outputs import SessionStartOutput
from steersman.options import Options

__all__ = ["run_session_end", "run_session_start"]


async def run_session_start(
    hooking: HookRunner, options: Options, session_id: str
) -> list[SessionStartOutput]:
    """Call the hooks on `SessionStart`; gives what they add to the conversation."""
    source = "startup"
    if options.goes_on:
        source = "fork" if options.fork_session else "resume"
    event = SessionStart(
        session_id=session_id,
        cwd=str(options.cwd or ""),
        source=source,
        model=options.model,
        session_title=options.title,
    )
    return openings(await hooking.run_own(event))


async def run_session_end(hooking: HookRunner, options: Options, session_id: str) -> None:
    """Call the hooks on `SessionEnd`, and end those that nobody waits for."""
    event = SessionEnd(session_id=session_id, cwd=str(options.cwd or ""), reason="other")
    with suppress(TimeoutError):
        async with asyncio.timeout(options.close_grace):
            await hooking.run_own(event)
    hooking.cancel_all()
