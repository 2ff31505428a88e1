"""The parts that one session is made of, built bottom-up: no part is set later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steersman._session.cli import CliSlot
from steersman._session.flight_recorder import FlightRecorder
from steersman._session.gate import Gate
from steersman._session.journal_writer import Log
from steersman._session.listeners import Listeners
from steersman._session.prompt_queue import Ledger
from steersman._session.readiness import ServerBook
from steersman._session.recovery import RestartBudget
from steersman._session.requests.decision_log import Decisions
from steersman._session.requests.hooks import Hooking
from steersman._session.requests.permissions import deciding_for
from steersman._session.requests.responder import Desk
from steersman._session.requests.tool_servers import Serving
from steersman._session.setup import Course
from steersman._session.status import Status
from steersman._session.usage_limits import Meter
from steersman._session.watchdog import Watch
from steersman._wire.launch import hook_id
from steersman.errors import SteersmanError
from steersman.hooks.deferring import ask_rules
from steersman.journal import Kind
from steersman.journal.snapshot import SessionSnapshot, State, StateChanged
from steersman.options import Options, Revival
from steersman.permissions import Elicitation
from steersman.ports import Caller

__all__ = ["Parts", "build"]

log = logging.getLogger("steersman.session")


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that lives as long as the session does."""

    setup: Course
    log: Log
    prompts: Ledger
    slot: CliSlot
    status: Status
    listeners: Listeners
    gate: Gate
    servers: ServerBook
    watch: Watch
    meter: Meter
    desk: Desk
    decisions: Decisions
    budget: RestartBudget
    flights: FlightRecorder
    caller_for: Callable[[str], Caller]
    """Makes what a tool server added later gets to know of the session."""

    @property
    def options(self) -> Options:
        """The session's options."""
        return self.setup.options

    def snapshot(self) -> SessionSnapshot:
        """Where the session stands now."""
        return _snapshot(self.status, self.slot, self.prompts)


def build(setup: Course, session: Any) -> Parts:
    """The parts of one session; tools get to see `session`."""
    options = setup.options
    journal = Log(options.journal_memory, setup.clock)
    slot = CliSlot(setup.plan.session_id, options.request_timeout)
    listeners = Listeners()

    def transcript() -> Any:
        return (setup.transcript(slot.session_id) if slot.session_id else None) or ()

    prompts = Ledger(journal, options.request_timeout, transcript)

    def state_changed(before: State, after: State) -> None:
        if listeners.wants("state_change"):
            snapshot = _snapshot(status, slot, prompts)
            listeners.tell("state_change", StateChanged(before, after, snapshot))

    status = Status(journal, prompts, slot, state_changed)

    def report(where: str, error: BaseException | str) -> None:
        if isinstance(error, BaseException):
            log.error("%s failed", where, exc_info=error)
        else:
            log.error("%s %s", where, error)
        journal.fault(where, error)

    decisions = Decisions(journal.write)
    deciding = deciding_for(
        options, decisions, journal.note, lambda: prompts.uuid_at_work, setup.clock, report
    )
    if setup.policy_hook is not None:
        setup.policy_hook.connect(deciding, decisions)

    def caller_for(key: str) -> Caller:
        return _caller(key, session, slot, prompts, journal, options, deciding.elicit)

    hooks = {hook_id(n): hook for n, hook in enumerate(options.hooks)}
    rules = ask_rules(options.settings, options.managed_settings)
    callers = {key: caller_for(key) for key in setup.servers}
    gate = Gate()
    return Parts(
        setup=setup,
        log=journal,
        prompts=prompts,
        slot=slot,
        status=status,
        listeners=listeners,
        gate=gate,
        servers=ServerBook(journal),
        watch=Watch(options.watchdog, slot, prompts, journal),
        meter=Meter(options.limits, slot, prompts, journal),
        desk=Desk(
            deciding,
            Hooking(hooks, report, ask_rules=rules),
            Serving(setup.servers, callers, report),
            gate,
        ),
        decisions=decisions,
        budget=RestartBudget(options.revive if isinstance(options.revive, Revival) else Revival()),
        flights=FlightRecorder(setup.on_flight, journal, slot, listeners),
        caller_for=caller_for,
    )


def _caller(
    key: str,
    session: Any,
    slot: CliSlot,
    prompts: Ledger,
    journal: Log,
    options: Options,
    elicit: Callable[[Elicitation], Any],
) -> Caller:
    def report(tool: str, error: BaseException) -> None:
        # The text of a foreign error may hold secrets; ours does not.
        reason = error.what if isinstance(error, SteersmanError) else ""
        journal.note(Kind.TOOL_FAILED, tool=tool, error=type(error).__name__, reason=reason)

    return Caller(
        slot.session_id or "",
        key,
        lambda message: slot.notify(key, message),
        report=report,
        elicit=elicit,
        session=session,
        turn=lambda: prompts.at_work,
        deps=options.deps,
    )


def _snapshot(status: Status, slot: CliSlot, prompts: Ledger) -> SessionSnapshot:
    from steersman._session.snapshot import snapshot  # noqa: PLC0415 - loaded when first asked for

    handlers = None if slot.running is None else slot.running.handlers
    return snapshot(status, handlers, prompts, slot.session_id)
