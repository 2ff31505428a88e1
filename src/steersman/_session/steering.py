"""Steers a running session: pauses it, interrupts and withdraws, waits until it is at rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from steersman._session.gate import with_gate
from steersman._session.lifecycle import Lifecycle
from steersman._session.link import CliLink
from steersman._session.parts import Parts
from steersman._session.turn import SentPrompt, Turn
from steersman._struct import set_source
from steersman.control.session import CancelAsyncMessage, Interrupt, InterruptReceipt
from steersman.errors import ChannelClosed, RequestLost, RequestRefused, RequestTimeout
from steersman.journal import Move, Phase

log = logging.getLogger("steersman.session")

CEILING = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
"""The CLI's own variable: how long a one-shot run waits for background work between turns."""

DEFAULT_CEILING = 600.0


class Pause:
    """Holds tool calls and prompts, or stops the CLI's process tree."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle) -> None:
        self._parts = parts
        self._lifecycle = lifecycle

    async def begin(self, *, hard: bool) -> None:
        """Hold new tool calls and prompts; with `hard`, stop the process tree."""
        parts = self._parts
        cli = await self._lifecycle.ready()
        was_closed, was_stopped = parts.gate.is_closed, parts.gate.has_stopped_tree
        parts.gate.close()
        parts.prompts.is_held = True
        try:
            if hard:
                parts.gate.has_stopped_tree = True
                await self._stop_tree(cli.link)
            elif not was_stopped:
                await self._install_gate()
        except BaseException:
            if hard and not was_stopped:
                self._resume_tree()
            if not was_closed:
                self._release()
            raise
        parts.watchdog.stop()
        parts.limits.pause()
        parts.status.move(Move.PAUSE)

    def end(self) -> None:
        """Resume the session, if it is paused."""
        parts = self._parts
        if parts.status.phase is not Phase.PAUSED:
            return
        if parts.gate.has_stopped_tree:
            self._resume_tree()
        self._release()
        parts.limits.resume()
        parts.prompts.send_next()
        parts.status.resume()
        if not parts.gate.is_closed:
            parts.watchdog.start()

    async def _stop_tree(self, link: CliLink) -> None:
        timeout = self._parts.options.request_timeout
        try:
            await link.suspend(timeout)
        except TimeoutError:
            reason = "the CLI's process tree was not stopped"
            raise RequestTimeout("pause", reason, timeout) from None

    async def _install_gate(self) -> None:
        """Register the gate's hook with the CLI; a restarted CLI is launched with it."""
        parts = self._parts
        while not parts.gate.is_installed:
            cli = await self._lifecycle.ready()
            if not parts.slot.is_modern:
                reason = "this CLI is too old to be paused between tools"
                hint = "use pause(hard=True), or update the CLI"
                raise RequestRefused("pause", reason, hint=hint)
            initialize = with_gate(parts.setup.plan.initialize)
            with suppress(RequestLost):
                await cli.link.call(initialize, parts.options.request_timeout)
                parts.gate.is_installed = True

    def _release(self) -> None:
        self._parts.gate.open()
        self._parts.prompts.is_held = False

    def _resume_tree(self) -> None:
        self._parts.gate.has_stopped_tree = False
        if self._parts.slot.running is not None:
            with suppress(ChannelClosed):
                self._parts.slot.running.link.resume()


