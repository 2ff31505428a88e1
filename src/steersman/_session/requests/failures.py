"""Errors of callbacks that are more than failures: they end the program, or the session."""

from __future__ import annotations

import asyncio


def is_shutdown(error: BaseException) -> bool:
    """Return whether `error` cancels the task that answers, and not only the callback."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def raise_soon(error: BaseException) -> None:
    """Raise `KeyboardInterrupt` and `SystemExit` from the event loop, after the answer was sent.

    Other errors are not raised again.
    """
    if not isinstance(error, KeyboardInterrupt | SystemExit):
        return

    def reraise() -> None:
        raise error

    loop = asyncio.get_running_loop()
    # Answers may be written in the next iteration of the loop.
    loop.call_soon(loop.call_soon, reraise)
