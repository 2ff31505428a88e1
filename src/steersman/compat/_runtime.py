"""Calls between the code of the caller and the session, which may run in different event loops."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from steersman._session.session import Session

P = ParamSpec("P")
T = TypeVar("T")

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function of the program with these arguments, and awaits what it returns if needed."""

Notify: TypeAlias = Callable[..., object]
"""Calls a function of the program with these arguments, without waiting for a result."""


class Runtime(Protocol):
    """Takes calls from the caller's code to the session, and back."""

    async def there(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a coroutine function in the event loop of the session, and wait for it."""
        ...

    async def finish(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """As `there`, also if the caller is cancelled: for what ends a session."""
        ...

    async def here(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function where the caller's code runs; called in the event loop of the session.

        What the function returns is awaited there, if it can be.
        """
        ...

    def post(self, function: Callable[..., object], *args: Any) -> object:
        """Call a plain function in the event loop of the session; calls keep their order."""
        ...

    def notify(self, function: Callable[..., object], *args: Any) -> object:
        """Call a plain function where the caller's code runs, without waiting for it."""
        ...

    def guard(self, session: Session) -> Callable[[], None]:
        """Close the session if the caller's run ends before; returns what ends the watch."""
        ...


class SameLoop:
    """The caller's code runs in the event loop of the session."""

    async def there(
        self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Await the function."""
        return await function(*args, **kwargs)

    async def finish(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await the function: the end of a session begins at the call and is not cancelled."""
        return await function()

    async def here(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function, and await what it returns if that can be awaited."""
        value = function(*args)
        return await value if inspect.isawaitable(value) else value

    def post(self, function: Callable[..., object], *args: Any) -> object:
        """Call the function."""
        return function(*args)

    def notify(self, function: Callable[..., object], *args: Any) -> object:
        """Call the function."""
        return function(*args)

    def guard(self, session: Session) -> Callable[[], None]:
        """Watch nothing: a session is closed when its event loop shuts down."""
        del session
        return _nothing


SAME_LOOP = SameLoop()
call_here: Call = SAME_LOOP.here
notify_here: Notify = SAME_LOOP.notify


def _nothing() -> None:
    """Watch nothing."""
