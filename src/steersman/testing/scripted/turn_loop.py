"""Plays the turns of a scripted CLI, one at a time, in tasks that end with its process."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from steersman._json import JsonDict
from steersman.testing.scripted.conversation import CONTINUE, Conversation, Prompt
from steersman.testing.scripted.host import Host, new_id
from steersman.testing.scripted.tools import ToolCall
from steersman.testing.scripted.turn import Shared, Turn


class TurnLoop:
    """Plays turns while there are prompts; otherwise the CLI is idle."""

    def __init__(
        self,
        shared: Shared,
        conversation: Conversation,
        host: Host,
        tasks: Tasks,
        ready: Sequence[asyncio.Task[None]],
        on_idle: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._conversation = conversation
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
        """True if no turn is in progress."""
        return self._turn is None

    def submit(self, prompt: Prompt) -> None:
        """Start a turn with a prompt, or queue the prompt during a turn."""
        if not self._queue.add(prompt):
            if prompt.uuid in self._queue.known:
                self._output.replay(prompt.content, prompt.uuid)
                self._output.lifecycle(prompt.uuid, "completed")
            if self.is_idle:
                self._output.state("idle")
            return
        if self._turn is None:
            self._output.state("running")
            self._output.lifecycle(prompt.uuid, "queued")
            self._begin_next()
            return
        self._output.lifecycle(prompt.uuid, "queued")
        if prompt.priority == "now":
            self._preempt(self._turn)

    def resume_turn(self, prompts: list[Prompt]) -> None:
        """Resume a turn during which another process was lost."""
        self._output.state("running")
        self._output.lifecycle(new_id(), "started")
        self._play_next(prompts)

    def resume_deferred(self, call: ToolCall) -> None:
        """Continue a turn in which a call was deferred, under a uuid that no host knows."""
        self._output.state("running")
        self._output.lifecycle(new_id(), "started")
        turn = self._turn = Turn(self._shared, [Prompt(CONTINUE)], self._ready)
        self._playing = self._tasks.start(self._play_deferred(turn, call))
        self._playing.add_done_callback(functools.partial(self._ended, turn))

    async def _play_deferred(self, turn: Turn, call: ToolCall) -> None:
        await turn.play_deferred(call)
        self._finish(turn)

    def interrupt(self, *, cancel_queued: bool) -> JsonDict:
        """Stop the current turn and return the receipt; the result is written later."""
        receipt: JsonDict = {}
        if cancel_queued:
            receipt["cancelled"] = self._queue.uuids
            for uuid in receipt["cancelled"]:
                self.withdraw(uuid)
        if self._turn is not None and not self._turn.has_result:
            self._stop(self._turn)
        return {"still_queued": self._queue.uuids, **receipt}

    def withdraw(self, uuid: str) -> bool:
        """Remove a waiting prompt; return whether it was there."""
        was_waiting = self._queue.withdraw(uuid)
        if was_waiting:
            self._output.lifecycle(uuid, "cancelled")
        return was_waiting

    def _preempt(self, turn: Turn) -> None:
        turn.is_preempted = True
        # A running tool may finish, but streamed text is aborted.
        if not (turn.is_in_tools or turn.has_result):
            self._stop(turn)

    def _stop(self, turn: Turn) -> None:
        assert self._playing is not None
        turn.is_stopped = True
        self._host.withdraw_all()
        self._tasks.stop(self._playing)

    async def _play(self, turn: Turn) -> None:
        await turn.play()
        self._finish(turn)

    def _ended(self, turn: Turn, playing: asyncio.Task[None]) -> None:
        # Otherwise the process exits and writes nothing more.
        if playing.cancelled() and turn.is_stopped:
            turn.abort()
            self._finish(turn)

    def _finish(self, turn: Turn) -> None:
        """Write the end of the turn together with the result, before any new prompt is read."""
        self._conversation.end()
        for prompt in turn.prompts:
            state = "cancelled" if turn.is_aborted else "completed"
            self._output.lifecycle(prompt.uuid, state)
        if not self._begin_next():
            self._output.state("idle")
            self._on_idle()

    def _begin_next(self) -> bool:
        """Start a turn with the waiting prompts; return whether there are any."""
        prompts = self._queue.take()
        self._turn = self._playing = None
        if not prompts:
            return False
        for merged in prompts[:-1]:
            self._output.replay(merged.content, merged.uuid)
        for prompt in prompts:
            self._output.lifecycle(prompt.uuid, "started")
        self._play_next(prompts)
        return True

    def _play_next(self, prompts: list[Prompt]) -> None:
        self._conversation.begin(prompts)
        turn = self._turn = Turn(self._shared, prompts, self._ready)
        self._playing = self._tasks.start(self._play(turn))
        self._playing.add_done_callback(functools.partial(self._ended, turn))


class Tasks:
    """Starts tasks and cancels them; an exception in a task is reported."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self.were_cancelled = False
        """True if a task was cancelled from outside, as by an event loop that shuts down."""
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()
        self._stopped: set[asyncio.Task[None]] = set()

    def start(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `doing` in a new task."""
        task = asyncio.Task(doing)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def stop(self, task: asyncio.Task[None]) -> None:
        """Cancel a task."""
        self._stopped.add(task)
        task.cancel()

    def cancel_all(self) -> asyncio.Future[Any] | None:
        """Cancel all tasks except the caller's; return a future for their end, if there are any."""
        others = [each for each in self._running if each is not _current()]
        for each in others:
            self.stop(each)
        return asyncio.gather(*others, return_exceptions=True) if others else None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            self.were_cancelled |= task not in self._stopped
        elif (error := task.exception()) is not None:
            self._on_crash(error)
        self._stopped.discard(task)


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
