"""The helm: keeps a session on its course, over all the CLIs that it has.

Hears what the link reports, moves the phase, and replaces a CLI that is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
    Event,
    HookAsked,
    PermissionAsked,
    StateReported,
    ToolCalled,
    TurnSettled,
    TurnStarted,
    Unanswerable,
    Withdrawn,
)
from steersman._session.ceremonies import raise_end
from steersman._session.course import Continuation, Course, Flight
from steersman._session.decisions import Decisions, forbidden_among
from steersman._session.handlers import Handlers
from steersman._session.handover import Handover, hand_over
from steersman._session.inbound import Desk
from steersman._session.ledger import Ledger
from steersman._session.life import Life
from steersman._session.link import Link
from steersman._session.listening import Listeners, StateChanged
from steersman._session.log import Log
from steersman._session.measuring import Meter
from steersman._session.pausing import Gate, with_gate
from steersman._session.readiness import ServerBook, await_servers
from steersman._session.starting import start
from steersman._session.views import add_open
from steersman._session.watching import Watch
from steersman._wire.launch import Plan
from steersman.control import Initialized, Interrupt
from steersman.errors import (
    ChannelClosed,
    CliExited,
    ForbiddenTool,
    LimitReached,
    RequestLost,
    RequestRefused,
    ResumeNotFound,
    Stalled,
    SteersmanError,
    TurnFailed,
    UsageError,
)
from steersman.journal import Entry, Kind, Move, Phase, step
from steersman.journal.replaying import snapshot_of
from steersman.journal.snapshot import SessionSnapshot, State
from steersman.journal.standing import Standing
from steersman.messages import Assistant, Init, Message
from steersman.options import Revival
from steersman.permissions import Ask, Payload

__all__ = ["Helm"]

log = logging.getLogger("steersman.session")

FLIGHT = 500
"""Entries of the journal that are kept after an error."""

LOST = -9
"""The status of a CLI whose end nobody told us."""


class Helm:
    """Steers one session. Its methods that do not wait may be called at any time."""

    def __init__(self, course: Course) -> None:
        self.options = course.options
        self.log = Log(course.options.journal_memory, course.clock)
        self.ledger = Ledger(self.log, course.options.request_timeout, self._written_down)
        self.gate = Gate()
        self.listeners = Listeners()
        self.phase = Phase.IDLE
        self.initialized: Initialized | None = None
        self.capabilities: frozenset[str] | None = None
        self.cause: SteersmanError | None = None
        """Why the session is over, if it did not end in order."""
        self.life: Life | None = None
        self.desk: Desk | None = None
        """Set before the start."""
        self.decisions: Decisions | None = None
        """Set before the start."""
        self.servers = ServerBook(self.log)
        self.is_cli_idle = True
        """Whether the CLI says that it has nothing left to do; subagents count as something."""
        self.is_between_turns = True
        """Whether the main agent has nothing to do."""
        self.last_message: str | None = None
        """The uuid of the last message of the main agent's."""
        self.restarts = 0
        """How many CLIs were lost and replaced."""
        self._course = course
        self._watch = Watch(course.options.watchdog, self)
        self._meter = Meter(course.options.limits, self)
        self._ending: Move | None = None
        self._parting: asyncio.Task[None] | None = None
        self._known_id = course.plan.session_id
        self._told: State = "idle"
        self._since = 0.0
        self._started: float | None = None
        self._completed: float | None = None
        self._losses = 0
        self._has_answered = False
        """Whether a prompt of ours came to its result: then the conversation is on the disk."""
        self._why_killed: Stalled | LimitReached | None = None
        self._starting = asyncio.Event()
        """Clear while the first CLI is being started; each step of that is bounded."""
        self._starting.set()
        self._reviving: asyncio.Task[None] | None = None

    # What one can know

    @property
    def session_id(self) -> str | None:
        """The conversation's id, as far as it is known."""
        told = "" if self.life is None else self.life.link.connection.session_id
        self._known_id = told or self._known_id
        return self._known_id

    @property
    def state(self) -> State:
        """The phase, or what the session waits for in it."""
        if self.life is not None and self.phase is Phase.RUNNING:
            if self.life.handlers.waits_for_person:
                return "waiting_permission"
            if self.life.handlers.waits_for_tool:
                return "waiting_tool_call"
        return self.phase.value

    def snapshot(self) -> SessionSnapshot:
        """Where the session stands now."""
        standing = Standing()
        standing.phase, standing.state, standing.since = self.phase, self.state, self._since
        standing.started, standing.completed = self._started, self._completed
        if self.life is not None:
            add_open(standing, self.life.handlers)
        return snapshot_of(
            standing,
            self.ledger.accounts,
            session_id=self.session_id,
            queued=self.ledger.queued,
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing happens and nothing waits, in the background neither."""
        return (
            self.phase is not Phase.STARTING
            and self.ledger.at_work is None
            and not self.ledger.queued
            and self.is_cli_idle
            and not self.is_reviving
            and not self.ledger.accounts.running_tasks
        )

    @property
    def started(self) -> float | None:
        """When the first CLI was launched."""
        return self._started

    def at_work(self) -> Life:
        """The CLI that can be spoken to now. Raises what it is that keeps us from it."""
        if self.cause is not None:
            raise self.cause
        if self.life is None or self.initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        if not self.life.link.is_open:
            raise ChannelClosed("this session is closed", hint="open another session")
        return self.life

    async def living(self) -> Life:
        """The same, after a revival that is under way; each of its steps is bounded."""
        while self._reviving is not None and not self._reviving.done():
            await asyncio.wait([self._reviving])
        return self.at_work()

    async def answering(self, operation: str) -> Life:
        """The same, unless it is stopped where it stands, and would not answer."""
        life = await self.living()
        if self.gate.has_stopped_tree:
            raise RequestRefused(
                operation, "the CLI is stopped by pause(hard=True); resume() first"
            )
        return life

    @property
    def is_reviving(self) -> bool:
        """Whether a lost CLI is being replaced."""
        return self._reviving is not None and not self._reviving.done()

    def refuse_more(self) -> None:
        """Raise `LimitReached` if the session's own limit is used up."""
        self._meter.refuse_more()

    # Life and death

    async def start(self) -> None:
        """Run the first CLI and greet it."""
        if self.phase is not Phase.IDLE or self.life is not None:
            raise UsageError("session", self, "a session that was not started before")
        assert self.desk is not None
        if self._course.record is not None:
            self.log.keep(self._course.record(self._redacted, self._on_full_disk))
        self.move(Move.LAUNCH)
        self._starting.clear()
        try:
            await self.desk.serving.attach()
            await self._begin(self._course.plan)
        except BaseException as error:
            await self._give_up(error)
            raise
        finally:
            self._starting.set()
        assert self.life is not None
        self.move(Move.GREET)
        self.ledger.move_to(self.life.link)

    async def _begin(self, plan: Plan, handover: Handover | None = None) -> None:
        """Run a CLI. On failure it is gone again."""
        assert self.desk is not None
        if self._ending is not None:
            raise ChannelClosed("this session was closed while it was starting")
        if self.gate.is_installed or self.gate.is_shut:
            plan = replace(plan, initialize=with_gate(plan.initialize))
            self.gate.is_installed = True
            self.gate.has_stopped_tree = False
        link = Link(plan, self.options, self, self.log)
        self.life = Life(link, Handlers(self.desk, link, self._on_waiting))
        if handover is not None:
            self.ledger.announce(link, handover)
        self.initialized = await start(link, plan, self._course.transport, self.options.startup)
        self.ledger.tells_all = self._is_modern
        await await_servers(link, self.servers, self.options, self.desk.serving.keys)

    async def _give_up(self, error: BaseException) -> None:
        """End a session that did not start: failed, unless it was we who did not want it to."""
        assert self.desk is not None
        is_wanted = self._ending is not None or isinstance(error, asyncio.CancelledError)
        self._ending = self._ending or (Move.CANCEL if is_wanted else Move.FAIL)
        cause = error if isinstance(error, SteersmanError) and not is_wanted else None
        if not self.phase.is_over:
            self._finish(cause)
        if cause is None and not is_wanted:
            self._keep_flight(error)
        if self._parting is not None:
            await asyncio.shield(self._parting)
        await self.listeners.hear_out(self.options.close_grace)

    def close(self, ending: Move = Move.COMPLETE) -> None:
        """Begin to end the session: in order, or at once if it is cancelled."""
        if self.phase.is_over or (self.phase is Phase.IDLE and self.life is None):
            self._close_unused(ending)
            return
        self._ending = self._ending or ending
        self.ledger.take_back(None, also_queued=True)
        if self._reviving is not None:
            self._reviving.cancel()
        if self.life is not None:
            self.life.handlers.cancel_all()
            self._end_life(self.life, ending)

    def _close_unused(self, ending: Move) -> None:
        """One that was never started can only be cancelled; one that is over stays as it is."""
        if ending is Move.CANCEL and not self.phase.is_over:
            self._ending = ending
            self._finish(None)

    def _end_life(self, life: Life, ending: Move) -> None:
        if ending is Move.CANCEL or self.phase is Phase.STARTING:
            life.link.end()
        elif life.link.is_open:
            # A tree that was stopped is ended as it stands: it must not run on to hear of it.
            if self.ledger.at_work is not None and not self.gate.has_stopped_tree:
                # Also where it has not begun: at the end of its input the CLI would still run it.
                life.link.tell(Interrupt(cancel_queued=True), self.options.request_timeout)
            life.link.close(self.options.close_grace)

    async def see_it_gone(self) -> None:
        """Return when the CLI's whole tree is gone, and everybody has been told."""
        await self._starting.wait()
        if self.life is None or self.desk is None:
            return
        if self._reviving is not None:
            await asyncio.wait([self._reviving])
        link = self.life.link
        if link.was_opened:
            await asyncio.wait([link.gone], timeout=3 * self.options.close_grace + 10)
            if not link.gone.done():
                # The ladder is the transport's, and it has lost its way: nobody shall wait for it.
                link.exited(LOST)
        if not self.phase.is_over:
            self._finish(None)
        if self._parting is not None:
            # Shielded: nobody may be left uninformed because one who waits is cancelled.
            await asyncio.shield(self._parting)
        await self.listeners.hear_out(self.options.close_grace)

    async def _part(self) -> None:
        """Take leave of hooks and servers; also where nobody waits for the end."""
        assert self.desk is not None
        if self.life is not None:
            await self.life.handlers.wait(self.options.close_grace)
        if self.initialized is not None:
            await raise_end(self.desk.hooking, self.options, self.session_id or "")
        await self.desk.serving.detach()

    def _finish(self, cause: SteersmanError | None) -> None:
        """Settle what is left: cancelled if we closed, failed with `cause` if the CLI left us."""
        self.cause = self.cause or cause
        self._watch.rest()
        self._meter.rest()
        self.ledger.settle_all(cause)
        self.move((self._ending or Move.COMPLETE) if cause is None else Move.FAIL)
        self.log.end()
        if cause is not None:
            self._failed(cause)
        self.listeners.tell("complete", self.snapshot())
        self._parting = asyncio.get_running_loop().create_task(self._part())

    # Revival

    def kill(self, why: Stalled | LimitReached) -> None:
        """End a CLI that does not obey; a stalled one is brought back."""
        self._why_killed = why
        if self.life is not None:
            self.life.link.kill()

    def _may_revive(self) -> bool:
        return (
            self.options.revive is not False
            and self._course.again is not None
            and self.options.persist_session
            and not isinstance(self._why_killed, LimitReached)
            and self.session_id is not None
        )

    async def _revive(self, cause: SteersmanError) -> None:
        """Replace a lost CLI, or end the session with what keeps us from it."""
        limits = self.options.revive
        limits = limits if isinstance(limits, Revival) else Revival()
        while self._losses < limits.most:
            self._losses += 1
            at_work = tuple(turn.uuid for turn in self.ledger.written)
            self.log.note(Kind.RESTARTED, at_work, cause=cause.code, attempt=self._losses)
            if self._losses > 1:
                await asyncio.sleep(limits.backoff * 2 ** (self._losses - 2))
            try:
                await self._try_again(cause)
            except ResumeNotFound as error:
                cause.__cause__ = error
                break
            except SteersmanError as error:
                cause.__cause__ = error
            else:
                return
        self._finish(cause)

    async def _try_again(self, cause: SteersmanError) -> None:
        """Run a CLI that goes on; anew if the lost one had not written down a line."""
        try:
            await self._begin_again(cause, is_new=False)
        except ResumeNotFound:
            if not self._may_be_unwritten():
                raise
            await self._begin_again(cause, is_new=True)

    async def _begin_again(self, cause: SteersmanError, *, is_new: bool) -> None:
        assert self._course.again is not None
        assert self.session_id is not None
        modern, lines = self._is_modern, self._written_down()
        handover = hand_over(self.ledger.written, lines, is_new=is_new, is_modern=modern)
        reruns = modern and not is_new and self.ledger.needs_rerun
        plan = self._course.again(Continuation(self.session_id, is_new, reruns))
        await self._begin(self._with_servers(plan), handover if reruns else None)
        self._go_on(handover, cause)

    def _written_down(self) -> Sequence[bytes]:
        """What the CLI has written down about the conversation, as far as we can read it."""
        lines = self._course.transcript(self.session_id) if self.session_id else None
        return lines or ()

    def _with_servers(self, plan: Plan) -> Plan:
        """Name the servers that are there now: some may have come or gone since the start."""
        assert self.desk is not None
        servers = list(self.desk.serving.keys) or None
        greeting = msgspec.structs.replace(plan.initialize, sdk_mcp_servers=servers)
        return replace(plan, initialize=greeting)

    @property
    def _is_modern(self) -> bool:
        """Whether the CLI can wait for our hooks before it takes a turn up again."""
        return self.initialized is not None and bool(self.initialized.capabilities)

    def _may_be_unwritten(self) -> bool:
        """Whether the conversation can have been lost before its first line was on the disk."""
        goes_on = self.options.resume is not None or self.options.continue_conversation
        return not self._has_answered and (not goes_on or self.options.fork_session)

    def _go_on(self, handover: Handover, cause: SteersmanError) -> None:
        assert self.life is not None
        self.restarts += 1
        goes_on = self.ledger.at_work is not None and not self.gate.is_shut
        self.move(Move.TAKE_UP if goes_on else Move.GREET)
        if self.gate.is_shut:
            self.move(Move.PAUSE)
        self.ledger.move_to(self.life.link, handover, cause)
        self._look()

    async def restart(self, at: str) -> None:
        """Have another CLI go on from the message `at`; the one that is there ends in order."""
        life = await self.living()
        if self._course.again is None or self.session_id is None:
            raise UsageError("checkpoint", at, "a session that can be resumed")
        if not self.is_at_rest:
            raise UsageError("checkpoint", at, "a session at rest: wait for idle(), or interrupt()")
        plan = self._with_servers(self._course.again(Continuation(self.session_id, at=at)))
        self.move(Move.LAUNCH)
        life.link.close(self.options.close_grace)
        await asyncio.wait([life.link.gone], timeout=3 * self.options.close_grace + 10)
        try:
            await self._begin(plan)
        except BaseException as error:
            self._finish(error if isinstance(error, SteersmanError) else None)
            raise
        assert self.life is not None
        self.move(Move.GREET)
        self.ledger.move_to(self.life.link)

    # What the link reports

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Keep what a turn's result will need, and what the CLI can do."""
        for call in self.ledger.hear(entry, name):
            self.listeners.tell("tool_call" if call.is_running else "tool_result", call)
        if entry.kind is Kind.MESSAGE and self.listeners.wants("message"):
            self.listeners.tell("message", entry.message)
        self._watch.hear(entry, name)
        self._meter.hear(entry, name)
        if name == "assistant":
            self._spoke(entry.message)
        if self.decisions is not None:
            self.decisions.hear(entry, name)
        if name == "init" and isinstance(entry.message, Init):
            self._greeted(entry.message)
        elif name == "result":
            self.is_between_turns = True
            self._park()

    def _spoke(self, message: Message) -> None:
        if isinstance(message, Assistant) and message.parent_tool_use_id is None:
            self.last_message = message.uuid

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
        match event:
            case (
                PermissionAsked()
                | ElicitationAsked()
                | DialogAsked()
                | HookAsked()
                | ToolCalled()
                | Unanswerable()
            ):
                if self.listeners.wants("ask"):
                    self._tell_of_ask(event)
                self.life.handlers.start(event, self.ledger.context())
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

    @property
    def is_parked(self) -> bool:
        """Whether only background work is left: prompts are welcome, and someone is still busy."""
        has_turn = self.ledger.at_work is not None or not self.is_between_turns
        return not has_turn and any(
            each.is_background for each in self.ledger.accounts.running_tasks
        )

    def _park(self) -> None:
        """Come to rest beside background work; the CLI calls itself running while agents are."""
        if self.is_parked and not self._waits:
            self.move(Move.REST)

    @property
    def _waits(self) -> bool:
        """Whether a person is asked, or a tool of ours runs."""
        handlers = None if self.life is None else self.life.handlers
        return handlers is not None and (handlers.waits_for_person or handlers.waits_for_tool)

    def _on_waiting(self) -> None:
        """Somebody is waited for, or no longer; background work can ask as well."""
        if self._waits and self.phase is Phase.IDLE:
            self.phase = step(self.phase, Move.BEGIN)
        self._park()
        self.refresh()

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

    def _lost(self, link: Link, status: int) -> None:
        phase = "turn" if self.ledger.at_work else self.phase.value
        why, self._why_killed = self._why_killed, None
        cause: SteersmanError = why or CliExited(
            "the CLI ended in the middle of the session",
            hint="open the conversation again with resume=session.id",
            evidence=link.evidence(phase, status),
        )
        self._watch.lose()
        if isinstance(why, LimitReached) or not self._may_revive():
            self._finish(cause)
            return
        self.ledger.lose_cli()
        self.move(Move.LAUNCH)
        self._reviving = asyncio.get_running_loop().create_task(self._revive(cause))
        self._reviving.add_done_callback(_look_at)

    # Keeping what happened

    def _redacted(self, line: bytes) -> bytes:
        return line if self.life is None else self.life.link.redactor.line(line)

    def _on_full_disk(self, report: str) -> None:
        log.error("the journal is no longer written: %s", report)
        self.log.fault("journal file", report)

    def _failed(self, error: SteersmanError) -> None:
        self.listeners.tell("error", error)
        self._keep_flight(error)

    def _keep_flight(self, error: BaseException) -> None:
        if self._course.on_flight is None:
            return
        journal = self.log.journal
        stderr = "" if self.life is None else self.life.link.evidence("flight").stderr_tail
        version = "" if self.initialized is None else self.initialized.claude_code_version
        recent = max(0, journal.last_seq - FLIGHT)
        entries = [
            Entry(each.seq, each.at, each.kind, self._redacted(each.line), each.turns, each.details)
            for each in journal.after(0, most=journal.last_seq)
            if each.seq > recent or each.kind is Kind.PHASE
        ]
        self._course.on_flight(Flight(error, self.session_id, entries, stderr, version))

    # Phases

    def move(self, move: Move) -> None:
        """Go into another phase, if the table has that move."""
        self.phase = step(self.phase, move)
        self.refresh()

    def refresh(self) -> None:
        """Write down that the state is another one than before."""
        before, self._told = self._told, self.state
        if before == self._told:
            return
        self._since = self.log.clock()
        if self.phase is Phase.STARTING and self._started is None:
            self._started = self._since
        if self.phase.is_over:
            self._completed = self._since
        told = {"before": before, "after": self._told}
        self.log.append(self._since, Kind.PHASE, details=told)
        self.log.wake()
        if self.listeners.wants("state_change"):
            self.listeners.tell("state_change", StateChanged(before, self._told, self.snapshot()))

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

    def _look(self) -> None:
        """Watch the CLI, unless it is held."""
        if not self.gate.is_shut:
            self._watch.look()

    def _release(self) -> None:
        self.gate.open()
        self.ledger.is_held = False

    def _resume_tree(self) -> None:
        self.gate.has_stopped_tree = False
        if self.life is not None:
            with suppress(ChannelClosed):
                self.life.link.resume()


def _look_at(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("reviving a session failed", exc_info=task.exception())
