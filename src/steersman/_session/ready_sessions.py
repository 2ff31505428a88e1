"""Sessions that are started before they are needed: `Agent.prewarm`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steersman._session.session import Session, start_ahead


class ReadySessions:
    """Sessions of new conversations, started and initialized. Each is given away once."""

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._ready: list[tuple[asyncio.AbstractEventLoop, Session]] = []

    async def fill(self, count: int) -> None:
        """Start or close sessions until `count` of this event loop are ready.

        If one does not start, its error is raised; those that did are ready.
        """
        loop = asyncio.get_running_loop()
        mine = [each for each in self._ready if each[0] is loop and not each[1].phase.is_over]
        missing = [self._make() for _ in range(count - len(mine))]
        try:
            started = await asyncio.gather(
                *(start_ahead(each) for each in missing), return_exceptions=True
            )
        except BaseException:
            # Cancelled: no one would ever get those that have started.
            await asyncio.gather(*(each.aclose() for each in missing), return_exceptions=True)
            raise
        ready = [each for each in started if isinstance(each, Session)]
        self._ready += [(loop, each) for each in ready]
        for _, each in mine[count:]:
            self._forget(each)
            await each.aclose()
        for error in started:
            if isinstance(error, BaseException):
                raise error

    def claim(self) -> Session | None:
        """Return a session that is ready in the running event loop, and give it away."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return None
        for home, session in list(self._ready):
            if home.is_closed() or session.phase.is_over:
                self._forget(session)
            elif home is loop:
                self._forget(session)
                return session
        return None

    def _forget(self, session: Session) -> None:
        self._ready = [each for each in self._ready if each[1] is not session]
