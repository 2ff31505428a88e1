"""Stopping turns and withdrawing prompts at the caller's request."""

from __future__ import annotations

import asyncio

import msgspec

from steersman._session.lifecycle import Lifecycle
from steersman._session.parts import Parts
from steersman._session.turn import SentPrompt, Turn
from steersman._struct import set_source
from steersman.control.session import CancelAsyncMessage, Interrupt, InterruptReceipt
from steersman.errors import RequestLost, RequestTimeout


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
