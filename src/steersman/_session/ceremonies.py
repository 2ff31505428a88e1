"""The hooks on a session's own beginning and end, which the CLI does not call."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from steersman._session.hooking import Hooking
from steersman.hooks.events import SessionEnd, SessionStart
from steersman.hooks.openings import openings
from steersman.hooks.outputs import SessionStartOutput
from steersman.options import Options

__all__ = ["raise_end", "raise_start"]


async def raise_start(
    hooking: Hooking, options: Options, session_id: str
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
    return openings(await hooking.raise_own(event))


async def raise_end(hooking: Hooking, options: Options, session_id: str) -> None:
    """Call the hooks on `SessionEnd`, and end those that nobody waits for."""
    event = SessionEnd(session_id=session_id, cwd=str(options.cwd or ""), reason="other")
    with suppress(TimeoutError):
        async with asyncio.timeout(options.close_grace):
            await hooking.raise_own(event)
    hooking.cancel_all()
