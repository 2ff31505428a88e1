"""One turn of a scripted CLI, from its prompts to its result: rounds of a request and its tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steersman._json import Json
from steersman.testing.request import ModelRequest
from steersman.testing.scripted.conversation import History, Prompt, PromptQueue, joined_content
from steersman.testing.scripted.hooks import HookReply, HookRunner
from steersman.testing.scripted.host import Frame, Output, new_id, uuid_fields
from steersman.testing.scripted.reply import ApiFailure, Block, ModelAnswer, Reply
from steersman.testing.scripted.results import Ending, Results
from steersman.testing.scripted.stage import Stage
from steersman.testing.scripted.tools import ToolCall, ToolOutcome, ToolRunner, rejected
from steersman.testing.scripted.usage import Model, UsageTracker, shown_model

ENFORCE = (
    "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request."
    " Call this tool now."
)
CONTINUE_AFTER: Mapping[str | None, str] = {
    "max_tokens": (
        "Output token limit hit. Resume directly \u2014 no apology, no recap of what you were"
        " doing. Pick up mid-thought if that is where the cut happened."
        " Break remaining work into smaller pieces."
    ),
    "refusal": (
        "Your response above was stopped by a safety classifier \u2014 this is not a tool or API"
        " error. The rest of it was withheld, and tool calls in it that had not finished did not"
        " run. Do not produce that content again, even reworded."
    ),
}
"""The prompts with which the CLI continues an answer, by stop reason; each once per turn."""
ASK_FOR_TEXT = (
    "[Your previous response had no visible output."
    " Please continue and produce a user-visible response.]"
)
INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_IN_TOOL = "[Request interrupted by user for tool use]"
CONTINUING = "continuing once with that noted"
OUTPUT_TRIES = 5


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts that all turns of one process share."""

    stage: Stage
    output: Output
    hooks: HookRunner
    tools: ToolRunner
    queue: PromptQueue
    history: History
    usage: UsageTracker
    results: Results
    model: Model
    send_init: Callable[[list[str]], None]


