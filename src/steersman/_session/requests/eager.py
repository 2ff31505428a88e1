"""Tasks that take their first step at once, so that what does not wait costs no round of the loop.

Inside them `current_task`, `asyncio.timeout` and context variables are what they are in any task.
Python has such tasks from 3.12 on; in 3.11 the first step is caught on its way to the loop.
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
    """Finds what `starter` gives, at less cost where it is asked for again and again."""

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
            # A loop that cannot be told anything, such as uvloop's.
            return functools.partial(_later, loop)
        steps: list[Callable[[], object]] = []

        def catch(step: Callable[[], object], **_: object) -> None:
            steps.append(step)

        def begin(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
            # Only while the task is being made: all that it does is to ask for its first step.
            own["call_soon"] = catch
            try:
                task = asyncio.Task(work, loop=loop, context=context)
            finally:
                del own["call_soon"]
            context.run(steps.pop())
            return task

        return begin
