"""What the CLI sends → the part of the session that it concerns."""

from __future__ import annotations

import logging
from typing import TypeGuard, get_args

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    EntriesMirrored,
    Event,
    ModeDiffers,
    PermissionAsked,
    StateReported,
    TurnSettled,
    TurnStarted,
    Withdrawn,
)
from steersman._session.parts import Parts
from steersman._session.read_back import differences, forbidden_tools, unknown_names
from steersman._session.requests.responder import CliRequest
from steersman.errors import CliMisbehaves, ForbiddenTool
from steersman.journal import Entry, Kind, Move
from steersman.messages.system import Init
from steersman.messages.turns import Assistant
from steersman.permissions import Ask, Payload

log = logging.getLogger("steersman.session")

# Enum member lookups are slow on Python 3.11, and this runs for every message.
MESSAGE = Kind.MESSAGE

_REQUESTS = frozenset(get_args(CliRequest))


def is_request(event: Event) -> TypeGuard[CliRequest]:
    """Whether `event` is a control request; faster than `isinstance` with structs."""
    return type(event) in _REQUESTS


class Dispatcher:
    """Receives messages and events from the link. None of its methods waits or raises."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # Looked up for every message.
        self._prompts = parts.prompts
        self._listeners = parts.listeners
        self._watch = parts.watchdog
        self._meter = parts.limits
        self.has_answered = False
        """Whether a prompt has had its result, so that the CLI has saved the conversation."""
        self._has_compared_names = False

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Record a message for turn results and limits, and notify listeners."""
        calls = self._prompts.record(entry, name)
        for call in calls:
            self._listeners.emit("tool_call" if call.is_running else "tool_result", call)
        if entry.kind is MESSAGE and self._listeners.has("message"):
            self._listeners.emit("message", entry.message)
        self._watch.observe(entry, name, calls)
        if self._meter.is_on:
            self._meter.record(entry, name)
        if name == "user":
            self._parts.decisions.record_results(entry)
        elif name == "init" and isinstance(entry.message, Init):
            self._turn_opened(entry.message)
        elif name == "result":
            self._parts.status.is_between_turns = True
            self._parts.status.park()
            self._parts.mirror.flush()

    def assistant_arrived(self, entry: Entry, message: Assistant) -> None:
        """Do what `message_arrived` does for an assistant message, which is most of them."""
        calls = self._prompts.totals.record_assistant(entry, message)
        if self._listeners.is_any:
            for call in calls:
                self._listeners.emit("tool_call" if call.is_running else "tool_result", call)
            if self._listeners.has("message"):
                self._listeners.emit("message", entry.message)
        if calls:
            self._watch.observe(entry, "assistant", calls)
        else:
            self._watch.last = "assistant"
        if self._meter.is_on:
            self._meter.record(entry, "assistant")

    def event_happened(self, event: Event) -> None:
        """Answer a request, settle a turn, or change the state."""
        parts = self._parts
        assert parts.slot.running is not None
        handlers = parts.slot.running.tasks
        if is_request(event):
            if self._listeners.is_any and self._listeners.has("ask"):
                self._emit_ask(event)
            handlers.start(event, self._prompts.context())
            return
        match event:
            case Withdrawn(request_id):
                handlers.withdraw(request_id)
            case TurnStarted(uuid):
                self._prompts.started(uuid)
                self._meter.started(uuid)
                if not parts.gate.is_closed:
                    self._watch.start()
            case EntriesMirrored(line):
                parts.mirror.received(line)
            case TurnSettled():
                self._turn_settled(event)
            case ModeDiffers(given, reported):
                self._misbehaves("permission_mode", given, reported)
            case StateReported(state):
                self._state_reported(state)
            case _:
                pass

    def line_lost(self, beginning: bytes) -> None:
        """Note that the messages of the current turns may be incomplete."""
        self._prompts.line_lost()
        if b"transcript_mirror" in beginning:
            self._parts.mirror.lost_sight()

    def caught_up(self) -> None:
        """Begin to answer the requests of the chunk that was just read."""
        if self._parts.slot.running is not None:
            self._parts.slot.running.tasks.begin()

    def _turn_opened(self, init: Init) -> None:
        """Handle `system/init`, which begins a turn and lists tools and servers."""
        parts = self._parts
        parts.status.is_between_turns = False
        parts.status.move(Move.BEGIN)
        parts.slot.listed = frozenset(init.capabilities)
        parts.mcp_status.record_init(init.mcp_servers)
        if parts.slot.session_id:
            parts.responder.servers.name_session(parts.slot.session_id)
        found = forbidden_tools(init.tools, parts.options)
        if found:
            # Before the model sees it.
            parts.slot.fail(ForbiddenTool(found))
        servers, are_set = parts.responder.servers.keys, parts.slot.has_set_servers
        for each in differences(init, parts.options, servers, are_set=are_set):
            self._misbehaves(*each)
        if not self._has_compared_names:
            self._has_compared_names = True
            for text in unknown_names(init, parts.options):
                log.warning("%s", text)
                parts.journal.fault("options", text)

    def _misbehaves(self, setting: str, given: str, reported: str) -> None:
        """End the session, because the CLI reports another setting than it was given."""
        slot = self._parts.slot
        evidence = None if slot.running is None else slot.running.link.evidence("turn")
        slot.fail(CliMisbehaves(setting, given, reported, evidence=evidence))

    def _turn_settled(self, settled: TurnSettled) -> None:
        if settled.result is not None:
            self._parts.budget.clear()
            self.has_answered = True
        self._meter.settled(settled.uuid)
        self._parts.responder.holding.turn_settled()
        result = self._prompts.settle(settled)
        if result is not None and result.outcome == "failed" and result.cause is not None:
            self._parts.flights.failed(result.cause)
        status = self._parts.status
        status.park()
        if status.is_cli_idle and not self._prompts.is_busy:
            # This peer has reported no state, so its idle state will not be reported either.
            status.move(Move.REST)

    def _state_reported(self, state: str) -> None:
        status = self._parts.status
        status.is_cli_idle = state == "idle"
        # The CLI also reports `running` when background work got an answer.
        if state == "running" and not status.is_parked:
            status.move(Move.BEGIN)
        # An `idle` from before our newest prompt may still arrive.
        elif state == "idle" and self._prompts.current is None:
            status.move(Move.REST)
            self._parts.journal.wake()

    def _emit_ask(self, event: Event) -> None:
        payload: Payload | None = None
        match event:
            case PermissionAsked(request=payload):
                if self._parts.responder.holding.was_shown(payload):
                    return
            case ElicitationAsked(elicitation=payload) | DialogAsked(dialog=payload):
                pass
            case _:
                return
        ask = Ask(
            id=event.request_id,
            session=self._parts.slot.session_id or "",
            payload=payload,
            created=self._parts.journal.clock(),
            turn=self._prompts.current_uuid,
        )
        self._listeners.emit("ask", ask)
