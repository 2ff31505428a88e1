"""One turn of a scripted CLI, from its prompts to its result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steersman.testing.scripted_history import History
from steersman.testing.scripted_hooks import HookReply, HookRunner
from steersman.testing.scripted_ledger import Ledger, Model
from steersman.testing.scripted_output import Frame, Output, uuid_fields
from steersman.testing.scripted_queue import Prompt, PromptQueue, joined_content
from steersman.testing.scripted_reply import ApiFailure, Block, Reply, Said
from steersman.testing.scripted_results import Results
from steersman.testing.scripted_stage import Stage
from steersman.testing.scripted_tools import ToolCall, ToolOutcome, ToolRunner, rejected

__all__ = ["Shared", "Turn"]

ENFORCE = (
    "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request."
    " Call this tool now."
)
INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_IN_TOOL = "[Request interrupted by user for tool use]"
OUTPUT_TRIES = 5


@dataclass(frozen=True, slots=True)
class Shared:
    """What all turns of one process share."""

    stage: Stage
    output: Output
    hooks: HookRunner
    tools: ToolRunner
    queue: PromptQueue
    history: History
    ledger: Ledger
    results: Results
    model: Model
    tell_init: Callable[[list[str]], None]


class Turn:
    """Played by a task; whoever cancels it must `abort` it afterwards."""

    def __init__(
        self, shared: Shared, prompts: list[Prompt], ready: Iterable[asyncio.Task[None]]
    ) -> None:
        self.prompts = prompts
        self.is_cut_in = False
        """A prompt with priority `now` wants its place."""
        self.is_over = False
        self._shared = shared
        self._output = shared.output
        self._ready = ready
        self._content = joined_content(prompts)
        self._uuids = [each.uuid for each in prompts if each.uuid is not None]
        self._main_uuid = prompts[-1].uuid
        self._folded: list[Prompt] = []
        self._frames_before = shared.output.user_frames
        self._is_open = False
        self._is_replayed = False
        self._denials: list[Frame] = []
        self._open_calls: dict[str, ToolCall] = {}
        self._results: list[Block] = []
        self._outcomes: list[ToolOutcome] = []
        self._reply = self._new_reply()
        self._batch: _Batch | None = None
        self._deferred: ToolCall | None = None
        self._output_failures = 0

    @property
    def is_in_tools(self) -> bool:
        """Whether a tool is running, or about to."""
        return bool(self._open_calls) and not self._reply.is_open

    async def play(self) -> None:
        """Play it to its result."""
        for task in self._ready:
            await asyncio.wait([task])
        if not await self._submit():
            return
        if not self.prompts[0].should_query:
            self._shared.history.add_context(self.prompts[0].text)
            self._replay()
            self._end_without_model("")
            return
        self._shared.history.add_prompt(self._content)
        await self._converse()

    def abort(self) -> None:
        """Tell what an interrupt, or a prompt with priority `now`, leaves of it."""
        self._open()
        was_streaming = self._reply.is_open or not self._open_calls
        blocks = self._reply.abort()
        history = self._shared.history
        history.add_answer(blocks)
        for call in self._shared.tools.take_unanswered():
            self._deny(call)
        for call in list(self._open_calls.values()):
            self._tell_result(call, rejected())
        history.add_results(self._results)
        self._replay()
        reason = "aborted_streaming" if was_streaming else "aborted_tools"
        if self.is_cut_in:
            self._reply.close()
            text = "".join(each.get("text", "") for each in blocks)
            self._finish(result=text, terminal_reason=reason, stop_reason=None)
            return
        self._tell_interrupted(INTERRUPTED if was_streaming else INTERRUPTED_IN_TOOL)
        self._reply.close()
        self._fail_interrupted(reason, None if was_streaming else "tool_use")

    # The beginning

    async def _submit(self) -> bool:
        """Show the prompt to hooks and open the turn; tells whether it may go on."""
        prompt = "\n".join(each.text for each in self.prompts)
        replies = await self._shared.hooks.fire("UserPromptSubmit", {"prompt": prompt})
        self._open()
        for reply in replies:
            if (blocked := _why_blocked(reply)) is not None:
                text = f"UserPromptSubmit operation blocked by hook:\n{blocked}"
                self._stop_prompt(
                    f"{text}\n\nOriginal prompt: {prompt}", "blocked_by_hook", blocked
                )
                return False
            if reply.stops:
                reason = str(reply.output.get("stopReason") or "")
                self._shared.history.add_prompt(self._content)
                self._stop_prompt(f"Operation stopped by hook: {reason}", "stopped_by_hook", reason)
                return False
        contexts = [reply.specific.get("additionalContext") for reply in replies]
        self._shared.history.add_reminders([each for each in contexts if each])
        return True

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._shared.tell_init(self._uuids)

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
        self._end_without_model(text)

    def _replay(self) -> None:
        if not self._is_replayed:
            self._is_replayed = True
            self._output.replay(self._content, self._main_uuid)

    # Rounds

    async def _converse(self) -> None:
        rounds, is_reminded, is_stop_active = 0, False, False
        while True:
            rounds += 1
            said = await self._round()
            if isinstance(said, ApiFailure):
                self._fail(said)
                return
            if said.calls_tools:
                if self._ends_after_tools(said, rounds):
                    return
                self._fold()
                continue
            if self._shared.tools.json_schema is not None and not is_reminded:
                is_reminded = True
                self._tell_synthetic(ENFORCE)
                continue
            if await self._may_stop(said, is_active=is_stop_active):
                self._finish(result=said.text, stop_reason=said.stop_reason)
                return
            is_stop_active = True

    async def _round(self) -> Said | ApiFailure:
        shared = self._shared
        if self._output.settings.shows_partials:
            uuids = [*self._uuids, *(each.uuid for each in self._folded if each.uuid)]
            self._output.system("status", status="requesting", **uuid_fields(uuids))
        self._results, self._outcomes = [], []
        request = shared.history.request(shared.model.name, shared.tools.names)
        async with asyncio.TaskGroup() as tasks:
            self._batch = _Batch(tasks, self._run_call, shared.tools.is_safe_beside_others)
            said = await self._reply.play(request)
            if isinstance(said, Said):
                shared.history.add_answer(said.blocks)
        shared.history.add_results(self._results)
        contexts = [text for outcome in self._outcomes for text in outcome.contexts]
        shared.history.add_reminders(contexts)
        return said

    def _new_reply(self) -> Reply:
        shared = self._shared
        return Reply(
            shared.stage,
            shared.output,
            shared.ledger,
            on_begin=self._begin,
            on_block=self._take_block,
        )

    def _begin(self) -> Frame:
        self._replay()
        return uuid_fields(self._uuids, self._main_uuid)

    def _take_block(self, block: Block) -> Frame:
        if block["type"] != "tool_use":
            return {}
        call = ToolCall(block["id"], block["name"], block["input"])
        self._open_calls[call.id] = call
        assert self._batch is not None
        self._batch.start(call)
        meta = self._shared.tools.meta_of(call.name)
        return {"tool_use_meta": [{"id": call.id, **meta}]} if meta else {}

    async def _run_call(self, call: ToolCall) -> None:
        if any(each.interrupts_turn for each in self._outcomes):
            outcome = rejected()
        else:
            outcome = await self._shared.tools.run(call)
        if outcome.was_denied:
            self._deny(call)
        self._outcomes.append(outcome)
        if outcome.is_deferred:
            del self._open_calls[call.id]
            self._deferred = call
        else:
            self._tell_result(call, outcome)

    def _deny(self, call: ToolCall) -> None:
        named = {"tool_name": call.name, "tool_use_id": call.id}
        self._denials.append({**named, "tool_input": call.input})

    def _tell_result(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self._open_calls.pop(call.id, None)
        block = outcome.block(call.id)
        self._results.append(block)
        meta = {"tool_result_meta": [{"id": call.id, **outcome.meta}]} if outcome.meta else {}
        self._output.user([block], tool_use_result=outcome.value, **meta)

    def _fold(self) -> None:
        """Take in what was sent meanwhile."""
        for prompt in self._shared.queue.take_foldable():
            self._folded.append(prompt)
            self._output.replay(prompt.content, prompt.uuid)
            self._output.lifecycle(prompt.uuid, "started")
            self._shared.history.add_folded(prompt.text)

    async def _may_stop(self, said: Said, *, is_active: bool) -> bool:
        fields: dict[str, Any] = {
            "stop_hook_active": is_active,
            "last_assistant_message": said.text,
            "background_tasks": [],
            "session_crons": [],
        }
        replies = await self._shared.hooks.fire("Stop", fields)
        reasons = [reply.block_reason for reply in replies if reply.block_reason is not None]
        if not reasons or any(reply.stops for reply in replies):
            return True
        self._tell_synthetic(f"Stop hook feedback:\n{reasons[0]}")
        self._output.system(
            "notification",
            key="stop-hook-error",
            text="Stop hook error occurred · ctrl+o to see",
            priority="immediate",
        )
        return False

    # The end

    def _ends_after_tools(self, said: Said, rounds: int) -> bool:
        """Whether something in this round ends the turn; then it is told."""
        settings, reason = self._output.settings, said.stop_reason
        outcomes = self._outcomes
        structured = [each for each in outcomes if each.structured_output is not None]
        if any(each.interrupts_turn for each in outcomes):
            self._tell_interrupted(INTERRUPTED_IN_TOOL)
            self._fail_interrupted("aborted_tools", reason)
        elif self._deferred is not None:
            call, why = asdict(self._deferred), "tool_deferred"
            self._finish(terminal_reason=why, stop_reason=why, deferred_tool_use=call)
        elif any(each.stops_turn for each in outcomes):
            self._finish(terminal_reason="hook_stopped", stop_reason=reason)
        elif self.is_cut_in:
            self._finish(terminal_reason="aborted_tools", stop_reason=reason)
        elif structured:
            value = structured[-1].structured_output
            text = json.dumps(value, separators=(",", ":"))
            self._finish(result=text, structured_output=value, stop_reason=reason)
        elif self._has_no_output_left():
            self._fail_limit("max_structured_output_retries", "structured_output_retry_exhausted")
        elif settings.max_turns is not None and rounds >= settings.max_turns:
            problem = f"Reached maximum number of turns ({settings.max_turns})"
            self._fail_limit("max_turns", "max_turns", problem)
        elif (
            settings.max_budget_usd is not None
            and self._shared.ledger.cost >= settings.max_budget_usd
        ):
            problem = f"Reached maximum budget (${settings.max_budget_usd:g})"
            self._fail_limit("max_budget_usd", "budget_exhausted", problem)
        return self.is_over

    def _has_no_output_left(self) -> bool:
        wrong = [
            each
            for each in self._outcomes
            if each.is_error and str(each.content).startswith("Output does not match")
        ]
        self._output_failures += len(wrong)
        return self._output_failures >= OUTPUT_TRIES

    def _tell_synthetic(self, text: str) -> None:
        self._output.user([{"type": "text", "text": text}], isSynthetic=True)
        self._shared.history.add_prompt(text)

    def _tell_interrupted(self, text: str) -> None:
        self._output.user([{"type": "text", "text": text}])
        self._shared.history.add_prompt(text)

    def _fail(self, failure: ApiFailure) -> None:
        self._replay()
        message = {
            "id": self._shared.hooks.prompt_id,
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": failure.text}],
            "stop_reason": "stop_sequence",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        marks = {"error": failure.error, "is_api_error_message": True, **failure.fields}
        self._output.assistant(message, **marks, **uuid_fields(self._uuids, self._main_uuid))
        self._finish(
            result=failure.text,
            is_error=True,
            terminal_reason="api_error",
            stop_reason="stop_sequence",
            **failure.fields,
        )

    def _fail_interrupted(self, reason: str, stop_reason: str | None) -> None:
        shown = "null" if stop_reason is None else stop_reason
        diagnostic = f"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={shown}"
        self._close_folded()
        self._end(
            "error_during_execution",
            is_error=True,
            terminal_reason=reason,
            stop_reason=stop_reason,
            errors=[diagnostic],
        )

    def _fail_limit(self, subtype: str, reason: str, problem: str = "") -> None:
        self._close_folded()
        self._end(
            f"error_{subtype}",
            is_error=True,
            terminal_reason=reason,
            stop_reason="tool_use",
            errors=[problem] if problem else [],
        )

    def _finish(self, *, terminal_reason: str = "completed", **fields: Any) -> None:
        self._close_folded()
        fields = {"is_error": False, "api_error_status": None, "result": "", **fields}
        self._end("success", terminal_reason=terminal_reason, **fields)

    def _end_without_model(self, text: str) -> None:
        self.is_over = True
        fields = {"is_error": False, "stop_reason": None, "num_turns": 0, "result": text}
        self._tell_end("success", fields)

    def _end(self, subtype: str, **fields: Any) -> None:
        self.is_over = True
        turns = 1 + self._output.user_frames - self._frames_before
        self._tell_end(subtype, {"num_turns": turns, **fields})

    def _tell_end(self, subtype: str, fields: Mapping[str, Any]) -> None:
        uuids = [*self._uuids, *(each.uuid for each in self._folded if each.uuid)]
        self._shared.results.tell(
            subtype,
            {
                **fields,
                "permission_denials": self._denials,
                **self._shared.ledger.settle(),
                **uuid_fields(uuids, self._main_uuid),
            },
        )

    def _close_folded(self) -> None:
        for prompt in self._folded:
            self._output.lifecycle(prompt.uuid, "completed")


class _Batch:
    """The tools of one answer: each begins as soon as it may run beside those before it."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        run: Callable[[ToolCall], Any],
        is_safe: Callable[[str], bool],
    ) -> None:
        self._tasks = tasks
        self._run = run
        self._is_safe = is_safe
        self._started: list[tuple[bool, asyncio.Task[None]]] = []

    def start(self, call: ToolCall) -> None:
        is_safe = self._is_safe(call.name)
        before = [task for safe, task in self._started if not (safe and is_safe)]
        self._started.append((is_safe, self._tasks.create_task(self._run_after(before, call))))

    async def _run_after(self, before: list[asyncio.Task[None]], call: ToolCall) -> None:
        if before:
            await asyncio.wait(before)
        await self._run(call)


def _why_blocked(reply: HookReply) -> str | None:
    if reply.timed_out:
        return "UserPromptSubmit hook did not respond before its timeout"
    if reply.blocks:
        return reply.failure
    return reply.block_reason
