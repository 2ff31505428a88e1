"""From a plan to a CLI that has answered the handshake, or to an error that says why not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import TypeVar, cast

from steersman._launch.plan import MINIMUM_VERSION, LaunchPlan
from steersman._session.diagnosis import why_it_exited
from steersman._session.link import Link
from steersman.control.handshake import Initialized
from steersman.errors import (
    ChannelClosed,
    CliTooOld,
    LaunchError,
    RequestError,
    StartupError,
    StartupTimeout,
    SteersmanError,
)
from steersman.journal import Kind
from steersman.messages.turns import Result
from steersman.options import StartupLimits
from steersman.ports import Transport

__all__ = ["start"]

T = TypeVar("T")

REAPING = 10.0
"""How long a CLI that did not start may take to be gone; the transport's SIGKILL needs far less."""


async def start(
    link: Link, plan: LaunchPlan, transport: Transport, limits: StartupLimits
) -> Initialized:
    """Run the CLI and greet it. On any failure it is gone before the error is raised."""
    try:
        await _spawn(link, transport, limits.spawn)
        return await _greet(link, plan, limits)
    except BaseException:
        await _reap(link)
        raise


async def _spawn(link: Link, transport: Transport, limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await link.open(transport)
    except TimeoutError:
        raise _too_slow(link, "spawn", limit) from None
    except LaunchError as error:
        error.evidence = link.evidence("launch")
        raise
    except Exception as error:
        raise LaunchError(
            f"the transport failed: {error!r}", evidence=link.evidence("launch")
        ) from error


async def _greet(link: Link, plan: LaunchPlan, limits: StartupLimits) -> Initialized:
    request_id, answer = link.post(plan.initialize, limits.first_byte + limits.initialize)
    try:
        await _within(link, link.first_byte.wait(), "first byte", limits.first_byte)
        # Shielded, so that running out of time does not cancel the answer under `forget`.
        greeted = await _within(link, asyncio.shield(answer), "initialize", limits.initialize)
    except RequestError as error:
        if link.gone.done():
            raise _why_it_exited(link, link.gone.result()) from None
        raise StartupError(
            f"the CLI refused the handshake: {error.reason}", evidence=link.evidence("initialize")
        ) from error
    finally:
        link.forget(request_id)
    if link.gone.done():
        raise _why_it_exited(link, link.gone.result())
    return _checked(link, cast("Initialized", greeted))


async def _within(link: Link, waiting: Awaitable[T], phase: str, limit: float) -> T:
    try:
        async with asyncio.timeout(limit):
            return await waiting
    except TimeoutError:
        raise _too_slow(link, phase, limit) from None


def _checked(link: Link, answer: Initialized) -> Initialized:
    found = answer.claude_code_version
    if found and _numbers(found) < _numbers(MINIMUM_VERSION):
        raise CliTooOld(found, MINIMUM_VERSION, evidence=link.evidence("initialize"))
    return answer


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _too_slow(link: Link, phase: str, limit: float) -> StartupTimeout:
    what = f"the CLI did not get past its start-up phase {phase!r} within {limit:g} s"
    if link.noise:
        what += f"; on stdout it wrote {link.noise!r}"
    return StartupTimeout(
        what,
        hint=f"if it is only slow, raise startup=StartupLimits({phase.replace(' ', '_')}=...)",
        evidence=link.evidence(phase),
    )


def _why_it_exited(link: Link, status: int) -> SteersmanError:
    if link.is_closing:
        return ChannelClosed("this session was closed while it was starting")
    entries = link.log.journal.after(link.began_after, most=1000)
    results = [entry.message for entry in entries if entry.kind is Kind.MESSAGE]
    said = "\n".join(
        error for result in results if isinstance(result, Result) for error in result.errors
    )
    evidence = link.evidence("initialize", status)
    return why_it_exited(said or evidence.stderr_tail, evidence, link.noise)


async def _reap(link: Link) -> None:
    """See the process gone, whatever cancels us meanwhile."""
    link.end()
    if link.was_opened:
        await asyncio.wait([link.gone], timeout=REAPING)
