"""A session in the event loop of a thread, and its caller in trio.

The caller's code (callbacks, prompt iterables, transports, session stores) runs in trio. Cancelling
works both ways: a cancelled call cancels what it waits for in the event loop, and a callback that
the session no longer waits for is cancelled in trio. No task is left on either side.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import trio

from steersman._portal.portal import shared_portal
from steersman.compat._runtime import SAME_LOOP
from steersman.errors import ChannelClosed
from steersman.transports.at_exit import AT_EXIT

if TYPE_CHECKING:
    from steersman._session.session import Session

P = ParamSpec("P")
T = TypeVar("T")

CANCELLING = 60.0
"""Seconds in which a cancelled call has ended; what it waits for has shorter limits of its own."""

EXIT_PATIENCE = 10.0
"""Seconds for all sessions to close at the exit of the program; then their CLIs are killed."""


class TrioRuntime:
    """Takes calls from trio to the event loop of the session, and back."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._loop = shared_portal().thread.loop
        if close_sessions not in AT_EXIT:
            # Before the function that kills every CLI.
            AT_EXIT.insert(0, close_sessions)

    async def there(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run the function as a task of the loop. If trio cancels the wait, cancel the task.

        Returns when the task has ended, so that nothing is left of a cancelled call.
        """
        has_ended = trio.Event()
        call = _Call(lambda: function(*args, **kwargs), lambda: self._soon(has_ended.set))
        if not self.post(call.begin):
            raise _ended()
        try:
            await has_ended.wait()
        except trio.Cancelled:
            self.post(call.cancel)
            with trio.move_on_after(CANCELLING, shield=True):
                await has_ended.wait()
            raise
        return call.result()

    async def finish(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """As `there`, shielded from a cancellation; what it waits for has limits of its own."""
        found: list[T] = []
        with trio.CancelScope(shield=True):
            found.append(await self.there(function))
        return found[0]

    async def here(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run the function as a task of trio. If the wait is cancelled, cancel that task.

        Returns when that task has ended.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        context = _context_for("trio")
        scope = trio.CancelScope()

        async def run() -> None:
            value: Any = None
            error: BaseException | None = None
            with scope:
                try:
                    value = await SAME_LOOP.here(function, *args)
                except trio.Cancelled:
                    error = asyncio.CancelledError()
                    raise
                except BaseException as raised:  # noqa: BLE001 - raised where the session waits
                    error = raised
                finally:
                    self.post(_settle, answer, value, error)

        def spawn() -> None:
            trio.lowlevel.spawn_system_task(run, context=context)

        if not self._soon(spawn):
            raise ChannelClosed("the trio run that this session belongs to has ended")
        try:
            # Shielded: the task in trio is cancelled first, and then waited for.
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not answer.done() and self._soon(scope.cancel):
                await asyncio.wait([answer], timeout=CANCELLING)
            raise

    def post(self, function: Callable[..., object], *args: Any) -> bool:
        """Call the function in the loop, soon; returns whether the loop runs."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The loop is closed.
            return False
        return True

    def notify(self, function: Callable[..., object], *args: Any) -> object:
        """Call a plain function where trio runs, soon; calls keep their order."""
        return self._soon(lambda: function(*args))

    def guard(self, session: Session) -> Callable[[], None]:
        """Close the session when the run of trio ends, if it was not closed before."""
        scope = trio.CancelScope()

        async def watch() -> None:
            with scope:
                try:
                    await trio.sleep_forever()
                finally:
                    if not scope.cancel_called:
                        with contextlib.suppress(ChannelClosed):
                            await self.finish(session.aclose)

        trio.lowlevel.spawn_system_task(watch)
        return scope.cancel

    def _soon(self, function: Callable[[], object]) -> bool:
        """Call a function where trio runs; returns whether that run continues."""
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return False
        return True


class _Call(Generic[T]):
    """A call from trio: one task of the event loop. All methods but `result` run in the loop."""

    def __init__(
        self, function: Callable[[], Coroutine[Any, Any, T]], ended: Callable[[], object]
    ) -> None:
        self._function = function
        self._ended = ended
        self._context = _context_for("asyncio")
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Start the task."""
        self._task = asyncio.Task(self._function(), context=self._context)
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Cancel the task, which was begun before."""
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            # Retrieved, so that asyncio does not report an error that no one waits for.
            task.exception()
        self._ended()

    def result(self) -> T:
        """Return the result of the task, or raise its error."""
        task, self._task = self._task, None
        assert task is not None
        try:
            if task.cancelled():
                raise _ended()
            return task.result()
        finally:
            # The traceback of an error refers to this frame; break the reference cycle.
            del task


def _context_for(library: str) -> contextvars.Context:
    """Return a copy of the context, for code that runs under another library.

    anyio writes the name of the library that runs into the context, and its locks and events go
    by that name: those of a server of the package `mcp` would wait for trio in the event loop.
    """
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, library)
    return context


def close_sessions() -> None:
    """Close every session of the event loop, within `EXIT_PATIENCE` seconds."""
    shared_portal().thread.close(EXIT_PATIENCE)


def _settle(answer: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if answer.done():
        return
    if isinstance(error, asyncio.CancelledError):
        answer.cancel()
    elif isinstance(error, StopIteration):
        # A future refuses it.
        answer.set_exception(RuntimeError("a callback raised StopIteration"))
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(value)


def _ended() -> ChannelClosed:
    return ChannelClosed(
        "the event loop of the session has ended", hint="use sessions before the program exits"
    )
