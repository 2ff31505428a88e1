"""Tasks that run their first step at once, so that work without waiting costs no loop iteration.

`current_task`, `asyncio.timeout` and context variables work in them as in any task. Python has
eager tasks since 3.12. For 3.11, the first step is intercepted when the task schedules it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["EagerStarter"]

Work = Coroutine[Any, Any, None]
Start = Callable[[Work, contextvars.Context], asyncio.Task[None]]


class EagerStarter:
    """Returns, for each call, the function that starts a task and runs its first step at once.

    That function starts the task normally if another task is running, or if the loop has a task
    factory. Create one `EagerStarter` per event loop and keep it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._at_once = _at_once(self._loop)

    def __call__(self) -> Start:
        loop = self._loop
        if asyncio.current_task(loop) is None and loop.get_task_factory() is None:
            return self._at_once
        return functools.partial(_later, loop)


def _later(
    loop: asyncio.AbstractEventLoop, work: Work, context: contextvars.Context
) -> asyncio.Task[None]:
    return loop.create_task(work, context=context)


if sys.version_info >= (3, 12):

    def _at_once(loop: asyncio.AbstractEventLoop) -> Start:
        def begin(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
            return asyncio.Task(work, loop=loop, context=context, eager_start=True)

        return begin

else:

    def _at_once(loop: asyncio.AbstractEventLoop) -> Start:
        try:
            own = vars(loop)
        except TypeError:
            # Attributes of this loop cannot be set; uvloop is an example.
            return functools.partial(_later, loop)
        steps: list[Callable[[], object]] = []

        def catch(step: Callable[[], object], **_: object) -> None:
            steps.append(step)

        def begin(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
            # Replaced only while the task is created: `Task()` calls `call_soon` once, with the
            # first step.
            own["call_soon"] = catch
            try:
                task = asyncio.Task(work, loop=loop, context=context)
            finally:
                del own["call_soon"]
            context.run(steps.pop())
            return task

        return begin
