"""The parts of one session, built bottom-up; nothing in them is set later."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._background import BackgroundTasks
from steersman._launch.plan import hook_id
from steersman._session.cli import CliSlot
from steersman._session.flight_recorder import FlightReporter
from steersman._session.gate import Gate
from steersman._session.journal_writer import JournalWriter
from steersman._session.listeners import EventListeners
from steersman._session.mcp_servers import McpStatusLog
from steersman._session.ownership import Ownership
from steersman._session.prompt_queue import PromptQueue
from steersman._session.recovery import RestartBudget
from steersman._session.requests.decision_log import DecisionLog
from steersman._session.requests.hooks import HookRunner
from steersman._session.requests.permissions import CallChecks, InboxForwarder, build_permissions
from steersman._session.requests.responder import Responder
from steersman._session.requests.tool_servers import ToolServers
from steersman._session.setup import DurableHost, SessionSetup
from steersman._session.status import Status
from steersman._session.usage_limits import UsageLimiter
from steersman._session.watchdog import SilenceWatchdog
from steersman._uuids import new_uuid
from steersman.errors import SteersmanError
from steersman.journal import Kind
from steersman.journal.snapshot import SessionEnded, SessionSnapshot
from steersman.options import Options, Revival
from steersman.permissions import Elicitation, Payload
from steersman.ports import Caller, Durability, Mirror, Transport

if TYPE_CHECKING:
    from steersman.transcripts.keys import SessionKey

log = logging.getLogger("steersman.session")


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that lives as long as the session."""

    setup: SessionSetup
    options: Options
    journal: JournalWriter
    prompts: PromptQueue
    slot: CliSlot
    status: Status
    listeners: EventListeners
    gate: Gate
    mcp_status: McpStatusLog
    watchdog: SilenceWatchdog
    limits: UsageLimiter
    responder: Responder
    decisions: DecisionLog
    budget: RestartBudget
    ownership: Ownership
    flights: FlightReporter
    mirror: Mirror
    """Copies the conversation to the session store, if there is one."""
    durability: Durability
    """Keeps the lease and the turns of the session in a store, if its inbox is in one."""
    background: BackgroundTasks
    """Runs what is done for the stores of the session, if there are any."""
    caller_for: Callable[[str], Caller]
    """Makes the `Caller` for an in-process MCP server, by its key."""

    def snapshot(self) -> SessionSnapshot:
        """Return the current state of the session."""
        return self.status.snapshot()

    def last_snapshot(self) -> SessionEnded:
        """Return the state in which the session has ended, with its last result."""
        return SessionEnded.of(self.snapshot(), self.prompts.last_result)


def build(setup: SessionSetup, session: Any) -> Parts:
    """Build the parts of one session; `session` is what in-process tools get to see."""
    options = setup.options
    journal = JournalWriter(options.journal_memory, setup.clock)
    slot = CliSlot(setup.plan.session_id, options.request_timeout, setup.plan.path)
    listeners = EventListeners()
    report = _fault_reporter(journal)
    background = BackgroundTasks(log)

    def settled(uuid: str, outcome: str) -> None:
        durability.settled(uuid, outcome)

    transcript = _transcript_reader(setup, slot)
    prompts = PromptQueue(journal, options.request_timeout, transcript, settled)
    host = DurableHost(
        setup, slot, journal, listeners, prompts, background, report, lambda: responder
    )
    durability = setup.durable(host)
    status = Status(journal, prompts, slot, listeners)
    decisions = DecisionLog(journal.write)
    permissions = build_permissions(options, decisions, report, _forwarder(host, durability))
    if setup.policy_hook is not None:
        setup.policy_hook.connect(permissions, decisions, lambda: slot.initialized)

    def caller_for(key: str) -> Caller:
        return _caller(key, session, slot, prompts, journal, options, permissions.elicit)

    gate = Gate()
    runner = _hook_runner(setup, durability, slot, prompts, report, lambda: servers.keys)
    servers = ToolServers(setup.servers, {key: caller_for(key) for key in setup.servers}, report)
    responder = Responder(permissions, runner, servers, gate, durability.holding, setup.policy_hook)
    return Parts(
        setup=_with_transport(setup, durability.transport(setup.transport)),
        options=options,
        journal=journal,
        prompts=prompts,
        slot=slot,
        status=status,
        listeners=listeners,
        gate=gate,
        mcp_status=McpStatusLog(journal),
        watchdog=_watchdog(options, slot, prompts, journal),
        limits=UsageLimiter(options.limits, options.budget, slot, prompts, journal),
        responder=responder,
        decisions=decisions,
        budget=_restart_budget(options),
        ownership=Ownership(setup.claim, options.wait, durability),
        flights=FlightReporter(setup.save_flight, journal, slot, listeners),
        mirror=_mirror(setup, status, slot, journal, listeners, background),
        durability=durability,
        background=background,
        caller_for=caller_for,
    )


