"""Portal: calls coroutine functions in the event loop of a thread, and waits for their results.

The thread is started by the first call. A forked child has no such thread: there the shared portal
is a new one, and the inherited one only raises.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypeVar

from steersman.errors import ChannelClosed, Described, UsageError

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("steersman.sync")

Call = Callable[[], Coroutine[Any, Any, T]]
"""Makes the coroutine that is run in the loop."""

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


class Trip(Generic[T]):
    """One call: from the thread of the caller to the loop, and back."""

    __slots__ = ("_context", "_done", "_error", "_function", "_has_ended", "_result", "_task")

    def __init__(self, function: Call[T]) -> None:
        self._done = threading.Lock()
        """Locked until the call has ended."""
        self._done.acquire()
        self._function = function
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._result: T | None = None
        self._error: BaseException | None = None
        self._has_ended = False

    def begin(self) -> None:
        """Start the coroutine, unless the caller has given up; called in the loop."""
        if self._has_ended:
            return
        self._task = asyncio.Task(self._run(), context=self._context)

    async def _run(self) -> None:
        try:
            self._result = await self._function()
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
            self.end(error)
        else:
            self.end(None)

    def wait(self, timeout: float = -1) -> bool:
        """Wait until the call has ended, at most `timeout` seconds; return whether it has.

        May be called again. Ctrl-c may come when the lock was just acquired: then it stays
        acquired.
        """
        return self._has_ended or self._done.acquire(timeout=timeout)

    def cancel(self) -> None:
        """Cancel the coroutine; called in the loop."""
        if self._task is None:
            self.end(asyncio.CancelledError())
        elif not self._task.done():
            # A task that is cancelled before its first step never reaches the end of `_run`.
            self._task.add_done_callback(lambda _: self.end(asyncio.CancelledError()))
            self._task.cancel()

    def end(self, error: BaseException | None) -> None:
        """Record how the call has ended, and wake the caller. Later calls are ignored."""
        if not self._has_ended:
            # In this order: a caller that sees the end reads the error.
            self._error = error
            self._has_ended = True
            self._done.release()

    def outcome(self) -> T:
        """Return the result, or raise the error."""
        error, self._error = self._error, None
        try:
            if isinstance(error, asyncio.CancelledError):
                raise _ended() from error
            if error is not None:
                raise error
            return self._result  # type: ignore[return-value]  # without an error it is a T
        finally:
            # The traceback of the error refers to this frame; break the reference cycle.
            del error


class LoopThread:
    """A daemon thread that runs an event loop; started by the first call."""

    def __init__(
        self,
        name: str = "steersman-sync",
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        self.trips: set[Trip[Any]] = set()
        """Calls that have not ended."""
        self._name = name
        self._new_loop = new_loop
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._is_lost = False

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    @property
    def is_lost(self) -> bool:
        """Whether this process was forked from the one that the thread runs in."""
        return self._is_lost

    @property
    def is_closed(self) -> bool:
        """Whether the loop ends or has ended, or belongs to the parent process."""
        return self._is_lost or self._is_closing

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop; it runs from now on, if it did not before."""
        if self._is_lost:
            raise ChannelClosed(
                "this was opened before fork(), and belongs to the parent process",
                hint="open another session in this process",
            )
        with self._lock:
            if self._is_closing:
                raise _ended()
            if self._loop is None:
                self._loop = self._new_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return self._loop

    def enter(self) -> None:
        """Start the loop, if it does not run. Raises `UsageError` in the thread itself."""
        if self.is_here:
            raise UsageError(
                "event loop",
                Described("a call of steersman.sync in its own event loop, such as an async tool"),
                "a call in another thread",
                hint="make the tool or hook a plain `def`, which runs in a thread of its own",
            )
        _ = self.loop

    def send(self, trip: Trip[Any]) -> None:
        """Begin a call in the loop; one that has ended ends the call."""
        self.trips.add(trip)
        loop = self._loop
        try:
            assert loop is not None
            loop.call_soon_threadsafe(trip.begin)
        except RuntimeError:
            # The loop is closed.
            trip.end(_ended())

    def answers(self, within: float) -> bool:
        """Return whether the loop is free to call a function within some seconds."""
        answered = threading.Event()
        self.post(answered.set)
        return answered.wait(within)

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` in the loop, soon; not in a loop that has ended or was never begun."""
        loop = self._loop
        if loop is None or self._is_lost:
            return
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop is closed.
            return

    def close(self, patience: float) -> None:
        """End the loop: close what is open in it, for at most `patience` seconds. Then join it."""
        with self._lock:
            if self._is_closing or self._is_lost or self.is_here:
                return
            self._is_closing = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return

        def end() -> None:
            ending = asyncio.Task(_end_all(loop, patience))
            ending.add_done_callback(lambda _: loop.stop())

        loop.call_soon_threadsafe(end)
        thread.join(patience + 1.0)

    def forget(self) -> None:
        """Mark the copy in a forked child, in which the thread does not run.

        The loop is neither closed nor freed: the kernel's part of its selector belongs to both
        processes.
        """
        self._lock = threading.Lock()
        self._is_lost = self._loop is not None
        self.trips = set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while True:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - SystemExit of a tool or hook
                self._hand_over(error)
                continue
            break
        for trip in tuple(self.trips):
            trip.end(asyncio.CancelledError())
        loop.close()

    def _hand_over(self, error: BaseException) -> None:
        """Raise in every thread that waits what would have ended the program."""
        waiting = tuple(self.trips)
        if not waiting:
            logger.error("the event loop of steersman.sync continues after", exc_info=error)
        for trip in waiting:
            trip.end(error)
            trip.cancel()


async def _end_all(loop: asyncio.AbstractEventLoop, patience: float) -> None:
    """Close the sessions, which are open async generators of the loop, and cancel the tasks."""
    try:
        async with asyncio.timeout(patience):
            await loop.shutdown_asyncgens()
    except TimeoutError:
        logger.warning("sessions were still open after %.1f s; their CLIs are killed", patience)
    mine = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not mine]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=0.5)


def _ended() -> ChannelClosed:
    return ChannelClosed(
        "the event loop of steersman.sync has ended",
        hint="use sessions before the program exits",
    )


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
