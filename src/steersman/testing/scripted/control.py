"""Answers the control requests of the host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.scripted.hooks import HookRunner, read_hooks
from steersman.testing.scripted.host import Output
from steersman.testing.scripted.mcp import McpServers
from steersman.testing.scripted.permissions import MODES, Permissions
from steersman.testing.scripted.tools import ToolRunner
from steersman.testing.scripted.turn_loop import Tasks, TurnLoop
from steersman.testing.scripted.usage import Model, resolve_model

VERSION = "2.1.325"

CAPABILITIES = (
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "msg_lifecycle_v1",
    "request_marker_lists_v1",
    "sdk_mcp_tools_list_changed",
)
"""The capabilities of the stock CLI that the scripted CLI supports."""

COMMANDS = ("clear", "compact", "context", "cost", "review")
MODELS = ("default", "opus", "sonnet", "haiku")
AGENTS = ("claude", "Explore", "general-purpose", "Plan")

Request = JsonObject


@dataclass(frozen=True, slots=True)
class Reach:
    """The parts of a scripted CLI that control requests change or read."""

    hooks: HookRunner
    permissions: Permissions
    servers: McpServers
    tools: ToolRunner
    turns: TurnLoop
    ready: list[asyncio.Task[None]]
    """The tasks that the first turn waits for."""


class Control:
    """Answers each control request at once, also during a turn."""

    def __init__(
        self, output: Output, model: Model, reach: Reach, tasks: Tasks, end: Callable[[], None]
    ) -> None:
        self._output = output
        self._model = model
        self._hooks = reach.hooks
        self._permissions = reach.permissions
        self._servers = reach.servers
        self._tools = reach.tools
        self._turns = reach.turns
        self._ready = reach.ready
        self._tasks = tasks
        self._end = end
        self._is_initialized = False
        self._verbs: Mapping[str, Callable[[Json, Request], None]] = {
            "initialize": self._initialize,
            "interrupt": self._interrupt,
            "set_permission_mode": self._set_permission_mode,
            "set_model": self._set_model,
            "set_max_thinking_tokens": lambda request_id, _: output.succeed(request_id),
            "cancel_async_message": self._cancel_async_message,
            "mcp_status": self._mcp_status,
            "mcp_message": self._mcp_message,
            "get_binary_version": self._get_binary_version,
            "end_session": self._end_session,
        }

    def handle(self, request_id: Json, request: Request) -> None:
        """Answer one control request."""
        subtype = request.get("subtype", "undefined")
        verb = self._verbs.get(subtype)
        if verb is not None:
            verb(request_id, request)
            return
        self._output.refuse(
            request_id,
            f"Unsupported control request subtype: {subtype}",
            error_code="unsupported_request",
        )

    def connect(self, names: Iterable[str]) -> bool:
        """Start to connect new servers, for which the first turn waits; return whether any are new.

        A server that is already known is not connected again.
        """
        new = [name for name in names if name not in self._servers]
        for name in new:
            self._ready.append(self._tasks.start(self._servers.add(name).connect()))
        return bool(new)

    def _initialize(self, request_id: Json, request: Request) -> None:
        try:
            self._hooks.registered = read_hooks(request.get("hooks"))
        except ValueError as error:
            self._output.refuse(request_id, str(error))
            return
        if request.get("jsonSchema") is not None:
            self._tools.json_schema = request["jsonSchema"]
        answer = self._initialize_response(request)
        if not self.connect(request.get("sdkMcpServers") or ()):
            self._send_initialized(request_id, answer)
            return
        # The CLI sends `initialize` to the servers first, but does not wait for their answers.
        self._ready.append(self._tasks.start(self._send_initialized_later(request_id, answer)))

    async def _send_initialized_later(self, request_id: Json, answer: JsonObject) -> None:
        self._send_initialized(request_id, answer)

    def _send_initialized(self, request_id: Json, answer: JsonObject) -> None:
        self._output.succeed(
            request_id, answer, pending_permission_requests=[], pending_user_dialog_requests=[]
        )
        if self._is_initialized:
            self._output.system("background_tasks_changed", tasks=[])
        self._is_initialized = True

    def _initialize_response(self, request: Request) -> JsonDict:
        own = [{"name": name, "description": "A scripted agent."} for name in AGENTS]
        given = cast("JsonObject", request.get("agents") or {})
        agents = [
            {"name": name, "description": agent.get("description", "")}
            for name, agent in given.items()
        ]
        return {
            "commands": [
                {"name": name, "description": "", "argumentHint": "", "builtin": True}
                for name in COMMANDS
            ],
            "agents": [*own, *agents],
            "output_style": "default",
            "available_output_styles": ["default", "Concise", "Explanatory", "Learning"],
            "models": [
                {"value": name, "resolvedModel": resolve_model(name), "displayName": name.title()}
                for name in MODELS
            ],
            "account": {
                "tokenSource": "none",
                "apiKeySource": "ANTHROPIC_API_KEY",
                "apiProvider": "firstParty",
            },
            "pid": os.getpid(),
            "claude_code_version": VERSION,
            "current_permission_mode": self._permissions.mode,
            **({"hooks_applied": True} if request.get("hooks") else {}),
            "hook_on_failure_supported": True,
            "fast_mode_state": "off",
            "session_state": "idle",
            "capabilities": list(CAPABILITIES),
        }

    def _interrupt(self, request_id: Json, request: Request) -> None:
        receipt = self._turns.interrupt(cancel_queued=request.get("cancel_queued") is True)
        self._output.succeed(request_id, receipt)

    def _cancel_async_message(self, request_id: Json, request: Request) -> None:
        was_waiting = self._turns.withdraw(str(request.get("message_uuid")))
        self._output.succeed(request_id, {"cancelled": was_waiting})

    def _set_permission_mode(self, request_id: Json, request: Request) -> None:
        mode = request.get("mode")
        if mode not in MODES:
            error = f"Cannot set permission mode: must be one of {', '.join(MODES)}"
            self._output.refuse(request_id, error, error_code="invalid_mode")
        elif mode == "bypassPermissions" and not self._output.settings.may_bypass:
            error = (
                "Cannot set permission mode to bypassPermissions because the session was not"
                " launched with --dangerously-skip-permissions"
            )
            self._output.refuse(request_id, error, error_code="bypass_not_launched")
        else:
            self._permissions.mode = self._hooks.permission_mode = mode
            self._output.succeed(request_id, {"mode": mode})
            self._output.system("status", status=None, permissionMode=mode)

    def _set_model(self, request_id: Json, request: Request) -> None:
        name = request.get("model")
        if not (name is None or isinstance(name, str)):
            error = "set_model: model must be a string"
            self._output.refuse(
                request_id, error, error_code="invalid_request", model=self._model.name
            )
            return
        resolved = self._model.name = resolve_model(name)
        shown = resolved if name in (None, resolved) else f"{name} ({resolved})"
        self._output.note(f"Set model to `{shown}`")
        self._output.succeed(request_id, {"model": resolved})

    def _mcp_status(self, request_id: Json, _request: Request) -> None:
        self._output.succeed(request_id, {"mcpServers": self._servers.status()})

    def _mcp_message(self, request_id: Json, request: Request) -> None:
        self._output.succeed(request_id)
        match request:
            case {
                "server_name": str(name),
                "message": {"method": "notifications/tools/list_changed"},
            } if name in self._servers:
                self._tasks.start(self._servers[name].list_tools())
            case _:
                pass

    def _get_binary_version(self, request_id: Json, _request: Request) -> None:
        self._output.succeed(request_id, {"version": VERSION})

    def _end_session(self, request_id: Json, _request: Request) -> None:
        self._output.succeed(request_id)
        self._end()