def _forwarder(host: DurableHost, durability: Durability) -> InboxForwarder | None:
    inbox = host.setup.options.inbox
    if inbox is None:
        return None

    def is_repeatable(payload: Payload) -> bool:
        return host.responder().is_repeatable(payload)

    return InboxForwarder(
        inbox,
        host.journal.note,
        lambda: host.prompts.current_uuid,
        host.journal.clock,
        host.report,
        host.slot.redact,
        CallChecks(is_repeatable, durability.holding.requested),
    )


def _restart_budget(options: Options) -> RestartBudget:
    given = options.revive
    return RestartBudget(given if isinstance(given, Revival) else Revival())


def _watchdog(
    options: Options, slot: CliSlot, prompts: PromptQueue, journal: JournalWriter
) -> SilenceWatchdog:
    has_partials = options.include_partial_messages is not False
    return SilenceWatchdog(options.watchdog, slot, prompts, journal, has_partials=has_partials)


def _with_transport(setup: SessionSetup, transport: Transport) -> SessionSetup:
    return setup if transport is setup.transport else replace(setup, transport=transport)


def _hook_runner(
    setup: SessionSetup,
    durability: Durability,
    slot: CliSlot,
    prompts: PromptQueue,
    report: Callable[[str, BaseException | str], None],
    own_servers: Callable[[], tuple[str, ...]],
) -> HookRunner:
    hooks = durability.holding.hooks(setup.options.hooks)
    return HookRunner(
        {hook_id(n): hook for n, hook in enumerate(hooks)},
        report,
        recheck=None if setup.policy_hook is None else setup.policy_hook.recheck,
        waits_on_resume=lambda: slot.is_modern,
        own_servers=own_servers,
        on_stop=prompts.stopped_by_hook,
    )


def _transcript_reader(setup: SessionSetup, slot: CliSlot) -> Callable[[], Sequence[bytes]]:
    def read() -> Sequence[bytes]:
        return (setup.transcript(slot.place) if slot.place else None) or ()

    return read


def _mirror(
    setup: SessionSetup,
    status: Status,
    slot: CliSlot,
    journal: JournalWriter,
    listeners: EventListeners,
    background: BackgroundTasks,
) -> Mirror:
    def report(error: str, key: SessionKey | None) -> None:
        about = {
            "type": "system",
            "subtype": "mirror_error",
            "error": error,
            "key": key,
            "uuid": new_uuid(),
            "session_id": slot.session_id or "",
        }
        log.warning("session store: %s", error)
        entry = journal.append(journal.clock(), Kind.MESSAGE, _json.dumps(about))
        journal.wake()
        if listeners.has("message"):
            listeners.emit("message", entry.message)

    return setup.mirror(lambda: status.is_quiet, report, background)


def _fault_reporter(journal: JournalWriter) -> Callable[[str, BaseException | str], None]:
    def report(where: str, error: BaseException | str) -> None:
        if isinstance(error, BaseException):
            log.error("%s failed", where, exc_info=error)
        else:
            log.error("%s %s", where, error)
        journal.fault(where, error)

    return report


def _caller(
    key: str,
    session: Any,
    slot: CliSlot,
    prompts: PromptQueue,
    journal: JournalWriter,
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
        turn=lambda: None if prompts.current is None else prompts.current.turn,
        deps=options.deps,
    )
