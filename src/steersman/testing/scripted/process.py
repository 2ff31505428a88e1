"""One process of a scripted CLI: reads stdin, plays turns, writes messages."""

from __future__ import annotations

import asyncio
import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from steersman import _json
from steersman._json import Json, JsonDict, JsonObject
from steersman._protocol.framing import LineFramer
from steersman.errors import UsageError
from steersman.ports import Launch
from steersman.testing.scripted.control import (
    AGENTS,
    CAPABILITIES,
    COMMANDS,
    VERSION,
    Control,
    Reach,
)
from steersman.testing.scripted.conversation import PRIORITIES, Prompt, PromptQueue
from steersman.testing.scripted.hooks import HookRunner
from steersman.testing.scripted.host import Host, Output, uuid_fields
from steersman.testing.scripted.launch import read_launch
from steersman.testing.scripted.mcp import McpServers
from steersman.testing.scripted.permissions import Permissions
from steersman.testing.scripted.results import Results
from steersman.testing.scripted.stage import Stage, StartPhase
from steersman.testing.scripted.tools import ToolCall, ToolRunner
from steersman.testing.scripted.turn import Shared
from steersman.testing.scripted.turn_loop import Tasks, TurnLoop
from steersman.testing.scripted.usage import Model, UsageTracker, resolve_model
from steersman.transports.memory import Wire

CRASHED = 70
"""The exit status after an exception in the script or in the scripted CLI."""


class _BadLine(Exception):
    """A line on stdin that makes the CLI exit."""


