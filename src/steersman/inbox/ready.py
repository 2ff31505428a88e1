"""The conversations of a store that can be continued, as they become so."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import suppress

from steersman.errors import StoreError, StoreTooNew
from steersman.inbox.keeper import AskKeeper
from steersman.inbox.rows import AskRows
from steersman.inbox.work_rows import Ready
from steersman.ports import Conversation

__all__ = ["ready_conversations"]

log = logging.getLogger("steersman.inbox")

REMEMBERED = 10_000
"""Of how many conversations the last state is kept, so that none is yielded twice for it."""
FRESH = 1.0
"""Seconds after which what was read is read again before it is yielded."""
RETRY = 1.0
"""Seconds until a store that failed is looked at again."""
SHORTEST_WAIT, LONGEST_WAIT = 0.01, 3600.0


async def ready_conversations(keeper: AskKeeper) -> AsyncGenerator[Conversation]:
    """Yield each conversation that can be continued, and again after each change.

    While the store cannot be reached, it waits. Ends when the store is closed.
    """
    if keeper.is_closed:
        return
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def changed() -> None:
        loop.call_soon_threadsafe(news.set)

    seen: OrderedDict[str, object] = OrderedDict()
    is_failing = False
    keeper.observe(changed)
    try:
        while not keeper.is_closed:
            news.clear()
            try:
                found, wait = await keeper.call(_look)
                is_failing = False
            except StoreTooNew:
                raise
            except StoreError as error:
                if not (is_failing or keeper.is_closed):
                    log.warning("it cannot be seen which conversations are ready: %s", error)
                found, wait, is_failing = [], RETRY, True
            looked = loop.time()
            for each in found:
                if not _is_new(seen, each):
                    continue
                yield each.conversation
                if news.is_set() or loop.time() > looked + FRESH:
                    # Another process may have taken the others meanwhile.
                    break
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await news.wait()
    finally:
        keeper.stop_observing(changed)


async def _look(rows: AskRows) -> tuple[list[Ready], float]:
    """Return what is ready, and how many seconds to wait for an expiry."""
    # This lets asks expire whose time has come.
    _, expiry = await rows.changed(await rows.last_change())
    found, free = await rows.work.ready()
    waits = [each for each in (expiry, free) if each is not None]
    return found, min(max(min(waits, default=LONGEST_WAIT), SHORTEST_WAIT), LONGEST_WAIT)


def _is_new(seen: OrderedDict[str, object], ready: Ready) -> bool:
    session = ready.conversation.session
    if seen.get(session) == ready.state:
        return False
    seen[session] = ready.state
    seen.move_to_end(session)
    while len(seen) > REMEMBERED:
        seen.popitem(last=False)
    return True
