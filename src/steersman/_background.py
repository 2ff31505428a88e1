"""Background tasks that do not die unseen: what has failed is logged, shown, and started again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from steersman.errors import SteersmanError

FIRST_PAUSE, LAST_PAUSE = 0.5, 5.0
"""Seconds until a task that has failed is started again. The pause doubles up to the last one."""
CALM = 10.0
"""Seconds that a task must have run, until it counts as running well again."""

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Fault:
    words: str
    until: float
    """When it is reported no longer, unless the task fails again; by the clock of the loop."""


class BackgroundTasks:
    """The background tasks of one owner, such as a worker or a bridge."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._now: Callable[[], float] = time.monotonic
        """The clock of the event loop, once there is a task."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._faults: dict[str, _Fault] = {}

    def keep(
        self, name: str, work: Work, *, meanwhile: str, longest: float = LAST_PAUSE
    ) -> asyncio.Task[None]:
        """Run `work` until it returns, and again after each error, with a pause that grows.

        `meanwhile` is what does not happen while the task has failed, `longest` is the longest
        pause. Nothing is started under the name of a task that still runs.
        """
        known = self._tasks.get(name)
        if known is not None and not known.done():
            return known
        self._now = asyncio.get_running_loop().time
        task = self._tasks[name] = asyncio.Task(
            self._run(name, work, meanwhile, longest), name=name
        )
        task.add_done_callback(lambda _: self._ended(name, task))
        return task

    @property
    def faults(self) -> dict[str, str]:
        """The tasks that fail now, each with its last error in words."""
        return {
            name: each.words
            for name, each in self._faults.copy().items()
            if self._now() < each.until
        }

    async def aclose(self) -> None:
        """Cancel all tasks and wait for them."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, name: str, work: Work, meanwhile: str, longest: float) -> None:
        pause = FIRST_PAUSE
        while True:
            began = self._now()
            try:
                await work()
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # This task was not cancelled, but what it waited for.
                found: BaseException = error
            except Exception as error:  # noqa: BLE001 - a defect must not end the task either
                found = error
            else:
                return
            if self._now() - began > CALM:
                pause = FIRST_PAUSE
            self._failed(name, found, pause, meanwhile)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    def _failed(self, name: str, error: BaseException, pause: float, meanwhile: str) -> None:
        said = str(error).strip().partition("\n")[0]
        words = said
        if not isinstance(error, SteersmanError):
            words = f"{type(error).__name__}: {said}" if said else type(error).__name__
        self._faults[name] = _Fault(words, self._now() + pause + CALM)
        self._log.warning(
            "%s has failed: %s. It is started again in %g s; until then %s.",
            *(name, words.rstrip("."), pause, meanwhile),
            exc_info=None if isinstance(error, SteersmanError) else error,
        )

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
            self._faults.pop(name, None)


def faults_of(conversations: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the faults of the sessions of conversations, by task and conversation."""
    return {
        f"{task} {conversation}": words
        for conversation, faults in conversations.items()
        for task, words in faults.items()
    }