class Turn:
    """One turn, played by a task. After the task is cancelled, call `abort`."""

    def __init__(
        self, shared: Shared, prompts: list[Prompt], ready: Iterable[asyncio.Task[None]]
    ) -> None:
        self.prompts = prompts
        self.is_stopped = False
        """True if the turn was interrupted or preempted."""
        self.is_preempted = False
        """True if a prompt with priority `now` preempts the turn."""
        self._shared = shared
        self._output = shared.output
        self._history = shared.history
        self._ready = ready
        self._ending = Ending(shared.output, shared.usage, shared.results, prompts)
        self._content = joined_content(prompts)
        self._is_open = False
        self._is_replayed = False
        self._round = self._new_round()
        self._reply = Reply(
            shared.stage,
            shared.output,
            shared.usage,
            on_begin=self._begin,
            on_block=self._take_block,
        )
        self._reminded: set[str] = set()
        """The reminders that were sent to the model."""
        self._wrong_outputs = 0

    @property
    def has_result(self) -> bool:
        """True if the result was written."""
        return self._ending.is_sent

    @property
    def is_aborted(self) -> bool:
        """True if the turn was aborted."""
        return self.is_stopped or self.is_preempted or self._ending.is_aborted

    @property
    def is_in_tools(self) -> bool:
        """True if the turn waits for tools only."""
        return self._round.has_open_tools and not self._reply.is_open

    async def play(self) -> None:
        """Play the turn to its result."""
        self._shared.hooks.prompt_id = new_id()
        for task in self._ready:
            await asyncio.wait([task])
        if not await self._submit():
            return
        if not self.prompts[0].should_query:
            self._history.add_context(self.prompts[0].text)
            self._replay()
            self._ending.skip_model("")
            return
        self._history.add_prompt(self._content, self.prompts[-1].uuid)
        await self._converse()

    async def play_deferred(self, call: ToolCall) -> None:
        """Ask about a call that was deferred in an earlier process, and continue its turn."""
        for task in self._ready:
            await asyncio.wait([task])
        self._open()
        self._is_replayed = True
        self._round = self._new_round()
        await self._round.repeat(call)
        if self._round.deferred is not None:
            # As the stock CLI: a deferral of a resumed call has no `terminal_reason`.
            self._ending.defer_again(asdict(call))
            return
        if any(each.interrupts_turn for each in self._round.outcomes):
            self._note(INTERRUPTED_IN_TOOL)
            self._ending.interrupt("aborted_tools", "tool_use")
            return
        await self._converse()

    def abort(self) -> None:
        """Write the end of a turn that was interrupted or preempted."""
        self._open()
        was_streaming = self._reply.is_open or not self._round.has_open_tools
        answer = self._reply.abort()
        self._round.abort(answer)
        self._replay()
        reason = "aborted_streaming" if was_streaming else "aborted_tools"
        if self.is_preempted:
            self._reply.close()
            text = "".join(each.get("text", "") for each in answer)
            self._ending.complete(result=text, terminal_reason=reason, stop_reason=None)
            return
        self._note(INTERRUPTED if was_streaming else INTERRUPTED_IN_TOOL)
        self._reply.close()
        self._ending.interrupt(reason, None if was_streaming else "tool_use")

    # The beginning

    async def _submit(self) -> bool:
        """Run the UserPromptSubmit hooks and open the turn; return whether it may continue."""
        prompt = "\n".join(each.text for each in self.prompts)
        replies = await self._shared.hooks.fire(
            "UserPromptSubmit", {"prompt": prompt}, before_notes=self._open
        )
        self._open()
        for reply in replies:
            if (blocked := _why_blocked(reply)) is not None:
                text = f"UserPromptSubmit operation blocked by hook:\n{blocked}"
                shown = f"{text}\n\nOriginal prompt: {prompt}"
                self._stop_prompt(shown, "blocked_by_hook", blocked)
                return False
            if reply.stops:
                reason = str(reply.output.get("stopReason") or "")
                self._history.add_prompt(self._content)
                self._stop_prompt(f"Operation stopped by hook: {reason}", "stopped_by_hook", reason)
                return False
        contexts = [reply.specific.get("additionalContext") for reply in replies]
        self._history.add_reminders([each for each in contexts if each])
        return True

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._shared.send_init(self._ending.uuids)

    def _stop_prompt(self, text: str, kind: str, reason: str) -> None:
        is_kept = kind == "stopped_by_hook"
        self._output.system(
            "informational",
            content=text,
            level="warning",
            prevent_continuation=True,
            prompt_submit_outcome={"kind": kind, "prompt_kept": is_kept, "reason": reason},
        )
        if is_kept:
            self._replay()
        self._ending.skip_model(text)

    def _begin(self) -> Frame:
        self._replay()
        return self._ending.own_fields

    def _take_block(self, block: Block) -> Frame:
        return self._round.take_block(block)

    def _replay(self) -> None:
        if not self._is_replayed:
            self._is_replayed = True
            self._output.replay(self._content, self.prompts[-1].uuid)

    # Rounds

    async def _converse(self) -> None:
        rounds, is_stop_active = 0, False
        while not self._is_beyond_budget(None):
            rounds += 1
            answer = await self._ask()
            if isinstance(answer, ApiFailure):
                self._replay()
                self._ending.fail(answer)
            elif answer.calls_tools:
                self._end_after_tools(answer, rounds)
                if not self.has_result:
                    self._fold()
            elif (reminder := self._reminder(answer)) is not None:
                self._remind(answer, reminder)
            elif await self._may_stop(answer, is_active=is_stop_active):
                self._ending.complete(result=answer.text, stop_reason=answer.stop_reason)
            else:
                is_stop_active = True
            if self.has_result:
                return

    async def _ask(self) -> ModelAnswer | ApiFailure:
        shared = self._shared
        if self._output.settings.shows_partials:
            fields = uuid_fields(self._ending.uuids)
            self._output.system("status", status="requesting", **fields)
        self._round = self._new_round()
        request = self._history.request(shared.model.name, shared.tools.names)
        return await self._round.play(self._reply, request)

    def _new_round(self) -> Round:
        return Round(self._output, self._history, self._shared.tools, self._ending)

    def _fold(self) -> None:
        """Add the prompts that arrived meanwhile to this turn."""
        for prompt in self._shared.queue.take_foldable():
            self._ending.folded.append(prompt)
            self._output.replay(prompt.content, prompt.uuid)
            self._output.lifecycle(prompt.uuid, "started")
            self._history.add_folded(prompt.text)

    def _reminder(self, answer: ModelAnswer) -> str | None:
        """Return the reminder that the model gets before it may stop, unless it was sent before."""
        wanted = CONTINUE_AFTER.get(answer.stop_reason)
        if wanted is None and self._shared.tools.json_schema is not None:
            wanted = ENFORCE
        if wanted is None and not answer.text:
            wanted = ASK_FOR_TEXT
        return None if wanted in self._reminded else wanted

    def _remind(self, answer: ModelAnswer, text: str) -> None:
        self._reminded.add(text)
        marks: Frame = {"isSynthetic": True}
        if answer.stop_reason == "refusal":
            self._ending.safety_stops += 1
            model = shown_model(self._shared.model.name)
            content = f"{model}'s safeguards stopped the response above \u00b7 {CONTINUING}"
            self._output.system("informational", content=content, level="notice")
            marks["refused_message_id"] = answer.message_id
        self._note(text, **marks)

    async def _may_stop(self, answer: ModelAnswer, *, is_active: bool) -> bool:
        replies = await self._shared.hooks.fire(
            "Stop",
            {
                "stop_hook_active": is_active,
                "last_assistant_message": answer.text,
                "background_tasks": [],
                "session_crons": [],
            },
        )
        reasons = [reply.block_reason for reply in replies if reply.block_reason is not None]
        if not reasons or any(reply.stops for reply in replies):
            return True
        self._note(f"Stop hook feedback:\n{reasons[0]}", isSynthetic=True)
        self._output.system(
            "notification",
            key="stop-hook-error",
            text="Stop hook error occurred \u00b7 ctrl+o to see",
            priority="immediate",
        )
        return False

    def _note(self, text: str, **marks: Json) -> None:
        """Write a user message on behalf of the CLI, and add it to the history."""
        self._output.user([{"type": "text", "text": text}], **marks)
        self._history.add_prompt(text)

    # The end

    def _end_after_tools(self, answer: ModelAnswer, rounds: int) -> None:
        """End the turn if a tool call or a limit of this round ends it."""
        ending, reason = self._ending, answer.stop_reason
        outcomes, deferred = self._round.outcomes, self._round.deferred
        structured = [each for each in outcomes if each.structured_output is not None]
        if any(each.interrupts_turn for each in outcomes):
            self._note(INTERRUPTED_IN_TOOL)
            ending.interrupt("aborted_tools", reason)
        elif deferred is not None:
            call, why = asdict(deferred), "tool_deferred"
            ending.complete(terminal_reason=why, stop_reason=why, deferred_tool_use=call)
        elif any(each.stops_turn for each in outcomes):
            ending.complete(terminal_reason="hook_stopped", stop_reason=reason)
        elif self.is_preempted:
            ending.complete(terminal_reason="aborted_tools", stop_reason=reason)
        elif structured:
            value = structured[-1].structured_output
            text = json.dumps(value, separators=(",", ":"))
            ending.complete(result=text, structured_output=value, stop_reason=reason)
        elif self._has_no_output_left():
            problem = f"Failed to provide valid structured output after {OUTPUT_TRIES} attempts"
            exhausted = "structured_output_retry_exhausted"
            ending.exceed("max_structured_output_retries", exhausted, reason, problem)
        elif rounds == self._output.settings.max_turns:
            problem = f"Reached maximum number of turns ({rounds})"
            ending.exceed("max_turns", "max_turns", reason, problem)
        else:
            self._is_beyond_budget(reason)

    def _is_beyond_budget(self, stop_reason: str | None) -> bool:
        """End the turn if the budget is used up; return whether it is."""
        most = self._output.settings.max_budget_usd
        if most is None or self._shared.usage.cost < most:
            return False
        problem = f"Reached maximum budget (${most:g})"
        self._ending.exceed("max_budget_usd", "budget_exhausted", stop_reason, problem)
        return True

    def _has_no_output_left(self) -> bool:
        self._wrong_outputs += sum(each.is_wrong_output for each in self._round.outcomes)
        return self._wrong_outputs >= OUTPUT_TRIES


def _why_blocked(reply: HookReply) -> str | None:
    if reply.timed_out:
        return "UserPromptSubmit hook did not respond before its timeout"
    if reply.blocks:
        return reply.failure
    return reply.block_reason


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
