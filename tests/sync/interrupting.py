"""Ctrl-c at a chosen moment: a real SIGINT, for the main thread, which waits for something."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

LIMIT = 10.0
POLL = 0.001


def interrupt_main(within: str = "_send") -> None:
    """Send SIGINT to the main thread, once it is in a function that waits; called in another one.

    A thread tells nobody what it does, so its frames are looked at.
    """
    main = threading.main_thread().ident
    assert main is not None
    deadline = time.monotonic() + LIMIT
    while not {"_send", within} <= set(_functions(main)):
        assert time.monotonic() < deadline, f"the main thread is not in {within}"
        threading.Event().wait(POLL)
    signal.pthread_kill(main, signal.SIGINT)


def _functions(thread: int) -> Iterator[str]:
    """Return the names of the functions that a thread is in."""
    # The only way to another thread's frames; debuggers use it.
    frame: FrameType | None = sys._current_frames()[thread]  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


def interrupted(function: Callable[[], object]) -> None:
    """Call a function that `KeyboardInterrupt` must end. Needs the main thread."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            function()
    finally:
        signal.signal(signal.SIGINT, before)
