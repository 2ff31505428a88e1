"""Spawn and handshake, and why a CLI did not start."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar, cast

import msgspec

from steersman._launch.plan import LaunchPlan
from steersman._releases import numbers
from steersman._session.cli import Handshake
from steersman._session.link import CliLink
from steersman._session.programs import CliVersions, refuse_old, refuse_unsafe
from steersman._session.setup import SessionSetup
from steersman._struct import set_source
from steersman.control.context import GetUsage
from steersman.control.verbs import Answer
from steersman.errors import (
    ChannelClosed,
    CliMisbehaves,
    Evidence,
    LaunchError,
    LeaseLost,
    NotLoggedIn,
    OptionRefused,
    ProtocolViolation,
    RequestError,
    RequestRefused,
    RequestTimeout,
    ResumeNotFound,
    SessionInUse,
    StartupError,
    StartupExited,
    StartupTimeout,
    SteersmanError,
)
from steersman.journal import Kind
from steersman.journal.costs import CostTracker
from steersman.messages.turns import Result
from steersman.options import Options, StartupLimits
from steersman.ports import Transport

log = logging.getLogger("steersman.session")

T = TypeVar("T")

REAPING = 10.0
"""Seconds in which a CLI that did not start must have exited; SIGKILL needs far less."""


MODE_SINCE = numbers("2.1.260")
"""A release that reports its permission mode in the answer; older ones only in `system/init`."""

COSTS_SINCE = numbers("2.1.309")
"""The first release whose results have what they add to the totals of a conversation."""

cli_versions = CliVersions()
"""Shared by all sessions: the version of a program does not depend on the session."""


async def start(
    link: CliLink,
    plan: LaunchPlan,
    setup: SessionSetup,
    initialized: Callable[[CliLink, Handshake], Awaitable[None]],
) -> Handshake:
    """Run the CLI and initialize it, and call `initialized`.

    If any of this fails, the CLI has exited before the error is raised.
    """
    limits = setup.options.startup
    try:
        await _spawn(link, setup.transport, limits.spawn)
        answer = await _initialize(link, plan, limits)
        answer = await _with_version(link, plan, setup, answer)
        _compare(link, plan, answer)
        await initialized(link, answer)
    except (OptionRefused, StartupExited):
        await _reap(link)
        # An option that it does not know is what an old CLI complains about.
        await _with_version(link, plan, setup, Handshake())
        raise
    except BaseException:
        await _reap(link)
        raise
    return answer


async def begin_totals(
    link: CliLink, handshake: Handshake, costs: CostTracker, options: Options
) -> None:
    """Learn with which totals a CLI resumes a conversation, before it gets a prompt.

    Nothing is asked if its results have what they add, or if its release is not known.
    """
    release = numbers(handshake.claude_code_version)
    if not release or release >= COSTS_SINCE:
        return
    try:
        report = await link.call(GetUsage(skip_behaviors=True), options.request_timeout)
    except (RequestRefused, RequestTimeout) as error:
        log.warning(
            "the CLI does not say what this conversation has cost so far, so the cost of the next"
            " turn may be too large: %s",
            error.reason,
        )
    else:
        costs.begin(report.session.total_cost_usd, report.session.model_usage)


async def _spawn(link: CliLink, transport: Transport, limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await link.open(transport)
    except TimeoutError:
        raise _too_slow(link, "spawn", limit) from None
    except LeaseLost:
        # Another process decides about the turns.
        raise
    except LaunchError as error:
        error.evidence = link.evidence("launch")
        raise
    except Exception as error:
        raise LaunchError(
            f"the transport failed: {error!r}", evidence=link.evidence("launch")
        ) from error


async def _initialize(link: CliLink, plan: LaunchPlan, limits: StartupLimits) -> Handshake:
    patience = limits.first_byte + limits.initialize
    request_id, answer = link.post(plan.initialize, patience, answer=Handshake)
    try:
        await _within(link, link.first_byte.wait(), "first byte", limits.first_byte)
        with _refusing_noise(link, answer, limits.noise):
            # Shielded, so that running out of time does not cancel the answer under `forget`.
            answered = await _within(link, asyncio.shield(answer), "initialize", limits.initialize)
    except RequestError as error:
        if link.exit_status.done():
            raise _why_it_exited(link, link.exit_status.result()) from None
        raise StartupError(
            f"the CLI refused the handshake: {error.reason}", evidence=link.evidence("initialize")
        ) from error
    finally:
        link.forget(request_id)
    if link.exit_status.done():
        raise _why_it_exited(link, link.exit_status.result())
    return cast("Handshake", answered)


@contextmanager
def _refusing_noise(
    link: CliLink, answer: asyncio.Future[Answer], limit: float
) -> Generator[None, None, None]:
    """Fail `answer` if the program writes something else, and then no JSON for `limit` seconds."""
    timers: list[asyncio.TimerHandle] = []
    is_over = False

    def check() -> None:
        if not (answer.done() or link.has_sent_json):
            answer.set_exception(_not_json(link, limit))

    def began(_: object) -> None:
        # Not after the wait: a callback that is already scheduled cannot be removed.
        if not is_over:
            timers.append(asyncio.get_running_loop().call_later(limit, check))

    link.first_noise.add_done_callback(began)
    try:
        yield
    finally:
        is_over = True
        link.first_noise.remove_done_callback(began)
        for timer in timers:
            timer.cancel()


def _not_json(link: CliLink, limit: float) -> ProtocolViolation:
    shown = repr(link.noise) if link.noise else "something that is not a line of JSON"
    return ProtocolViolation(
        f"what runs there does not speak the protocol: on stdout it wrote {shown}, and then no JSON"
        f" for {limit:g} s",
        hint="check that cli_path, or STEERSMAN_CLI, names the Claude Code CLI; if a wrapper"
        " prints text before it starts the CLI, raise startup=StartupLimits(noise=...)",
        evidence=link.evidence("initialize"),
    )


async def _within(link: CliLink, waiting: Awaitable[T], phase: str, limit: float) -> T:
    try:
        async with asyncio.timeout(limit):
            return await waiting
    except TimeoutError:
        raise _too_slow(link, phase, limit) from None


async def _with_version(
    link: CliLink, plan: LaunchPlan, setup: SessionSetup, answer: Handshake
) -> Handshake:
    """Return the CLI's answer with its version. Raises `CliTooOld` or `UnsafeCli`."""
    found = answer.claude_code_version
    if not found and setup.reports_version:
        found = await cli_versions.of(plan, setup.transport)
    options, evidence = setup.options, lambda: link.evidence("initialize")
    refuse_old(found, allow=options.allow_old_cli, evidence=evidence)
    refuse_unsafe(found, setup.releases, allow=options.allow_unsafe_cli, evidence=evidence)
    if found == answer.claude_code_version:
        return answer
    changed = msgspec.structs.replace(answer, claude_code_version=found)
    # A changed copy has lost its `raw`, which stays as the CLI sent it.
    return set_source(changed, answer.raw)


