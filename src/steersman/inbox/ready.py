"""The conversations of a store that can be continued, as they become so."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

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
AT_ONCE = 20
"""Of how many conversations the turns are read at once."""
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
                found, wait = await keeper.call(partial(_look, seen))
                is_failing = False
            except StoreTooNew:
                raise
            except StoreError as error:
                if not (is_failing or keeper.is_closed):
                    log.warning("it cannot be seen which conversations are ready: %s", error)
                found, wait, is_failing = [], RETRY, True
            looked = loop.time()
            for each in found:
                _remember(seen, each)
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


async def _look(seen: Mapping[str, object], rows: AskRows) -> tuple[list[Ready], float]:
    """Return what is ready and was not yielded yet, and how many seconds to wait for an expiry."""
    # This lets asks expire whose time has come.
    _, expiry = await rows.changed(await rows.last_change())
    found, free = await rows.work.ready()
    new = [each for each in found if seen.get(each.conversation.session) != each.state]
    waits = [each for each in (expiry, free) if each is not None]
    wait = min(max(min(waits, default=LONGEST_WAIT), SHORTEST_WAIT), LONGEST_WAIT)
    if len(new) > AT_ONCE:
        wait = SHORTEST_WAIT
    return [await _with_turns(rows, each) for each in new[:AT_ONCE]], wait


async def _with_turns(rows: AskRows, ready: Ready) -> Ready:
    turns = await rows.work.unsettled(ready.conversation.session)
    return replace(ready, conversation=replace(ready.conversation, turns=tuple(turns)))


def _remember(seen: OrderedDict[str, object], ready: Ready) -> None:
    session = ready.conversation.session
    seen[session] = ready.state
    seen.move_to_end(session)
    while len(seen) > REMEMBERED:
        seen.popitem(last=False)