class Interrupts:
    """Interrupts the CLI, and cancels prompts that the model has not seen."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle) -> None:
        self._parts = parts
        self._prompts = parts.prompts
        self._lifecycle = lifecycle
        self._timeout = parts.options.request_timeout

    async def withdraw(self, turn: Turn) -> bool:
        """Cancel a prompt that the model has not seen; returns whether that worked."""
        if self._prompts.withdraw(turn.uuid):
            return True
        if turn.is_settled or turn.has_begun:
            return turn.delivery == "cancelled"
        await self._cancel_in_cli(turn)
        # The CLI may refuse and cancel the prompt all the same, so its lifecycle is what counts.
        try:
            async with asyncio.timeout(self._timeout):
                await turn.begun()
        except TimeoutError:
            raise RequestTimeout(
                "withdraw", "the prompt neither began nor was cancelled", self._timeout
            ) from None
        return turn.delivery == "cancelled"

    async def interrupt(self, turn: Turn | None, *, also_queued: bool) -> InterruptReceipt:
        """Stop `turn`, or the current one, and wait until it has settled."""
        await self._lifecycle.responsive("interrupt")
        uuid = None if turn is None else turn.uuid
        withdrawn = self._prompts.withdraw_queued(uuid, also_others=also_queued)
        waiting = self._prompts.queued
        receipt = InterruptReceipt()
        # A turn that has settled, or was only queued, must not stop another one that runs.
        sent = {prompt.uuid: prompt for prompt in self._prompts.unsettled}
        if uuid is None or uuid in sent:
            meant = self._prompts.current if uuid is None else sent[uuid]
            receipt = await self._stop_in_time(meant, also_queued=also_queued)
        return set_source(
            InterruptReceipt(
                still_queued=[*receipt.still_queued, *waiting],
                cancelled=[*receipt.cancelled, *withdrawn],
            ),
            receipt.raw,
        )

    async def _stop_in_time(
        self, prompt: SentPrompt | None, *, also_queued: bool
    ) -> InterruptReceipt:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._stop(prompt, also_queued=also_queued)
        except TimeoutError:
            raise RequestTimeout("interrupt", "the turn did not settle", self._timeout) from None
        except RequestLost:
            # The turn settled when its CLI exited, and the next CLI does not continue it.
            if prompt is None or not prompt.is_settled or not self._lifecycle.is_restarting:
                raise
            return InterruptReceipt()

    async def _stop(self, prompt: SentPrompt | None, *, also_queued: bool) -> InterruptReceipt:
        """Interrupt the CLI until `prompt` has settled."""
        link = self._parts.slot.require().link
        if prompt is None:
            return await link.call(Interrupt(cancel_queued=also_queued), self._timeout)
        prompt.was_interrupted = True
        await self._cancel_in_cli(prompt)
        receipt = InterruptReceipt()
        while not prompt.is_settled:
            # An interrupt alone does not stop a prompt that has not begun, and the CLI may hold
            # it back for as long as an MCP server does not answer.
            has_begun = prompt.has_begun
            verb = Interrupt(cancel_queued=also_queued or not has_begun)
            receipt = await link.call(verb, self._timeout)
            if has_begun or prompt.uuid in receipt.cancelled:
                break
            await prompt.begun()
        await prompt.result()
        others = [uuid for uuid in receipt.cancelled if uuid != prompt.uuid]
        return set_source(msgspec.structs.replace(receipt, cancelled=others), receipt.raw)

    async def _cancel_in_cli(self, turn: Turn | SentPrompt) -> None:
        """Remove a prompt that has not begun from the CLI's queue, and only that one."""
        if turn.has_begun:
            return
        verb = CancelAsyncMessage(message_uuid=turn.uuid)
        answer = await self._parts.slot.require().link.call(verb, self._timeout)
        if answer.cancelled:
            # Older CLIs send no lifecycle that would settle it.
            self._prompts.cli_cancelled(turn.uuid)


def ceiling_of(env: Mapping[str, str]) -> float | None:
    """Return the seconds that `CEILING` allows; `None` is for ever."""
    given = env.get(CEILING, "").strip()
    if not (given.isascii() and given.isdigit()):
        return DEFAULT_CEILING
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
    return DEFAULT_CEILING if cli is None else ceiling_of(cli.link.env)


def _report(parts: Parts, ceiling: float) -> None:
    running = ", ".join(each.task_id for each in parts.prompts.totals.running_tasks) or "the CLI"
    what = f"background work is stopped: {running} still ran {ceiling:g} s after the last turn"
    log.warning("%s (%s)", what, CEILING)
    parts.journal.fault("finish", what)
