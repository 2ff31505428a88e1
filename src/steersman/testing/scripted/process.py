"""One process of a scripted CLI: lines of stdin in, frames out, turns in between."""

from __future__ import annotations

import asyncio
import functools
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast

from steersman import _json
from steersman._protocol.framing import LineFramer
from steersman.ports import Launch
from steersman.testing.scripted.control import (
    AGENTS,
    CAPABILITIES,
    COMMANDS,
    VERSION,
    Control,
    Reach,
)
from steersman.testing.scripted.hooks import HookRunner
from steersman.testing.scripted.host import Host
from steersman.testing.scripted.launch import read_launch
from steersman.testing.scripted.ledger import Ledger, Model, resolve_model
from steersman.testing.scripted.mcp import McpServers
from steersman.testing.scripted.output import Output, uuid_fields
from steersman.testing.scripted.permissions import Permissions
from steersman.testing.scripted.queue import PRIORITIES, Prompt, PromptQueue
from steersman.testing.scripted.results import Results
from steersman.testing.scripted.stage import Stage, StartPhase
from steersman.testing.scripted.tasks import Tasks
from steersman.testing.scripted.tools import ToolRunner
from steersman.testing.scripted.turn import Shared
from steersman.testing.scripted.turns import TurnLoop
from steersman.transports.memory import Wire

__all__ = ["ScriptedProcess"]

CRASHED = 70
"""The exit status when a script, or this program, has a bug."""


class _BadLine(Exception):
    """A line of stdin that kills the CLI."""


class ScriptedProcess:
    """A peer: wires the parts of one CLI together and reads its stdin."""

    def __init__(self, stage: Stage, on_exit: Callable[[int], None]) -> None:
        self.is_gone = False
        self._stage = stage
        self._on_exit = on_exit
        self._framer = LineFramer()
        self._tasks = Tasks(self._crashed)
        self._wire: Wire | None = None
        self._is_mute = False
        self._is_leaving = False
        self._input_is_over = False
        self._roads: Mapping[str, Callable[[dict[str, Any], bytes], None]] = {
            "user": self._on_user,
            "control_request": self._on_request,
            "control_response": self._on_response,
        }

    # The process, as its transport sees it

    def connected(self, launch: Launch, wire: Wire) -> None:
        """Begin."""
        self._wire = wire
        self._build(launch, wire)
        faults = self._stage.faults
        if self._reach("first byte") and faults.exit_at is None:
            wire.write_stderr(faults.stderr.encode())
        if not (self._is_mute or self._is_leaving):
            self._control.connect(self._output.settings.sdk_servers)

    def data_received(self, data: bytes) -> None:
        """Read what the host wrote."""
        for line in self._framer.feed(data):
            assert isinstance(line, bytes)
            self._read(line)

    def input_ended(self) -> None:
        """Finish the turn under way, and go."""
        if self._is_mute:
            return
        for line in self._framer.finish():
            assert isinstance(line, bytes)
            self._read(line)
        self._input_is_over = True
        self._host.lose()
        self._leave_if_done()

    def killed(self) -> asyncio.Future[Any] | None:
        """Let go of all tasks."""
        self._is_leaving = self.is_gone = True
        return self._tasks.cancel_all()

    def exit(self, status: int, stderr: str = "") -> None:
        """End now, whatever is under way."""
        if self._is_leaving or self._wire is None:
            return
        self._is_leaving = True
        self._wire.write_stderr(stderr.encode())
        leaving = self._tasks.cancel_all()
        if leaving is None:
            self._gone(status)
        else:
            leaving.add_done_callback(lambda _: self._gone(status))

    def _gone(self, status: int) -> None:
        assert self._wire is not None
        self.is_gone = True
        self._wire.exit(status)
        self._on_exit(status)

    # Its inside

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
        shared = Shared(
            stage=self._stage,
            output=output,
            hooks=self._hooks,
            tools=self._tools,
            queue=PromptQueue(conversation.known),
            history=conversation.history,
            ledger=Ledger(),
            results=self._results,
            model=self._model,
            tell_init=self._tell_init,
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

    def _tell_init(self, uuids: list[str]) -> None:
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
        if self._input_is_over and (self._turns.is_idle or self._tasks.were_taken):
            self.exit(1 if self._results.last_was_error else 0)

    def _crashed(self, error: BaseException) -> None:
        self.exit(CRASHED, "".join(traceback.format_exception(error)))

    def _reach(self, phase: StartPhase) -> bool:
        """Come to a phase, with the faults that wait there; tells whether it still works."""
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
            road = self._roads.get(str(frame.get("type")))
            if road is not None:
                road(frame, line)
        except _BadLine as bad:
            self.exit(1, f"{bad}\n")

    def _on_user(self, frame: dict[str, Any], _line: bytes) -> None:
        message = frame.get("message")
        if not isinstance(message, dict):
            raise _BadLine("Error: Missing message on user line")
        body = cast("dict[str, Any]", message)
        if body.get("role") != "user":
            raise _BadLine(f"Error: Expected message role 'user', got '{body.get('role')}'")
        content = body.get("content")
        # The stock CLI swallows other contents without a word.
        if isinstance(content, str | list) and self._reach("turn"):
            self._turns.submit(_prompt_of(frame, cast("Any", content)))

    def _on_request(self, frame: dict[str, Any], _line: bytes) -> None:
        request = frame.get("request")
        if not isinstance(request, dict):
            raise _BadLine("Error: Missing request on control_request")
        fields = cast("dict[str, Any]", request)
        if fields.get("subtype") == "initialize":
            if self._stage.faults.mute_at == "initialize":
                self._output.line({"type": "keep_alive"})
            if not self._reach("initialize"):
                return
            self._take_up()
        if fields.get("subtype") not in self._stage.faults.unanswered:
            self._control.handle(frame.get("request_id"), fields)

    def _take_up(self) -> None:
        """Go on with the turn in whose middle another process was lost."""
        prompts, self._unfinished = self._unfinished, []
        if prompts and self._output.settings.reruns:
            self._turns.take_up(prompts)

    def _on_response(self, frame: dict[str, Any], line: bytes) -> None:
        response = frame.get("response")
        fields = cast("dict[str, Any]", response) if isinstance(response, dict) else {}
        # With replays on, the stock CLI says our own answers back to us; what it no longer wants
        # to know it passes over.
        if self._output.settings.replays and not self._host.has_withdrawn(fields):
            self._output.wire.write(line + b"\n")
        self._host.answered(fields)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = _json.loads(line)
    except ValueError:
        raise _BadLine(
            f"Error parsing streaming input line (type=unknown, {len(line)} chars): SyntaxError"
        ) from None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _prompt_of(frame: Mapping[str, Any], content: Any) -> Prompt:
    priority = frame.get("priority")
    uuid = frame.get("uuid")
    return Prompt(
        content,
        uuid if isinstance(uuid, str) else None,
        priority if priority in PRIORITIES else "next",
        frame.get("shouldQuery") is not False,
    )
