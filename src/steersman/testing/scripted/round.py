"""One round of a turn: one request to the model, and the tool calls of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Any

from steersman.testing.request import ModelRequest
from steersman.testing.scripted.conversation import History
from steersman.testing.scripted.host import Frame, Output
from steersman.testing.scripted.reply import ApiFailure, Block, ModelAnswer, Reply
from steersman.testing.scripted.results import Ending
from steersman.testing.scripted.tools import ToolCall, ToolOutcome, ToolRunner, rejected


class Round:
    """Plays one answer of the model and runs its tools."""

    def __init__(self, output: Output, history: History, tools: ToolRunner, ending: Ending) -> None:
        self.outcomes: list[ToolOutcome] = []
        self.deferred: ToolCall | None = None
        self._output = output
        self._history = history
        self._tools = tools
        self._ending = ending
        self._open: dict[str, ToolCall] = {}
        self._results: list[Block] = []
        """Results that are not in the conversation, because their calls are not there yet."""
        self._has_calls = False
        """Whether the answer with the calls is in the conversation."""
        self._batch: _Batch | None = None

    @property
    def has_open_tools(self) -> bool:
        """True while a tool call has no result."""
        return bool(self._open)

    async def play(self, reply: Reply, request: ModelRequest) -> ModelAnswer | ApiFailure:
        """Request an answer and run its tools, each one as soon as its block is complete."""
        async with asyncio.TaskGroup() as tasks:
            self._batch = _Batch(tasks, self._run, self._tools.is_safe_beside_others)
            answer = await reply.play(request)
            if isinstance(answer, ModelAnswer):
                self._history.add_answer(answer.blocks)
                self._add_results()
        self._add_results()
        self._history.add_reminders(
            [text for outcome in self.outcomes for text in outcome.contexts]
        )
        return answer

    async def repeat(self, call: ToolCall) -> None:
        """Run a call of an earlier process, which was deferred."""
        self._open[call.id] = call
        self._has_calls = True
        await self._run(call)

    def take_block(self, block: Block) -> Frame:
        """Start the tool that a finished block calls; return the fields for the block's message."""
        if block["type"] != "tool_use":
            return {}
        assert self._batch is not None
        call = ToolCall(block["id"], block["name"], block["input"])
        self._open[call.id] = call
        self._batch.start(call)
        meta = self._tools.meta_of(call.name)
        return {"tool_use_meta": [{"id": call.id, **meta}]} if meta else {}

    def abort(self, blocks: list[Block]) -> None:
        """Write a rejected result for every open tool call; `blocks` were written before."""
        self._history.add_answer(blocks)
        self._add_results()
        for call in self._tools.take_unanswered():
            self._ending.deny(call)
        for call in list(self._open.values()):
            self._send_result(call, self._tools.take_stopped(call))

    def _add_results(self) -> None:
        self._has_calls = True
        results, self._results = self._results, []
        self._history.add_results(results)

    async def _run(self, call: ToolCall) -> None:
        if any(each.interrupts_turn for each in self.outcomes):
            outcome = rejected()
        else:
            outcome = await self._tools.run(call)
        if outcome.was_denied:
            self._ending.deny(call)
        self.outcomes.append(outcome)
        if outcome.is_deferred:
            self.deferred = self._open.pop(call.id)
            self._history.add_deferred(asdict(call))
        else:
            self._send_result(call, outcome)

    def _send_result(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self._open.pop(call.id, None)
        for note in outcome.notes:
            self._output.system("informational", content=note, level="notice")
        block = outcome.block(call.id)
        self._results.append(block)
        if self._has_calls:
            # As the stock CLI: a process that is lost beside a later call has lost no result.
            self._add_results()
        meta = {"tool_result_meta": [{"id": call.id, **outcome.meta}]} if outcome.meta else {}
        self._output.user([block], tool_use_result=outcome.value, **meta)


class _Batch:
    """The tool calls of one answer: each starts when it may run in parallel with earlier ones."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        run: Callable[[ToolCall], Coroutine[Any, Any, None]],
        is_safe: Callable[[str], bool],
    ) -> None:
        self._tasks = tasks
        self._run = run
        self._is_safe = is_safe
        self._started: list[tuple[bool, asyncio.Task[None]]] = []
        self._is_starting = False

    def start(self, call: ToolCall) -> None:
        is_safe = self._is_safe(call.name)
        before = [task for safe, task in self._started if not (safe and is_safe)]
        self._is_starting = True
        task = self._tasks.create_task(self._run_after(before, call))
        self._is_starting = False
        self._started.append((is_safe, task))

    async def _run_after(self, before: list[asyncio.Task[None]], call: ToolCall) -> None:
        if self._is_starting:
            # A loop with eager tasks: the message with this call must be written first.
            await asyncio.sleep(0)
        if before:
            await asyncio.wait(before)
        await self._run(call)
