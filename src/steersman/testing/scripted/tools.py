"""Runs a tool call: PreToolUse hooks, permission, the tool, PostToolUse hooks."""

from __future__ import annotations

import asyncio
import inspect
import json
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import cast

from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.scripted.hooks import HookReply, HookRunner, Verdict, verdict_of
from steersman.testing.scripted.host import Host, HostClosed, HostRefused, Output, new_id
from steersman.testing.scripted.mcp import McpServers
from steersman.testing.scripted.permissions import Permissions
from steersman.testing.scripted.schema import schema_errors
from steersman.testing.scripted.stage import Stage, Subagent

BUILT_IN = (
    "Task",
    "AskUserQuestion",
    "Bash",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "Skill",
    "TaskStop",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
)
STRUCTURED_OUTPUT = "StructuredOutput"
AGENT_TYPE = "general-purpose"
_agent: ContextVar[str | None] = ContextVar("agent", default=None)
"""The subagent that makes a call; None for the main agent."""
SAFE_TOGETHER = frozenset({"Glob", "Grep", "Read", "WebFetch", "WebSearch"})

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). STOP what you are doing and wait"
    " for the user to tell you how to proceed."
)
INVALID_ANSWER = (
    "The canUseTool callback returned an invalid permission result. Expected {behavior: 'allow',"
    " updatedInput?: object} or {behavior: 'deny', message: string}."
)
STOPPED = (
    f"{REJECTED} Correction to the text above: this call was stopped while running, not refused"
    " before it ran. It may have run in part or in full, and its changes may have been written."
    " No permission prompt was involved. Work it started elsewhere (a remote command, a background"
    " process) may still be running, so check before starting the same work again."
    " The instruction to stop and wait still stands."
)
COMMON_CAUSES = (
    "Common causes: unescaped backslashes in file paths (use / or \\\\), unescaped control"
    " characters, or truncated output. Retry with valid JSON."
)
DONT_ASK = (
    "Permission to use {} has been denied because Claude Code is running in don't ask mode."
    " IMPORTANT: You *may* attempt to accomplish this action using other tools that might naturally"
    " be used to accomplish this goal, e.g. using head instead of cat. But you *should not* attempt"
    " to work around this denial in malicious ways, e.g. do not use your ability to run tests to"
    " execute non-test actions. You should only try to work around this restriction in reasonable"
    " ways that do not attempt to bypass the intent behind this denial. If you believe this"
    " capability is essential to complete the user's request, STOP and explain to the user what you"
    " were trying to do and why you need this permission. Let the user decide how to proceed."
)
INTERRUPTED = (
    "The tool call was interrupted before a result was received."
    " It may or may not have taken effect."
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A finished `tool_use` block."""

    id: str
    name: str
    input: JsonDict


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of a tool call, and its effect on the turn."""

    content: Json
    is_error: bool = False
    reports_success: bool = False
    """True if the result has `is_error: false`, which most tools leave out."""
    value: Json = None
    """The `tool_use_result`: the tool's own object, or a text after a failure."""
    meta: JsonDict = field(default_factory=JsonDict)
    contexts: tuple[str, ...] = ()
    """Additional context of hooks for the model."""
    was_denied: bool = False
    stops_turn: bool = False
    interrupts_turn: bool = False
    is_deferred: bool = False
    structured_output: Json = None
    is_wrong_output: bool = False
    notes: tuple[str, ...] = ()
    """Messages of hooks for the user."""

    def block(self, call_id: str) -> JsonDict:
        """The `tool_result` block."""
        error = {"is_error": self.is_error} if self.is_error or self.reports_success else {}
        return {"tool_use_id": call_id, "type": "tool_result", "content": self.content, **error}


@dataclass(frozen=True, slots=True)
class _Permit:
    """The permission to run a call with this input."""

    input: JsonDict
    source: JsonDict


class ToolRunner:
    """Runs the tools of one process."""

    def __init__(
        self,
        stage: Stage,
        output: Output,
        host: Host,
        hooks: HookRunner,
        permissions: Permissions,
        servers: McpServers,
    ) -> None:
        self.json_schema: JsonObject | None = output.settings.json_schema
        self._stage = stage
        self._output = output
        self._host = host
        self._hooks = hooks
        self._permissions = permissions
        self._servers = servers
        self._open_asks = 0
        self._running: set[str] = set()
        self._unanswered: list[ToolCall] = []

    @property
    def names(self) -> list[str]:
        """The names of all tools that the model may call."""
        chosen = self._output.settings.tools
        built_in = [
            name
            for name in dict.fromkeys((*BUILT_IN, *self._stage.tools))
            if chosen is None or name in chosen
        ]
        structured = [STRUCTURED_OUTPUT] if self.json_schema is not None else []
        names = [*built_in, *self._servers.tool_names, *structured]
        return [name for name in names if not self._permissions.is_removed(name)]

    def is_safe_beside_others(self, name: str) -> bool:
        """Return whether a tool may run in parallel with others."""
        found = self._servers.find(name)
        if found is None:
            return name in SAFE_TOGETHER
        server, tool = found
        annotations: JsonDict = server.tools[tool].get("annotations") or {}
        return annotations.get("readOnlyHint") is True

    def meta_of(self, name: str) -> JsonDict:
        """Return the fields of an assistant message that describe an MCP tool."""
        found = self._servers.find(name)
        if found is None:
            return {}
        server, tool = found
        shown = tool.replace("_", " ").capitalize()
        return {"display_name": shown, "server_display_name": server.name, "tool_name": tool}

    def take_unanswered(self) -> list[ToolCall]:
        """Remove and return the calls whose permission request was interrupted."""
        taken, self._unanswered = self._unanswered, []
        return taken

    def take_stopped(self, call: ToolCall) -> ToolOutcome:
        """Return the outcome of a call that an interrupt stopped, before or during its run."""
        if call.id not in self._running:
            return rejected()
        self._running.discard(call.id)
        return replace(rejected(), content=STOPPED)

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call, with its hooks and permission."""
        if (unparsed := call.input.get("__unparsedToolInput")) is not None:
            return _unreadable(call.name, unparsed["raw"])
        if call.name not in self.names:
            problem = f"Error: No such tool available: {call.name}"
            return _misused(problem, problem)
        replies = await self._fire("PreToolUse", call)
        outcome = await self._run_unless_refused(call, replies)
        notes = _notes("PreToolUse", call, replies)
        return replace(outcome, notes=(*notes, *outcome.notes))

    async def _run_unless_refused(self, call: ToolCall, replies: list[HookReply]) -> ToolOutcome:
        verdict = verdict_of(call.name, replies)
        if verdict.decision == "defer":
            return ToolOutcome("", is_deferred=True)
        if verdict.updated_input is not None:
            call = replace(call, input=verdict.updated_input)
        permit = await self._permit(call, verdict)
        if isinstance(permit, ToolOutcome):
            return permit
        call = replace(call, input=permit.input)
        self._running.add(call.id)
        outcome = await self._execute(call)
        self._running.discard(call.id)
        stops = any(reply.stops for reply in replies)
        outcome = replace(outcome, meta={"permission_decision": permit.source}, stops_turn=stops)
        return await self._after(call, outcome, _contexts(replies))

    # Permission

    async def _permit(self, call: ToolCall, verdict: Verdict) -> _Permit | ToolOutcome:
        if verdict.decision == "deny":
            source = {"decision": "reject", "source": "hook", "reason_type": "hook"}
            return _refused(verdict.reason, source, was_denied=not verdict.timed_out)
        if self._permissions.denies(call.name, call.input):
            text = f"Permission to use {call.name} has been denied."
            return self._refuse_unasked(call, text)
        if verdict.decision == "allow":
            source = {"decision": "accept", "source": "hook", "reason_type": "hook"}
            return _Permit(call.input, source)
        must_ask = verdict.decision == "ask"
        if self._permissions.allows(call.name, call.input) and not must_ask:
            return _Permit(call.input, _by_rule(call.name))
        if self._permissions.mode == "dontAsk" and not must_ask:
            return self._refuse_by_mode(call, DONT_ASK.format(call.name))
        return await self._ask(call, verdict)

    def _refuse_unasked(self, call: ToolCall, text: str) -> ToolOutcome:
        named = {"tool_name": call.name, "tool_use_id": call.id}
        self._output.system("permission_denied", **named, message=text)
        return _refused(text, {"decision": "reject", "source": "config"}, "user-rejected")

    def _refuse_by_mode(self, call: ToolCall, text: str) -> ToolOutcome:
        named = {"tool_name": call.name, "tool_use_id": call.id, "decision_reason_type": "mode"}
        self._output.system("permission_denied", **named, message=text)
        return _refused(text, {"decision": "reject", "source": "config", "reason_type": "mode"})

    async def _ask(self, call: ToolCall, verdict: Verdict) -> _Permit | ToolOutcome:
        if not self._output.settings.can_ask:
            text = (
                f"Claude requested permissions to use {call.name}, but you haven't granted it yet."
            )
            return self._refuse_unasked(call, text)
        self._open_asks += 1
        self._output.state("requires_action")
        try:
            answer = await self._hooks.permit(self._permission_request(call, verdict))
        except HostRefused as error:
            text = f"Tool permission request failed: {error}"
            return _refused(text, {"decision": "reject", "source": "config"})
        except asyncio.CancelledError:
            self._unanswered.append(call)
            raise
        except HostClosed:
            text = "Tool permission stream closed before response received"
            return _refused(text, {"decision": "reject", "source": "config"})
        finally:
            self._open_asks -= 1
            if not self._open_asks:
                self._output.state("running")
        return self._decided(call, answer)

    def _permission_request(self, call: ToolCall, verdict: Verdict) -> JsonDict:
        rule = {"toolName": call.name}
        suggestion = {
            "type": "addRules",
            "rules": [rule],
            "behavior": "allow",
            "destination": "session",
        }
        request: JsonDict = {
            "subtype": "can_use_tool",
            "tool_name": call.name,
            "display_name": self.meta_of(call.name).get("display_name", call.name),
            "input": call.input,
            "permission_suggestions": [suggestion],
            "tool_use_id": call.id,
        }
        if call.input.get("description"):
            request["description"] = str(call.input["description"])
        if found := self._servers.find(call.name):
            request["mcp_server"] = {"name": found[0].name, "source": "sdk"}
        if (agent := _agent.get()) is not None:
            request["agent_id"] = agent
        if verdict.decision == "ask":
            request |= {"decision_reason": verdict.reason, "decision_reason_type": "hook"}
        return request

    def _decided(self, call: ToolCall, answer: Json) -> _Permit | ToolOutcome:
        match answer:
            case {"behavior": "deny", "interrupt": True, "message": str()}:
                return replace(rejected(), was_denied=True, interrupts_turn=True)
            case {"behavior": "deny", "message": str(message)}:
                return _refused(message, {"decision": "reject", "source": "user_reject"})
            case {"behavior": "allow"} if _has_valid_input(cast("JsonDict", answer)):
                allowed = cast("JsonDict", answer)
                self._update(allowed.get("updatedPermissions") or ())
                source = {"decision": "accept", "source": "user_temporary"}
                return _Permit(allowed.get("updatedInput", call.input), source)
            case _:
                source = {"decision": "reject", "source": "config", "reason_type": "other"}
                return _refused(INVALID_ANSWER, source)

    def _update(self, updates: Json) -> None:
        if self._permissions.apply(updates):
            mode = self._hooks.permission_mode = self._permissions.mode
            self._output.system("status", status=None, permissionMode=mode)

    # The tool itself

    async def _execute(self, call: ToolCall) -> ToolOutcome:
        if call.name == STRUCTURED_OUTPUT:
            return self._take_structured_output(call)
        if found := self._servers.find(call.name):
            server, tool = found
            try:
                result = await server.call(tool, call.input, call.id)
            except HostClosed:
                return ToolOutcome(INTERRUPTED, is_error=True, value=f"Error: {INTERRUPTED}")
            return ToolOutcome(result.content, result.is_error, value=result.value)
        return await self._play(call)

    async def _play(self, call: ToolCall) -> ToolOutcome:
        fake = self._stage.tools.get(call.name, _echo)
        if isinstance(fake, Subagent):
            return await self._delegate(call, fake)
        try:
            played: Json = fake(dict(call.input))
            given: Json = await played if inspect.isawaitable(played) else played
        except Exception as error:  # noqa: BLE001 - the test's own code; the tool fails
            return ToolOutcome(str(error), is_error=True, value=f"Error: {error}")
        text = given if isinstance(given, str) else json.dumps(given)
        if call.name == "Bash":
            shown = text or "(Bash completed with no output)"
            return ToolOutcome(shown, value=_bash_value(text), reports_success=True)
        return ToolOutcome(text, value=given)

    async def _delegate(self, call: ToolCall, subagent: Subagent) -> ToolOutcome:
        agent = new_id("a")
        _agent.set(agent)
        task: JsonDict = {"task_id": agent, "tool_use_id": call.id}
        about = {"description": str(call.input.get("description", "")), "task_type": "local_agent"}
        self._output.system("task_started", **task, **about, is_backgrounded=False)
        marks: JsonDict = {"parent_tool_use_id": call.id, "agent_id": agent}
        said: list[str] = []
        for name, given in subagent.calls(call.input):
            made = ToolCall(new_id("toolu"), name, given)
            use = {"type": "tool_use", "id": made.id, "name": name, "input": given}
            message = {"id": new_id("msg"), "type": "message", "role": "assistant"}
            self._output.assistant(
                {**message, "model": "scripted", "content": [use], "usage": {}}, **marks
            )
            outcome = await self.run(made)
            self._output.user([outcome.block(made.id)], tool_use_result=outcome.value, **marks)
            said.append(str(outcome.content))
        self._output.system("task_notification", **task, status="completed", summary="done")
        _agent.set(None)
        return ToolOutcome("\n".join(said), value="\n".join(said))

    def _take_structured_output(self, call: ToolCall) -> ToolOutcome:
        assert self.json_schema is not None
        problems = schema_errors(call.input, self.json_schema) if self._stage.checks_output else []
        if problems:
            text = f"Output does not match required schema: {', '.join(problems)}"
            value = f"Error: {text}"
            return ToolOutcome(text, is_error=True, value=value, is_wrong_output=True)
        text = "Structured output provided successfully"
        return ToolOutcome(text, value=text, structured_output=call.input)

    # Afterwards

    async def _after(
        self, call: ToolCall, outcome: ToolOutcome, contexts: tuple[str, ...]
    ) -> ToolOutcome:
        if outcome.is_error:
            failure = {"error": outcome.content, "is_interrupt": False, "duration_ms": 0}
            await self._fire("PostToolUseFailure", call, failure)
            return replace(outcome, contexts=contexts)
        response = {"tool_response": outcome.value, "duration_ms": 0}
        replies = await self._fire("PostToolUse", call, response)
        for reply in replies:
            updated = reply.specific.get("updatedToolOutput")
            if updated is not None:
                outcome = replace(outcome, content=updated, value=updated)
            if reply.block_reason:
                contexts = (*contexts, reply.block_reason)
        return replace(
            outcome,
            notes=_notes("PostToolUse", call, replies),
            contexts=(*contexts, *_contexts(replies)),
            stops_turn=outcome.stops_turn or any(reply.stops for reply in replies),
        )

    async def _fire(
        self, event: str, call: ToolCall, fields: JsonObject | None = None
    ) -> list[HookReply]:
        given = {"tool_name": call.name, "tool_input": call.input, **(fields or {})}
        given["tool_use_id"] = call.id
        if (agent := _agent.get()) is not None:
            given |= {"agent_id": agent, "agent_type": AGENT_TYPE}
        if found := self._servers.find(call.name):
            given["mcp_server"] = {"name": found[0].name, "source": "sdk"}
        return await self._hooks.fire(event, given, tool_name=call.name, tool_use_id=call.id)


def rejected() -> ToolOutcome:
    """Return the outcome of a call that the user has rejected."""
    meta = {"non_execution_kind": "user-rejected"}
    return ToolOutcome(REJECTED, is_error=True, value="User rejected tool use", meta=meta)


def _refused(
    text: str,
    source: JsonObject,
    kind: str = "permission-rule",
    *,
    was_denied: bool = True,
) -> ToolOutcome:
    meta = {"non_execution_kind": kind, "permission_decision": source}
    value = f"Error: {text}"
    return ToolOutcome(text, is_error=True, value=value, meta=meta, was_denied=was_denied)


def _misused(problem: str, value: str) -> ToolOutcome:
    text = f"<tool_use_error>{problem}</tool_use_error>"
    return ToolOutcome(text, is_error=True, value=value)


def _unreadable(name: str, raw: str) -> ToolOutcome:
    size = len(raw.encode())
    problem = (
        f"InputValidationError: {name} was called with input that could not be parsed as JSON.\n"
        f"You sent (first {size} of {size} bytes): {raw}\n{COMMON_CAUSES}"
    )
    return _misused(problem, f"InputValidationError: JSON parse failed ({size} bytes)")


def _by_rule(name: str) -> JsonDict:
    why = {"Bash": "subcommandResults", STRUCTURED_OUTPUT: None}.get(name, "rule")
    reason = {} if why is None else {"reason_type": why}
    return {"decision": "accept", "source": "config", **reason}


def _has_valid_input(answer: JsonDict) -> bool:
    return isinstance(answer.get("updatedInput", {}), dict)


def _contexts(replies: list[HookReply]) -> tuple[str, ...]:
    found = (reply.specific.get("additionalContext") for reply in replies)
    return tuple(str(each) for each in found if each)


def _notes(event: str, call: ToolCall, replies: list[HookReply]) -> tuple[str, ...]:
    return tuple(
        f"{event}:{call.name} says: {reply.note}"
        for reply in replies
        if reply.note and not reply.stops
    )


def _bash_value(text: str) -> JsonDict:
    return {
        "stdout": text,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }


def _echo(given: JsonDict) -> str:
    return f"Echo: {json.dumps(given)}"
