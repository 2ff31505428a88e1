"""Parking: a session ends its CLI while asks wait, and the next session continues its turns.

The CLI is not interrupted. Where a held call can be deferred, the CLI ends the turn itself and
exits in order; otherwise it is killed once the calls that wait are in its own file.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection

from steersman._protocol.events import HookAsked
from steersman._session.durability import PARKING
from steersman._session.gate import GATE
from steersman._session.lifecycle import Lifecycle
from steersman._session.parts import Parts
from steersman._session.requests.responder import CliRequest
from steersman._session.turn import SentPrompt
from steersman.durable.holding import HoldingHook
from steersman.errors import SteersmanError
from steersman.journal import Phase
from steersman.journal.calls import ToolCallRecord
from steersman.permissions import Ask, CanUseTool, Elicitation
from steersman.transcripts.lookup import deferred_tool

POLL = 0.02
"""Seconds between two looks at what reports no change: the CLI's file, and its tool calls."""

READING = 2.0
"""Seconds for reading in the store which asks a turn waits for; else those of this session count.
"""

UNSEEN = 0.5
"""Seconds in which a CLI writes its file, if the file cannot be read from here."""


class DurableParking:
    """Parks one session whose asks outlive it: if the caller wants it, at the end, or by itself."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle) -> None:
        self._parts = parts
        self._lifecycle = lifecycle
        holding = parts.durability.holding
        self._holding = holding if isinstance(holding, HoldingHook) else None
        self._task: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._seen: tuple[object, float] | None = None
        """What the session waited for at the last look, and since when."""
        self.waits_for: tuple[str, ...] = ()
        """The ids of the asks that wait, once the session was parked."""

    # Beginning

    def close(self) -> None:
        """Begin to close the session. It is parked if turns are left, or durable asks wait."""
        has_work = self._has_turns or self._is_waiting
        if self._task is None and has_work and not self._has_ended:
            self.begin(PARKING)
        elif self._task is None:
            self._lifecycle.close()

    async def park(self, timeout: float) -> None:
        """Park the session; returns when its CLI is being ended. A second call joins the first."""
        if self._parts.status.phase is Phase.IDLE and self._parts.slot.running is None:
            self._parts.slot.require()
        if self._task is None and not self._has_ended:
            self.begin(timeout)
        if self._task is not None:
            # Waits without passing a cancellation on: half a parking would be a CLI left alive.
            await asyncio.wait([self._task])

    def begin(self, timeout: float) -> None:
        """Begin to park. What is begun ends with the session, whatever its caller does."""
        mine = asyncio.current_task()
        self._task = asyncio.Task(self._park(timeout, mine))

    @property
    def _has_ended(self) -> bool:
        return self._parts.status.phase.is_over

    # By itself

    def watch(self) -> None:
        """Park when nothing but asks was waited for during `Park.after` seconds."""
        after = self._parts.options.park.after
        if after is not None and not self._has_ended and self._task is None:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(max(after / 10, POLL), self._look, after)

    def _look(self, after: float) -> None:
        if self._has_ended or self._task is not None:
            return
        now = asyncio.get_running_loop().time()
        waits = self._waits_only_for()
        if waits is None or self._seen is None or self._seen[0] != waits:
            self._seen = None if waits is None else (waits, now)
        elif now - self._seen[1] >= after:
            self.begin(PARKING)
        self.watch()

    def _waits_only_for(self) -> object:
        """Return what the session waits for, if that is asks alone; else None."""
        parts, asks = self._parts, self._asks
        if not asks or parts.status.phase is not Phase.RUNNING or parts.slot.running is None:
            return None
        totals = parts.prompts.totals
        is_background = any(each.is_background for each in totals.running_tasks)
        if is_background or self._own_tasks(None) or self._has_other_calls(asks):
            return None
        calls = frozenset(each.tool_use_id for each in totals.calls.running)
        return frozenset(ask.id for ask in asks), calls

    # What waits and what runs

    @property
    def _is_waiting(self) -> bool:
        """Whether asks wait, or a call that was deferred before."""
        is_held = self._holding is not None and bool(self._holding.calls)
        return bool(self._asks) or is_held or self._is_resuming

    @property
    def _has_turns(self) -> bool:
        """Whether turns are left that have rows, so that the next session can continue them."""
        prompts = self._parts.prompts
        return self._parts.durability.keeps_turns and (prompts.is_busy or bool(prompts.queued))

    @property
    def _is_resuming(self) -> bool:
        """Whether the CLI asks, or is about to ask, about a call of an earlier session."""
        parts, holding = self._parts, self._holding
        if holding is None or holding.has_prompt or parts.slot.place is None:
            return False
        return deferred_tool(parts.setup.transcript(parts.slot.place) or ()) is not None

    @property
    def _asks(self) -> list[Ask]:
        """The asks of this session that wait for an answer."""
        inbox = self._parts.responder.permissions.inbox
        held = self._parts.durability.holding.held
        return [*held] if inbox is None else [*inbox.asks, *held]

    def _own_tasks(self, mine: asyncio.Task[object] | None) -> list[asyncio.Task[None]]:
        """Return the tasks of hooks, tools and callbacks of ours that run, but for the caller's."""
        cli, holding = self._parts.slot.running, self._holding
        held = () if holding is None else holding.calls

        def only_waits(asked: CliRequest) -> bool:
            return isinstance(asked, HookAsked) and (
                asked.callback_id == GATE or asked.tool_use_id in held
            )

        return (
            []
            if cli is None
            else [each for each in cli.tasks.in_progress(only_waits) if each != mine]
        )

    def _has_other_calls(self, asks: Collection[Ask]) -> bool:
        """Whether a tool call runs that neither waits itself, nor for a subagent that waits."""
        running = self._parts.prompts.totals.calls.running
        parents = {each.tool_use_id: each.parent_tool_use_id for each in running}
        payloads = [ask.payload for ask in asks]
        servers = {each.mcp_server_name for each in payloads if isinstance(each, Elicitation)}
        # Which call an MCP server has asked for is not known: any of its own.
        begin = [each.tool_use_id for each in running if each.server in servers]
        waiting: set[str] = set()
        for first in (*begin, *map(_tool_use_id, asks)):
            call: str | None = first
            while call is not None and call not in waiting:
                waiting.add(call)
                call = parents.get(call)
        return not waiting.issuperset(parents)

    # The steps

    async def _park(self, timeout: float, mine: asyncio.Task[object] | None) -> None:
        """Bring the session to an end from which the next one can continue; then end it.

        The end comes in any case: at the deadline, after a fault, and if this task is cancelled.
        """
        parts = self._parts
        parts.prompts.is_parking = parts.prompts.is_held = True
        parts.watchdog.stop()
        try:
            async with asyncio.timeout(timeout):
                await self._prepare(mine)
        except TimeoutError:
            pass
        except Exception as error:  # noqa: BLE001 - a fault of ours must not leave a CLI alive
            parts.journal.fault("park", error)
        finally:
            self._lifecycle.leave(kills=self._is_resuming)

    async def _prepare(self, mine: asyncio.Task[object] | None) -> None:
        if self._parts.status.phase is Phase.STARTING or self._parts.slot.running is None:
            return
        await self._wait_for_store()
        asks = await self._come_to_rest(mine)
        await self._note_asks(asks)
        if not await self._defer():
            await self._wait_for_file()

    async def _wait_for_store(self) -> None:
        """Return once the asks that wait are rows, or the store does not answer."""
        parts = self._parts
        if not parts.durability.keeps_turns:
            return
        with contextlib.suppress(TimeoutError, SteersmanError):
            async with asyncio.timeout(READING):
                for prompt in parts.prompts.unsettled:
                    while True:
                        rows = await parts.durability.asks_of(prompt.uuid)
                        if len(rows) >= sum(ask.turn == prompt.uuid for ask in self._asks):
                            break
                        await asyncio.sleep(POLL)

    async def _come_to_rest(self, mine: asyncio.Task[object] | None) -> list[Ask]:
        """Use no more answers, and let finish what runs. Returns the asks that wait."""
        inbox = self._parts.responder.permissions.inbox
        asks: dict[str, Ask] = {}
        while True:
            asks |= {ask.id: ask for ask in self._asks}
            # An answer that was used, and then lost with the CLI, would be lost for good.
            if inbox is not None:
                inbox.let_go()
            if self._holding is not None:
                self._holding.let_go()
            # An answer that is on its way reaches the CLI; its call runs then.
            await asyncio.sleep(0)
            waiting = [ask for ask in asks.values() if self._is_open(ask)]
            await self._finish_work(waiting, mine)
            if all(ask.id in asks for ask in self._asks):
                return waiting

    def _is_open(self, ask: Ask) -> bool:
        """Whether the CLI still waits for the answer to an ask that was let go."""
        cli, holding = self._parts.slot.running, self._holding
        is_held = holding is not None and _tool_use_id(ask) in holding.calls
        return is_held or (
            cli is not None and any(ask.id == r.request_id for r, _ in cli.tasks.open)
        )

    async def _defer(self) -> bool:
        """Defer the call that is held, if it is all that the CLI waits for; the turn then ends.

        Returns whether that was so. The CLI loses a call that is deferred beside another one.
        """
        parts, holding = self._parts, self._holding
        if holding is None or parts.slot.running is None or parts.gate.is_closed:
            return False
        totals, waiting = parts.prompts.totals, parts.slot.running.tasks.open
        others = {each.tool_use_id for each in totals.calls.running} - {*holding.calls}
        if len(waiting) != 1 or others or totals.running_tasks or not holding.defer_one():
            return False
        link = parts.slot.running.link
        while link.is_open and (parts.prompts.is_busy or not parts.status.is_cli_idle):
            await parts.journal.signal.wait()
        return True

    async def _finish_work(self, asks: list[Ask], mine: asyncio.Task[object] | None) -> None:
        """Let hooks and tools that run finish, within `Park.grace` seconds.

        Also without asks: the answer to the last one may have come with the parking, and is used.
        """
        if self._parts.gate.has_stopped_tree:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._parts.options.park.grace):
                while True:
                    if tasks := self._own_tasks(mine):
                        await asyncio.wait(tasks)
                    elif self._has_other_calls([*asks, *self._asks]):
                        await asyncio.sleep(POLL)
                    else:
                        return

    async def _note_asks(self, asks: list[Ask]) -> None:
        """Note for each turn which asks it waits for, by their ids in the store."""
        prompts = self._parts.prompts
        left = [*prompts.unsettled, *filter(None, map(prompts.find, prompts.queued))]
        for prompt in left:
            prompt.waits_for = tuple(ask.id for ask in asks if ask.turn == prompt.uuid)
        self.waits_for = tuple(ask.id for ask in asks)
        with contextlib.suppress(TimeoutError, SteersmanError):
            async with asyncio.timeout(READING):
                await self._read_asks(prompts.unsettled)

    async def _read_asks(self, prompts: list[SentPrompt]) -> None:
        """Read the ids in the store: an ask that was known again has that of its first request."""
        if not self._parts.durability.keeps_turns:
            return
        found: list[str] = []
        for prompt in prompts:
            asks = await self._parts.durability.asks_of(prompt.uuid)
            prompt.waits_for = tuple(each.id for each in asks if each.state == "open")
            found += prompt.waits_for
        self.waits_for = tuple(found)

    async def _wait_for_file(self) -> None:
        """Return once the running calls of the main agent are in the CLI's own file.

        So is the last result that the CLI has reported: without its result a call runs again.
        """
        parts = self._parts
        running = parts.prompts.totals.calls.running
        wanted = [each.tool_use_id.encode() for each in running if not each.parent_tool_use_id]
        wanted += [b'"tool_use_id":"%b"' % each.encode() for each in self._last_ended()]
        place, cli = parts.slot.place, parts.slot.running
        if not wanted or place is None or parts.gate.has_stopped_tree:
            return
        if parts.setup.is_saved(place) is None and not parts.setup.transcript(place):
            await asyncio.sleep(UNSEEN)
            return
        while cli is not None and cli.link.is_open:
            lines = await asyncio.to_thread(parts.setup.transcript, place)
            text = b"\n".join(lines or ())
            if all(each in text for each in wanted):
                return
            await asyncio.sleep(POLL)

    def _last_ended(self) -> list[str]:
        """Return the call of the main agent that ended last, of each turn that is left.

        Also of one that the CLI continued without a prompt of this session.
        """
        prompts = self._parts.prompts
        turns = [prompts.totals.calls_of(each.uuid) for each in prompts.unsettled]
        unowned = [each for each in prompts.totals.calls.all if each.tool_use_id in prompts.unowned]
        ended = ([each for each in calls if _is_own_end(each)] for calls in (*turns, unowned))
        return [max(calls, key=_ended_at).tool_use_id for calls in ended if calls]


def _is_own_end(call: ToolCallRecord) -> bool:
    return not (call.is_running or call.parent_tool_use_id)


def _ended_at(call: ToolCallRecord) -> float:
    return call.started + (call.duration or 0.0)


def _tool_use_id(ask: Ask) -> str:
    return ask.payload.tool_use_id or "" if isinstance(ask.payload, CanUseTool) else ""
