"""Pausing and resuming a session."""

from __future__ import annotations

from contextlib import suppress

from steersman._session.gate import with_gate
from steersman._session.lifecycle import Lifecycle
from steersman._session.link import CliLink
from steersman._session.parts import Parts
from steersman.errors import ChannelClosed, RequestLost, RequestRefused, RequestTimeout
from steersman.journal import Move, Phase


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
