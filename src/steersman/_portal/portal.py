"""Portal: calls coroutine functions in the loop of a thread, and waits for their results.

The thread is started by the first call. A forked child has no such thread: there the shared portal
is a new one, and the inherited one only raises.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from steersman._portal.loop_thread import Call, LoopThread, Trip

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 5.0
"""Seconds that a call which was interrupted has to clean up; the default of `close_grace`."""


@dataclass(frozen=True, slots=True)
class Portal:
    """Runs coroutine functions in the loop of a thread, and waits for their results."""

    thread: LoopThread
    grace: float = GRACE
    """Seconds that a call has to end after its caller was interrupted, such as by ctrl-c."""

    def with_grace(self, seconds: float) -> Portal:
        """Return a portal to the same event loop with another `grace`."""
        return replace(self, grace=seconds)

    def call(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a coroutine function in the loop, with the caller's contextvars; wait for it.

        An exception is raised here as it was raised there. If the wait is interrupted, such as by
        `KeyboardInterrupt`, the coroutine is cancelled, gets `grace` seconds to end, and the
        interruption is raised. Raises `UsageError` in the thread of the loop, which would wait for
        itself, and `ChannelClosed` in a forked child and after the end.
        """
        trip = Trip(functools.partial(function, *args, **kwargs))
        self._send(trip, trip.wait)
        return trip.outcome()

    def call_within(self, timeout: float, late: Exception, function: Call[T]) -> T:
        """As `call`, but cancel the coroutine and raise `late` after `timeout` seconds.

        Also if the loop is blocked, so that the coroutine cannot be cancelled yet.
        """
        trip = Trip(function)
        if not self._send(trip, lambda: trip.wait(timeout)):
            self.thread.post(trip.cancel)
            raise late
        return trip.outcome()

    def call_while_free(self, late: Exception, function: Call[T]) -> T:
        """As `call`, but raise `late` if the loop is blocked for longer than `grace`.

        The coroutine is not cancelled then.
        """
        trip = Trip(function)

        def wait() -> bool:
            while not trip.wait(self.grace):
                if not self.thread.answers(self.grace):
                    return False
            return True

        if not self._send(trip, wait):
            raise late
        return trip.outcome()

    def do(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that waits for nothing in the loop, and return its result.

        In the thread of the loop it is called at once.
        """
        if self.thread.is_here:
            return function(*args, **kwargs)

        async def once() -> T:
            return function(*args, **kwargs)

        return self.call(once)

    def do_soon(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, and do not wait for it; not in a loop that has ended."""
        self.thread.post(function)

    def _send(self, trip: Trip[Any], wait: Callable[[], bool]) -> bool:
        """Begin a call, and return what `wait` returns: whether the call has ended."""
        self.thread.enter()
        try:
            self.thread.send(trip)
            return wait()
        except BaseException:
            # Interrupted, such as by ctrl-c: what it has begun gets time to clean up.
            self.thread.post(trip.cancel)
            trip.wait(self.grace)
            raise
        finally:
            self.thread.trips.discard(trip)


_shared = LoopThread()
_shared_portal = Portal(_shared)


def shared_portal() -> Portal:
    """Return the portal of this process; a forked child has another one than its parent."""
    return _shared_portal


def _renew() -> None:
    global _shared, _shared_portal  # noqa: PLW0603
    inherited = _shared
    inherited.forget()
    if inherited.is_lost:
        # The old one stays referenced by what was opened with it, and by its own thread's frame.
        _shared = LoopThread()
        _shared_portal = Portal(_shared)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