class ScriptedProcess:
    """A peer of `MemoryTransport`: connects the parts of one CLI and reads its stdin."""

    def __init__(self, stage: Stage, on_exit: Callable[[int], None]) -> None:
        self.has_exited = False
        self._stage = stage
        self._on_exit = on_exit
        self._framer = LineFramer()
        self._tasks = Tasks(self._crashed)
        self._wire: Wire | None = None
        self._is_mute = False
        self._is_leaving = False
        self._input_has_ended = False
        self._handlers: Mapping[str, Callable[[JsonDict, bytes], None]] = {
            "user": self._on_user,
            "control_request": self._on_request,
            "control_response": self._on_response,
        }

    # The process, as seen by its transport

    def connected(self, launch: Launch, wire: Wire) -> None:
        """Start the CLI."""
        self._wire = wire
        self._build(launch, wire)
        faults = self._stage.faults
        if self._reach("first byte") and faults.exit_at is None:
            wire.write_stderr(faults.stderr.encode())
        if not (self._is_mute or self._is_leaving):
            self._control.connect(self._output.settings.sdk_servers)

    def data_received(self, data: bytes) -> None:
        """Read data that the host has written."""
        for line in self._framer.feed(data):
            assert isinstance(line, bytes)
            self._read(line)

    def input_ended(self) -> None:
        """Finish the current turn, then exit."""
        if self._is_mute:
            return
        for line in self._framer.finish():
            assert isinstance(line, bytes)
            self._read(line)
        self._input_has_ended = True
        self._host.close()
        self._leave_if_done()

    def killed(self) -> asyncio.Future[Json] | None:
        """Cancel all tasks; return a future that is done when they have ended."""
        self._is_leaving = self.has_exited = True
        return self._tasks.cancel_all()

    def exit(self, status: int, stderr: str = "") -> None:
        """Exit now, also during a turn."""
        if self._is_leaving or self._wire is None:
            return
        self._is_leaving = True
        self._wire.write_stderr(stderr.encode())
        leaving = self._tasks.cancel_all()
        if leaving is None:
            self._exited(status)
        else:
            leaving.add_done_callback(lambda _: self._exited(status))

    def _exited(self, status: int) -> None:
        assert self._wire is not None
        self.has_exited = True
        self._wire.exit(status)
        self._on_exit(status)

    # The parts

    def _build(self, launch: Launch, wire: Wire) -> None:
        settings = read_launch(launch)
        output = self._output = Output(wire, settings)
        self._host = Host(output)
        self._hooks = HookRunner(self._host, output)
        self._permissions = Permissions(settings)
        self._hooks.permission_mode = settings.permission_mode
        self._servers = McpServers(self._host, settings)
        self._tools = ToolRunner(
            self._stage, output, self._host, self._hooks, self._permissions, self._servers
        )
        self._model = Model(resolve_model(settings.model))
        self._results = Results(output)
        conversation = self._stage.memory.open(settings.session_id, resumes=settings.resumes)
        self._unfinished = conversation.resume() if settings.resumes else []
        self._deferred = conversation.history.deferred if settings.resumes else None
        shared = Shared(
            stage=self._stage,
            output=output,
            hooks=self._hooks,
            tools=self._tools,
            queue=PromptQueue(conversation.known),
            history=conversation.history,
            usage=UsageTracker(),
            results=self._results,
            model=self._model,
            send_init=self._send_init,
        )
        ready: list[asyncio.Task[None]] = []
        self._turns = TurnLoop(
            shared, conversation, self._host, self._tasks, ready, self._leave_if_done
        )
        reach = Reach(
            self._hooks, self._permissions, self._servers, self._tools, self._turns, ready
        )
        end = functools.partial(self.exit, 0)
        self._control = Control(output, self._model, reach, self._tasks, end)

    def _send_init(self, uuids: list[str]) -> None:
        settings = self._output.settings
        self._output.system(
            "init",
            cwd=settings.cwd,
            tools=self._tools.names,
            mcp_servers=self._servers.listed(),
            model=self._model.name,
            permissionMode=self._permissions.mode,
            slash_commands=list(COMMANDS),
            apiKeySource="ANTHROPIC_API_KEY",
            claude_code_version=VERSION,
            output_style="default",
            agents=list(AGENTS),
            skills=[],
            plugins=[],
            capabilities=list(CAPABILITIES),
            **uuid_fields(uuids),
        )

    def _leave_if_done(self) -> None:
        if self._input_has_ended and (self._turns.is_idle or self._tasks.were_cancelled):
            self.exit(1 if self._results.last_was_error else 0)

    def _crashed(self, error: BaseException) -> None:
        cause = _only_cause(error)
        is_usage = isinstance(cause, UsageError)
        self.exit(CRASHED, f"{cause}\n" if is_usage else "".join(traceback.format_exception(cause)))

    def _reach(self, phase: StartPhase) -> bool:
        """Apply the faults of a phase; return whether the CLI still works."""
        faults = self._stage.faults
        assert self._wire is not None
        if faults.noise and faults.noise_at == phase:
            self._wire.write(faults.noise)
        if faults.exit_at == phase:
            self.exit(faults.exit_status, faults.stderr)
        if faults.mute_at == phase:
            self._is_mute = True
        return not (self._is_mute or self._is_leaving)

    # Stdin

    def _read(self, line: bytes) -> None:
        if self._is_mute or self._is_leaving:
            return
        try:
            frame = _parsed(line)
            self._stage.received.append(frame)
            handle = self._handlers.get(str(frame.get("type")))
            if handle is not None:
                handle(frame, line)
        except _BadLine as bad:
            self.exit(1, f"{bad}\n")

    def _on_user(self, frame: JsonDict, _line: bytes) -> None:
        message = frame.get("message")
        if not isinstance(message, dict):
            raise _BadLine("Error: Missing message on user line")
        body = cast("JsonDict", message)
        if body.get("role") != "user":
            raise _BadLine(f"Error: Expected message role 'user', got '{body.get('role')}'")
        content = body.get("content")
        # The stock CLI silently ignores other contents.
        if isinstance(content, str | list) and self._reach("turn"):
            self._turns.submit(_prompt_of(frame, cast("Json", content)))

    def _on_request(self, frame: JsonDict, _line: bytes) -> None:
        request = frame.get("request")
        if not isinstance(request, dict):
            raise _BadLine("Error: Missing request on control_request")
        fields = cast("JsonDict", request)
        if fields.get("subtype") == "initialize":
            if self._stage.faults.mute_at == "initialize":
                self._output.line({"type": "keep_alive"})
            if not self._reach("initialize"):
                return
            self._resume_turn()
        if fields.get("subtype") not in self._stage.faults.unanswered:
            self._control.handle(frame.get("request_id"), fields)

    def _resume_turn(self) -> None:
        """Resume the turn during which another process was lost."""
        prompts, self._unfinished = self._unfinished, []
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            self._turns.resume_deferred(ToolCall(**deferred))
        elif prompts and self._output.settings.reruns:
            self._turns.resume_turn(prompts)

    def _on_response(self, frame: JsonDict, line: bytes) -> None:
        response = frame.get("response")
        fields = cast("JsonDict", response) if isinstance(response, dict) else {}
        # With replays on, the stock CLI echoes the host's control responses, except those to
        # cancelled requests.
        if self._output.settings.replays and not self._host.has_withdrawn(fields):
            self._output.wire.write(line + b"\n")
        self._host.answered(fields)


def _only_cause(error: BaseException) -> BaseException:
    """Return the exception inside of groups that contain only one."""
    inside: Sequence[BaseException] = getattr(error, "exceptions", ())
    return _only_cause(inside[0]) if len(inside) == 1 else error


def _parsed(line: bytes) -> JsonDict:
    try:
        found = _json.loads(line)
    except ValueError:
        raise _BadLine(
            f"Error parsing streaming input line (type=unknown, {len(line)} chars): SyntaxError"
        ) from None
    return cast("JsonDict", found) if isinstance(found, dict) else {}


def _prompt_of(frame: JsonObject, content: Json) -> Prompt:
    priority = frame.get("priority")
    uuid = frame.get("uuid")
    return Prompt(
        content,
        uuid if isinstance(uuid, str) else None,
        priority if priority in PRIORITIES else "next",
        frame.get("shouldQuery") is not False,
    )
