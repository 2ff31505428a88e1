"""The helm: steers a session by what its CLI says, and holds it when it is told to."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeGuard, get_args

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    Event,
    PermissionAsked,
    StateReported,
    TurnSettled,
    TurnStarted,
    Withdrawn,
)
from steersman._session.course import Course
from steersman._session.decisions import Decisions, forbidden_among
from steersman._session.inbound import Asked
from steersman._session.link import Link
from steersman._session.pausing import with_gate
from steersman._session.reviving import Revivable
from steersman.errors import ChannelClosed, ForbiddenTool, RequestLost, RequestRefused, TurnFailed
from steersman.journal import Entry, Kind, Move, Phase, step
from steersman.messages.system import Init
from steersman.messages.turns import Assistant
from steersman.permissions import Ask, Payload

__all__ = ["Helm"]

# Python 3.11 looks an enum's members up at thirty times the price of a name, for every message.
MESSAGE = Kind.MESSAGE

_ASKED = frozenset(get_args(Asked))


def is_asked(event: Event) -> TypeGuard[Asked]:
    """Whether the CLI waits for an answer; faster than `isinstance` with structs."""
    return type(event) in _ASKED


class Helm(Revivable):
    """Steers one session. Its methods that do not wait may be called at any time."""

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.capabilities: frozenset[str] | None = None
        self.decisions: Decisions | None = None
        """Set before the start."""

    @property
    def last_message(self) -> str | None:
        """The uuid of the last message of the main agent's."""
        return self.ledger.accounts.last_message

    # What the link reports

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Keep what a turn's result will need, and what the CLI can do."""
        calls = self.ledger.hear(entry, name)
        for call in calls:
            self.listeners.tell("tool_call" if call.is_running else "tool_result", call)
        if entry.kind is MESSAGE and self.listeners.wants("message"):
            self.listeners.tell("message", entry.message)
        self._watch.hear(entry, name, calls)
        if self._meter.is_on:
            self._meter.hear(entry, name)
        if name == "user" and self.decisions is not None:
            self.decisions.hear(entry)
        elif name == "init" and isinstance(entry.message, Init):
            self._greeted(entry.message)
        elif name == "result":
            self.is_between_turns = True
            self._park()

    def speech_arrived(self, entry: Entry, speech: Assistant) -> None:
        """The same for what an agent said, which is most of it."""
        calls = self.ledger.accounts.record_assistant(entry, speech)
        if self.listeners.is_any:
            for call in calls:
                self.listeners.tell("tool_call" if call.is_running else "tool_result", call)
            if self.listeners.wants("message"):
                self.listeners.tell("message", entry.message)
        if calls:
            self._watch.hear(entry, "assistant", calls)
        else:
            self._watch.last = "assistant"
        if self._meter.is_on:
            self._meter.hear(entry, "assistant")

    def _greeted(self, init: Init) -> None:
        """A turn of the CLI's begins, and it tells what it has."""
        self.is_between_turns = False
        self.move(Move.BEGIN)
        self.capabilities = frozenset(init.capabilities)
        self.servers.hear_init(init.mcp_servers)
        if self.desk is not None and self.session_id:
            self.desk.serving.name_session(self.session_id)
        found = forbidden_among(init.tools, self.options)
        if found and self.life is not None:
            # Before the model sees it.
            self.cause = ForbiddenTool(found)
            self.life.link.end()

    def event_happened(self, event: Event) -> None:
        """Answer, settle, or take note."""
        assert self.life is not None
        if is_asked(event):
            if self.listeners.is_any and self.listeners.wants("ask"):
                self._tell_of_ask(event)
            self.life.handlers.start(event, self.ledger.context())
            return
        match event:
            case Withdrawn(request_id):
                self.life.handlers.withdraw(request_id)
            case TurnStarted(uuid):
                self.ledger.began(uuid)
                self._meter.began(uuid)
                self._look()
            case TurnSettled():
                self._on_settled(event)
            case StateReported(state):
                self._on_state(state)
            case _:
                pass

    def caught_up(self) -> None:
        """Answer what was asked, now that nothing more is known about it."""
        if self.life is not None:
            self.life.handlers.begin()

    def _tell_of_ask(self, event: Event) -> None:
        payload: Payload | None = None
        match event:
            case PermissionAsked(question=payload):
                pass
            case ElicitationAsked(elicitation=payload) | DialogAsked(dialog=payload):
                pass
            case _:
                return
        ask = Ask(
            id=event.request_id,
            session=self.session_id or "",
            payload=payload,
            created=self.log.clock(),
            turn=self.ledger.uuid_at_work,
        )
        self.listeners.tell("ask", ask)

    def _on_settled(self, settled: TurnSettled) -> None:
        if settled.result is not None:
            self._losses = 0
            self._has_answered = True
        self._meter.settled(settled.uuid)
        result = self.ledger.settle(settled)
        if result is not None and result.outcome == "failed":
            told = TurnFailed(result.outcome, result.reason, text=result.text)
            self._failed(result.cause or told)
        self._park()

    def _on_state(self, state: str) -> None:
        self.is_cli_idle = state == "idle"
        # It also says so when somebody in the background has got an answer.
        if state == "running" and not self.is_parked:
            self.move(Move.BEGIN)
        # An idle from before our newest prompt may still be on its way.
        elif state == "idle" and self.ledger.at_work is None:
            self.move(Move.REST)
            self.log.wake()

    def link_ended(self, link: Link, status: int) -> None:
        """A CLI is gone: replace it, or end with it."""
        if self.life is None or link is not self.life.link:
            return
        self.life.handlers.cancel_all()
        self.is_cli_idle = self.is_between_turns = True
        if self.phase is Phase.STARTING:
            # Whoever starts it is told.
            return
        if link.is_closing:
            self._finish(self.cause)
            return
        self._lost(link, status)

    # Pausing

    async def pause(self, *, hard: bool) -> None:
        """Hold every tool from the next one on, and every prompt; or stop the whole tree."""
        life = await self.living()
        was_shut = self.gate.is_shut
        self.gate.shut()
        self.ledger.is_held = True
        try:
            if hard:
                life.link.suspend()
                self.gate.has_stopped_tree = True
            elif not self.gate.has_stopped_tree:
                await self._install_gate()
        except BaseException:
            if not was_shut:
                self._release()
            raise
        self._watch.rest()
        self._meter.pause()
        self.move(Move.PAUSE)

    async def _install_gate(self) -> None:
        """Tell the CLI of our gate; one that takes this one's place learns of it by itself."""
        while not self.gate.is_installed:
            life = await self.living()
            if not self._is_modern:
                reason = "this CLI is too old to be held between tools; use pause(hard=True)"
                raise RequestRefused("pause", reason)
            greeting = with_gate(self._course.plan.initialize)
            with suppress(RequestLost):
                await life.link.call(greeting, self.options.request_timeout)
                self.gate.is_installed = True

    def resume(self) -> None:
        """Let everything go on."""
        if self.phase is not Phase.PAUSED:
            return
        if self.gate.has_stopped_tree:
            self._resume_tree()
        self._release()
        self._meter.resume()
        self.ledger.send_next()
        # One step, so that nobody is told of work that there is not.
        self.phase = step(self.phase, Move.RESUME)
        if (self.is_cli_idle and self.ledger.at_work is None) or self.is_parked:
            self.phase = step(self.phase, Move.REST)
        self.refresh()
        self._look()

    def _release(self) -> None:
        self.gate.open()
        self.ledger.is_held = False

    def _resume_tree(self) -> None:
        self.gate.has_stopped_tree = False
        if self.life is not None:
            with suppress(ChannelClosed):
                self.life.link.resume()
