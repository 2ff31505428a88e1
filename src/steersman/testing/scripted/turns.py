"""Which turn a scripted CLI plays when: prompts in, one turn at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from steersman.testing.scripted.host import Host
from steersman.testing.scripted.queue import Prompt
from steersman.testing.scripted.tasks import Tasks
from steersman.testing.scripted.turn import Shared, Turn

__all__ = ["TurnLoop"]


class TurnLoop:
    """Runs while there are prompts; in between the CLI is idle."""

    def __init__(
        self,
        shared: Shared,
        host: Host,
        tasks: Tasks,
        ready: Sequence[asyncio.Task[None]],
        on_idle: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._output = shared.output
        self._queue = shared.queue
        self._host = host
        self._tasks = tasks
        self._ready = ready
        self._on_idle = on_idle
        self._turn: Turn | None = None
        self._playing: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no turn is under way."""
        return self._turn is None

    def submit(self, prompt: Prompt) -> None:
        """Begin with a prompt, or queue it behind the turn under way."""
        if not self._queue.add(prompt):
            if self.is_idle:
                self._output.state("idle")
            return
        if self._turn is None:
            self._output.state("running")
            self._output.lifecycle(prompt.uuid, "queued")
            turn = self._next()
            assert turn is not None
            self._tasks.start(self._run(turn))
            return
        self._output.lifecycle(prompt.uuid, "queued")
        if prompt.priority == "now":
            self._cut_in(self._turn)

    def interrupt(self, *, cancel_queued: bool) -> dict[str, Any]:
        """Stop the turn under way; gives the receipt. Its end is told afterwards."""
        receipt: dict[str, Any] = {}
        if cancel_queued:
            receipt["cancelled"] = self._queue.uuids
            for uuid in receipt["cancelled"]:
                self.withdraw(uuid)
        if self._turn is not None and not self._turn.is_over and self._playing is not None:
            self._host.withdraw_all()
            self._tasks.stop(self._playing)
        return {"still_queued": self._queue.uuids, **receipt}

    def withdraw(self, uuid: str) -> bool:
        """Take back a prompt that waits."""
        was_waiting = self._queue.withdraw(uuid)
        if was_waiting:
            self._output.lifecycle(uuid, "cancelled")
        return was_waiting

    def _cut_in(self, turn: Turn) -> None:
        turn.is_cut_in = True
        # A tool that runs is let finish; words are not.
        if self._playing is not None and not (turn.is_in_tools or turn.is_over):
            self._host.withdraw_all()
            self._tasks.stop(self._playing)

    async def _run(self, first: Turn) -> None:
        turn: Turn | None = first
        while turn is not None:
            playing = self._playing = self._tasks.start(turn.play())
            await asyncio.wait([playing])
            if not playing.cancelled() and playing.exception() is not None:
                return
            was_stopped = playing.cancelled()
            if was_stopped:
                turn.abort()
            for prompt in turn.prompts:
                state = "cancelled" if was_stopped or turn.is_cut_in else "completed"
                self._output.lifecycle(prompt.uuid, state)
            turn = self._next()
        self._output.state("idle")
        self._on_idle()

    def _next(self) -> Turn | None:
        prompts = self._queue.take()
        self._turn = self._playing = None
        if not prompts:
            return None
        for merged in prompts[:-1]:
            self._output.replay(merged.content, merged.uuid)
        for prompt in prompts:
            self._output.lifecycle(prompt.uuid, "started")
        self._turn = Turn(self._shared, prompts, self._ready)
        return self._turn
