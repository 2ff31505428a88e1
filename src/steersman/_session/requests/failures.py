"""What a callback raised that must end the program, after the request was answered."""

from __future__ import annotations

import asyncio

__all__ = ["raise_soon"]


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