def _compare(link: CliLink, plan: LaunchPlan, answer: Handshake) -> None:
    """Raise `CliMisbehaves` if the CLI reports what it was not given, before it gets a prompt."""
    reported, release = answer.current_permission_mode, numbers(answer.claude_code_version)
    link.mode.is_reported = release >= MODE_SINCE
    if not link.mode.starts_in(reported):
        evidence = link.evidence("initialize")
        raise CliMisbehaves("permission_mode", link.mode.given, reported, evidence=evidence)
    if plan.initialize.hooks and answer.hooks_applied is False:
        given = ", ".join(plan.initialize.hooks)
        raise CliMisbehaves("hooks", given, "none", evidence=link.evidence("initialize"))
    link.mode.is_reported = bool(release)


def _too_slow(link: CliLink, phase: str, limit: float) -> StartupTimeout:
    what = f"the CLI did not get past its start-up phase {phase!r} within {limit:g} s"
    if link.noise:
        what += f"; on stdout it wrote {link.noise!r}"
    return StartupTimeout(
        what,
        hint=f"if it is only slow, raise startup=StartupLimits({phase.replace(' ', '_')}=...)",
        evidence=link.evidence(phase),
    )


def _why_it_exited(link: CliLink, status: int) -> SteersmanError:
    if link.is_closing:
        return ChannelClosed("this session was closed while it was starting")
    entries = link.journal.journal.after(link.began_after, most=1000)
    is_line = frozenset({Kind.MESSAGE, Kind.BOOKKEEPING})
    results = [entry.message for entry in entries if entry.kind in is_line]
    output = "\n".join(
        error for result in results if isinstance(result, Result) for error in result.errors
    )
    evidence = link.evidence("initialize", status)
    return startup_error(output or evidence.stderr_tail, evidence, link.noise)


async def _reap(link: CliLink) -> None:
    """Kill the process and wait for its exit, also during cancellation."""
    link.end()
    if link.was_opened:
        await asyncio.wait([link.exit_status], timeout=REAPING)


_CAUSES: tuple[tuple[str, type[SteersmanError], str], ...] = (
    (
        r"no conversation found|no message found|not a valid uuid|--resume",
        ResumeNotFound,
        "check the session id and the cwd: conversations are kept per directory",
    ),
    (
        r"already in use",
        SessionInUse,
        "leave session_id out, or continue that conversation with resume=",
    ),
    (
        r"not logged in|invalid api key|/login",
        NotLoggedIn,
        "log in with `claude`, or set ANTHROPIC_API_KEY",
    ),
    (
        r"option|argument|settings|mcp config|permission-mode|sandbox|used with root|invalid",
        OptionRefused,
        "correct the option that it names; if the CLI is old, update it",
    ),
)


def startup_error(output: str, evidence: Evidence, noise: str = "") -> SteersmanError:
    """Return the error for a CLI that exited during startup; `output` is its explanation."""
    first = next((line for line in output.splitlines() if line.strip()), "").strip()
    for pattern, error, hint in _CAUSES:
        if re.search(pattern, output, re.IGNORECASE):
            return error(
                f"the CLI refused to start: {output.strip()}", hint=hint, evidence=evidence
            )
    if evidence.status is not None and evidence.status < 0:
        what = f"the CLI was killed by signal {-evidence.status} before it was ready"
        return StartupExited(
            what, hint="check whether the machine ran out of memory", evidence=evidence
        )
    if noise and not first:
        return ProtocolViolation(
            f"what runs there does not speak the protocol: on stdout it wrote {noise!r}, and ended",
            hint="check that cli_path, or STEERSMAN_CLI, names the Claude Code CLI",
            evidence=evidence,
        )
    what = (
        f"the CLI exited before it was ready{': ' + first if first else ', without an explanation'}"
    )
    return StartupExited(what, hint="run the command by hand to see more", evidence=evidence)
