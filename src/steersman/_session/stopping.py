"""Stopping a turn that nobody asked to stop: first by asking the CLI, then by force."""

from __future__ import annotations

import asyncio

from steersman._session.cli import CliSlot
from steersman._session.turn import Turn
from steersman.control.session import Interrupt
from steersman.errors import LimitReached, RequestError, Stalled

__all__ = ["stop"]


async def stop(
    slot: CliSlot, turns: list[Turn], why: Stalled | LimitReached, patience: float
) -> None:
    """Interrupt the CLI; kill it if `turns` have not settled after `patience` seconds."""
    life = slot.running
    if life is None or not life.link.is_open:
        return
    for turn in turns:
        turn.cause = turn.cause or why
    try:
        async with asyncio.timeout(patience):
            await life.link.call(Interrupt(), patience)
            for turn in turns:
                await turn.result()
    except (TimeoutError, RequestError):
        if slot.running is life and not life.link.exit_status.done():
            slot.kill(why)
