"""Start, restart, rewind and close: a session has one CLI at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import msgspec

from steersman._launch.plan import LaunchPlan
from steersman._session.cli import Handshake, RunningCli
from steersman._session.dispatcher import Dispatcher
from steersman._session.gate import with_gate
from steersman._session.link import CliLink
from steersman._session.mcp_servers import restore_servers, wait_for_servers
from steersman._session.ownership import find_session
from steersman._session.parts import Parts
from steersman._session.programs import AwaitFlag, report
from steersman._session.recovery import Handover, plan_handover
from steersman._session.requests.hooks import run_session_end
from steersman._session.requests.tasks import RequestTasks
from steersman._session.setup import Resumption
from steersman._session.startup import REAPING, begin_totals, start
from steersman.control.session import Interrupt
from steersman.errors import (
    ChannelClosed,
    CliExited,
    CliMisbehaves,
    Described,
    LimitReached,
    OptionRefused,
    RequestRefused,
    ResumeNotFound,
    SessionInUse,
    SteersmanError,
    UnsafeCli,
    UsageError,
)
from steersman.journal import Kind, Move, Phase

log = logging.getLogger("steersman.session")

await_flag = AwaitFlag()
"""Shared by all sessions: which programs refuse a flag does not depend on the session."""

Replacing = Coroutine[Any, Any, SteersmanError | None]
"""Replaces a CLI; returns why the session fails, if there is no other CLI."""

UNKNOWN_STATUS = -9
"""The exit status of a CLI whose transport never reported one."""


class Lifecycle:
    """Starts, restarts and ends the CLIs of one session."""

    def __init__(self, parts: Parts, dispatcher: Dispatcher) -> None:
        self.restarts = 0
        """How many CLIs were lost and replaced."""
        self._parts = parts
        self._dispatcher = dispatcher
        self._ending: Move | None = None
        """How the session ends, once that is decided."""
        self._notifying: asyncio.Task[None] | None = None
        self._restarting: asyncio.Task[SteersmanError | None] | None = None
        """Replaces the CLI. If it ends without a CLI, `_replaced` ends the session."""
        self._overdue: asyncio.TimerHandle | None = None
        """Set while the CLI is being closed: when its exit must have been reported."""
        self._flushing: asyncio.Task[None] | None = None
        """Set while a session store gets what is left, after which the session has ended."""
        self._has_finished = asyncio.Event()
        """Set when `_finish` has ended the session, and its last tasks have begun."""
        self._has_started = asyncio.Event()
        """Clear only while the first CLI is being started."""
        self._has_started.set()

    # The current CLI

    @property
    def has_ended(self) -> bool:
        """Whether the session has ended, and its hooks and servers have been notified."""
        has_notified = self._notifying is None or self._notifying.done()
        return self._parts.status.phase.is_over and has_notified

    @property
    def is_open(self) -> bool:
        """Whether the session has a CLI that nothing has begun to close."""
        phase, cli = self._parts.status.phase, self._parts.slot.running
        return cli is not None and self._ending is None and not phase.is_over

    @property
    def is_restarting(self) -> bool:
        """Whether a lost CLI is being replaced."""
        return self._restarting is not None and not self._restarting.done()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs and nothing waits, background work and restarts included."""
        return self._parts.status.is_quiet and not self.is_restarting

    async def ready(self) -> RunningCli:
        """Return the current CLI, after waiting for a restart in progress.

        Raises as `CliSlot.require`.
        """
        self._parts.slot.home.check()
        while self._restarting is not None and not self._restarting.done():
            await asyncio.wait([self._restarting])
        return self._parts.slot.require()

    async def responsive(self, operation: str) -> RunningCli:
        """Return the current CLI. Raises `RequestRefused` if `pause(hard=True)` has stopped it."""
        cli = await self.ready()
        if self._parts.gate.has_stopped_tree:
            raise RequestRefused(
                operation, "the CLI is stopped by pause(hard=True)", hint="resume() first"
            )
        return cli

    # The start

    async def start(self) -> None:
        """Launch the first CLI and wait for its handshake."""
        parts = self._parts
        is_new = parts.status.phase is Phase.IDLE and parts.slot.running is None
        if not is_new or not self._has_started.is_set():
            raise UsageError(
                "session",
                Described("one that was started"),
                "a session that was not started before",
            )
        await self._open_journal()
        parts.status.move(Move.LAUNCH)
        self._has_started.clear()
        try:
            await parts.ownership.take(parts.slot.session_id, lambda: self._ending is not None)
            plan = await self._find_conversation()
            await parts.responder.servers.attach()
            cli = await self._launch_first(plan)
        except BaseException as error:
            await self._give_up(error)
            raise
        finally:
            self._has_started.set()
        parts.status.move(Move.GREET)
        parts.prompts.attach(cli.link)

    async def _find_conversation(self) -> LaunchPlan:
        """Return the plan of the first CLI, after finding what it resumes in the session store.

        The conversation is locked before it is read. A fork reads one that it does not own.
        """
        parts, setup = self._parts, self._parts.setup
        if setup.plan_from is None:
            return setup.plan
        session_id = await parts.mirror.find()
        if not parts.options.fork_session:
            await parts.ownership.take(session_id, lambda: self._ending is not None)
        resume = await parts.mirror.restore(session_id)
        if resume is None:
            return setup.plan
        plan = setup.plan_from(resume)
        parts.slot.open_file(plan.session_id, plan.path)
        return plan

    async def _open_journal(self) -> None:
        """Open the sinks of the journal. The session may be closed meanwhile."""
        parts = self._parts
        if parts.setup.open_journal is None:
            return
        sink = parts.setup.open_journal(parts.slot.redact, self._on_full_disk)
        self._has_started.clear()
        try:
            await parts.journal.open(sink, parts.options.startup.spawn)
        except BaseException:
            self._has_started.set()
            raise

    async def _launch_first(self, plan: LaunchPlan) -> RunningCli:
        """Run the first CLI. One that continues a conversation of another owner is run again.

        It reads the conversation when it starts, so it must start when the conversation is free.
        """
        parts = self._parts
        is_known = parts.slot.session_id is not None
        try:
            return await self._launch(plan)
        except SessionInUse:
            session_id = parts.slot.session_id
            if is_known or session_id is None or not parts.options.wait:
                raise
        await parts.ownership.take(session_id, lambda: self._ending is not None)
        return await self._launch(self._next_plan(Resumption(session_id)))

    async def _own(self, link: CliLink) -> None:
        """Record which CLI the session runs. With `continue_conversation` only it knows the id."""
        parts = self._parts
        if parts.slot.session_id is None and link.pid is not None:
            parts.slot.know(await find_session(parts.setup.running_session, link.pid))
            await parts.ownership.own(parts.slot.session_id)
        parts.ownership.runs(link.pid)

    async def _launch(self, plan: LaunchPlan, handover: Handover | None = None) -> RunningCli:
        """Run a CLI and wait for its handshake. On failure its process has exited.

        A CLI that does not know `--await-initialize` is started again without it.
        """
        plan = await_flag.adapt(plan)
        setup, options = self._parts.setup, self._parts.options
        # A new conversation whose id no CLI has seen has no file.
        may_have_file = options.goes_on or options.session_id is not None
        if self._parts.slot.running is None and plan.session_id and may_have_file:
            setup.remove_unwritten(plan.session_id)
        try:
            return await self._launch_once(plan, handover)
        except OptionRefused as error:
            without = await_flag.without_flag(plan, error)
            if without is None:
                raise
        return await self._launch_once(without, handover)

    async def _launch_once(self, plan: LaunchPlan, handover: Handover | None) -> RunningCli:
        parts = self._parts
        if self._ending is not None:
            raise ChannelClosed("this session was closed while it was starting")
        if parts.gate.is_installed or parts.gate.is_closed:
            plan = replace(plan, initialize=with_gate(plan.initialize))
            parts.gate.is_installed = True
            parts.gate.has_stopped_tree = False
        is_fresh = parts.slot.running is None and not parts.options.goes_on
        link = CliLink(plan, parts.options, self._dispatcher, parts.journal, self._link_ended)
        status = parts.status
        handlers = RequestTasks(parts.responder, link, status.set_waiting, status.is_in_turn)
        parts.slot.running = cli = RunningCli(link, handlers)
        if not is_fresh:
            parts.mirror.resumes()
        if handover is not None:
            parts.prompts.expect(link, handover)

        async def initialized(link: CliLink, handshake: Handshake) -> None:
            await self._own(link)
            if not is_fresh:
                await begin_totals(link, handshake, parts.prompts.totals.costs, parts.options)

        handshake = await start(link, plan, parts.setup, initialized)
        self._started_with(handshake)
        parts.limits.launched(is_fresh=is_fresh)
        parts.prompts.reports_lifecycle = parts.slot.is_modern
        if parts.slot.is_modern:
            link.connection.reports_lifecycle()
        await restore_servers(link, parts.mcp_status, parts.responder.servers, parts.options)
        await wait_for_servers(link, parts.mcp_status, parts.options, parts.responder.servers.keys)
        if parts.slot.cause is not None:
            # What the CLI has reported meanwhile has ended it: it continues a turn by itself.
            await asyncio.wait([link.exit_status], timeout=REAPING)
            raise parts.slot.cause
        return cli

    def _started_with(self, handshake: Handshake) -> None:
        """Record the answer of a CLI, and log once what does not hold on its release."""
        slot, table = self._parts.slot, self._parts.setup.releases
        before = slot.release.version
        slot.set_handshake(handshake)
        slot.release = table.find(handshake.claude_code_version)
        if slot.release.version != before:
            report(slot.release, table)

    async def _give_up(self, error: BaseException) -> None:
        """End a session that did not start: failed, unless it was closed or cancelled."""
        parts = self._parts
        is_wanted = self._ending is not None or isinstance(error, asyncio.CancelledError)
        self._ending = self._ending or (Move.CANCEL if is_wanted else Move.FAIL)
        cause = error if isinstance(error, SteersmanError) and not is_wanted else None
        self._finish(cause)
        if cause is None and not is_wanted:
            parts.flights.keep(error)
        if self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._notifying is not None:
            await asyncio.shield(self._notifying)
        await parts.listeners.drain(parts.options.close_grace)

    # The loss of a CLI

    def _link_ended(self, link: CliLink, status: int) -> None:
        """Handle the exit of a CLI: restart it, or end the session."""
        parts = self._parts
        if parts.slot.running is None or link is not parts.slot.running.link:
            return
        parts.slot.running.tasks.cancel_all()
        parts.status.is_cli_idle = parts.status.is_between_turns = True
        if status != 0 or not link.is_closing:
            # It may have written entries that it could not report any more.
            parts.mirror.lost_sight(at_once=True)
        if parts.status.phase is Phase.STARTING:
            # `start` raises the error.
            return
        if link.is_closing:
            self._finish(parts.slot.cause)
        else:
            self._lost(link, status)

    def _lost(self, link: CliLink, status: int) -> None:
        parts = self._parts
        phase = "turn" if parts.prompts.current else parts.status.phase.value
        why, parts.slot.why_killed = parts.slot.why_killed, None
        cause: SteersmanError = why or CliExited(
            "the CLI exited in the middle of the session",
            hint="open the conversation again with resume=session.id",
            evidence=link.evidence(phase, status),
        )
        parts.watchdog.reset()
        if parts.prompts.is_parking:
            # What it was asked about is asked again by the next CLI, in another session.
            self._finish(None)
            return
        is_hard = isinstance(why, LimitReached) and parts.options.limits.is_hard
        if is_hard or not self._may_restart():
            self._finish(cause)
            return
        parts.prompts.cli_lost(cause, parts.budget.per_turn)
        self._replace(self._restart(cause))

    def _may_restart(self) -> bool:
        options, setup = self._parts.options, self._parts.setup
        return (
            options.revive is not False
            and setup.plan_next is not None
            and options.persist_session
            and self._parts.slot.session_id is not None
        )

    def _replace(self, replacing: Replacing) -> asyncio.Task[SteersmanError | None]:
        """Run `replacing` in a task that no caller's cancellation ends, only the close."""
        self._parts.status.move(Move.LAUNCH)
        self._restarting = asyncio.Task(replacing)
        # A callback, because a task that is cancelled before its first step runs no code.
        self._restarting.add_done_callback(self._replaced)
        return self._restarting

    def _replaced(self, task: asyncio.Task[SteersmanError | None]) -> None:
        """End the session if it was closed during a restart, or if the restart has failed."""
        if task.cancelled():
            self._finish(None)
        elif (error := task.exception()) is not None:
            self._finish(_unexpected(error))
        elif (cause := task.result()) is not None:
            self._finish(cause)

    async def _restart(self, cause: SteersmanError) -> SteersmanError | None:
        """Replace the lost CLI. Returns `cause` if that fails."""
        parts, budget = self._parts, self._parts.budget
        budget.lost(asyncio.get_running_loop().time())
        while not budget.is_spent and parts.slot.cause is None:
            pause = budget.next_pause()
            at_work = tuple(turn.uuid for turn in parts.prompts.unsettled)
            parts.journal.note(Kind.RESTARTED, at_work, cause=cause.code, attempt=budget.attempts)
            if pause or budget.attempts > 1:
                await asyncio.sleep(pause)
            try:
                await self._continue(cause)
            except (ResumeNotFound, CliMisbehaves, UnsafeCli) as error:
                # Another CLI would be refused as well.
                cause.__cause__ = error
                break
            except SteersmanError as error:
                cause.__cause__ = error
            except Exception as error:
                # Unexpected, but the open turns must settle.
                log.exception("restarting a CLI failed")
                cause.__cause__ = error
                break
            else:
                return None
        return parts.slot.cause or cause

    async def _continue(self, cause: SteersmanError) -> None:
        """Resume the conversation, or start it again if the lost CLI had saved none of it."""
        options, slot = self._parts.options, self._parts.slot
        has_begun_it = not options.goes_on or options.fork_session
        may_be_unwritten = has_begun_it and not self._dispatcher.has_answered
        place = slot.place or slot.session_id
        if may_be_unwritten and place and self._parts.setup.remove_unwritten(place):
            await self._continue_as(cause, is_new=True)
            return
        try:
            await self._continue_as(cause, is_new=False)
        except ResumeNotFound:
            if not may_be_unwritten:
                raise
            await self._continue_as(cause, is_new=True)

    async def _continue_as(self, cause: SteersmanError, *, is_new: bool) -> None:
        parts = self._parts
        prompts, session_id = parts.prompts, parts.slot.session_id
        assert session_id is not None
        modern = parts.slot.is_modern
        lines = parts.setup.transcript(parts.slot.place or session_id) or ()
        handover = plan_handover(prompts.unsettled, lines, is_new=is_new, is_modern=modern)
        reruns = modern and not is_new and prompts.needs_rerun
        plan = self._next_plan(Resumption(session_id, is_new, reruns))
        if reruns:
            plan = await self._with_manifests(plan)
        cli = await self._launch(plan, handover if reruns else None)
        self.restarts += 1
        parts.budget.restarted(asyncio.get_running_loop().time())
        continues = prompts.current is not None and not parts.gate.is_closed
        parts.status.move(Move.TAKE_UP if continues else Move.GREET)
        if parts.gate.is_closed:
            parts.status.move(Move.PAUSE)
        prompts.attach(cli.link, handover, cause)
        if not parts.gate.is_closed:
            parts.watchdog.start()

    def _next_plan(self, how: Resumption) -> LaunchPlan:
        """Return the plan for the next CLI, with the in-process MCP servers attached now."""
        assert self._parts.setup.plan_next is not None
        slot = self._parts.slot
        plan = self._parts.setup.plan_next(replace(how, path=slot.path, changed=slot.changed))
        servers = list(self._parts.responder.servers.keys) or None
        initialize = msgspec.structs.replace(plan.initialize, sdk_mcp_servers=servers)
        return replace(plan, initialize=initialize)

    async def _with_manifests(self, plan: LaunchPlan) -> LaunchPlan:
        """Return the plan with the tools of the in-process MCP servers.

        The CLI continues the turn at once, without waiting for its own lists.
        """
        parts = self._parts
        found = await parts.responder.servers.manifests(
            parts.slot.version, parts.options.startup.servers
        )
        initialize = msgspec.structs.replace(
            plan.initialize, sdk_mcp_server_manifests=found or None
        )
        return replace(plan, initialize=initialize)

    async def rewind(self, at: str, rewound: Callable[[], None]) -> None:
        """Have another CLI continue from the message `at`; the current one is closed first.

        Calls `rewound` when it has, also if the caller was cancelled meanwhile.
        """
        parts = self._parts
        cli = await self.ready()
        if parts.setup.plan_next is None or parts.slot.session_id is None:
            raise UsageError("checkpoint", at, "a session that can be resumed")
        if not self.is_at_rest:
            raise UsageError("checkpoint", at, "a session at rest: wait for idle(), or interrupt()")
        plan = self._next_plan(Resumption(parts.slot.session_id, at=at))
        moving = self._replace(self._rewind(cli.link, plan, rewound))
        # Waits without passing a cancellation on: half of a rewind would be a session without CLI.
        await asyncio.wait([moving])
        if moving.cancelled():
            raise ChannelClosed("this session was closed while it was rewinding")
        error = moving.result()
        if error is not None:
            raise error

    async def _rewind(
        self, link: CliLink, plan: LaunchPlan, rewound: Callable[[], None]
    ) -> SteersmanError | None:
        """Close the CLI of `link`, and start another one with `plan`. Returns why that failed."""
        parts = self._parts
        link.close(parts.options.close_grace)
        await asyncio.wait([link.exit_status], timeout=self._close_limit)
        if not link.exit_status.done():
            link.exited(UNKNOWN_STATUS)
        try:
            cli = await self._launch(plan)
        except SteersmanError as error:
            return error
        rewound()
        parts.status.move(Move.GREET)
        parts.prompts.attach(cli.link)
        return None

    # The end

    def close(self, ending: Move = Move.COMPLETE) -> None:
        """Begin to end the session: in order, or at once if it is cancelled."""
        parts = self._parts
        phase, cli = parts.status.phase, parts.slot.running
        if phase.is_over or (phase is Phase.IDLE and cli is None and self._has_started.is_set()):
            # A session that was never started can only be cancelled.
            if ending is Move.CANCEL and not phase.is_over:
                self._ending = ending
                self._finish(None)
            return
        is_first, self._ending = self._ending is None, self._ending or ending
        parts.ownership.ends()
        if not parts.prompts.is_parking:
            parts.prompts.withdraw_queued(None, also_others=True)
        if self._restarting is not None and is_first:
            # Once: a second cancellation would not wait for the end of the CLI that was starting.
            self._restarting.cancel()
        if cli is not None:
            if ending is Move.CANCEL:
                # First: with the refusals of open requests the CLI would call the model again.
                cli.link.end()
            cli.tasks.cancel_all()
            self._close_cli(cli, ending)

    def _close_cli(self, cli: RunningCli, ending: Move) -> None:
        parts = self._parts
        if ending is Move.CANCEL or parts.status.phase is Phase.STARTING:
            cli.link.end()
        elif cli.link.is_open:
            # A stopped process tree is ended as it is: it must not run to receive an interrupt.
            if parts.prompts.current is not None and not parts.gate.has_stopped_tree:
                # Also before the turn has begun: at the end of its input the CLI would run it.
                cli.link.notify(Interrupt(cancel_queued=True), parts.options.request_timeout)
            cli.link.close(parts.options.close_grace)
        if self._overdue is None and cli.link.was_opened and not self.is_restarting:
            # The transport may fail to report the exit; no wait is unbounded.
            loop = asyncio.get_running_loop()
            self._overdue = loop.call_later(self._close_limit, cli.link.exited, UNKNOWN_STATUS)

    @property
    def _close_limit(self) -> float:
        """Seconds within which a CLI that is closed has exited."""
        return 3 * self._parts.options.close_grace + 10

    def leave(self, *, kills: bool = False) -> None:
        """End the session without interrupting the CLI: turns that are left are parked.

        The CLI is killed if `kills`, and while it works or waits; otherwise it is closed in order.
        """
        prompts, cli = self._parts.prompts, self._parts.slot.running
        prompts.is_parking = True
        is_at_work = cli is not None and (prompts.current is not None or cli.tasks.is_awaited)
        if cli is not None and (kills or is_at_work):
            cli.link.end()
        self.close()

    async def wait_closed(self) -> None:
        """Return when the CLI has exited, and hooks, servers and listeners have been notified."""
        parts = self._parts
        await self._has_started.wait()
        if parts.slot.running is None:
            return
        await self._has_finished.wait()
        if self._notifying is not None:
            # Shielded: a cancelled waiter must not leave hooks and servers uninformed.
            await asyncio.shield(self._notifying)
        await parts.listeners.drain(parts.options.close_grace)

    def _finish(self, cause: SteersmanError | None) -> None:
        """End the session, whatever the reason; later calls are ignored.

        Every open turn settles: cancelled if we closed, failed with `cause` otherwise.
        """
        parts = self._parts
        if parts.status.phase.is_over or self._flushing is not None:
            return
        if self._overdue is not None:
            self._overdue.cancel()
        parts.slot.cause = parts.slot.cause or cause
        parts.watchdog.stop()
        if parts.limits.is_on:
            parts.limits.stop()
        parts.prompts.settle_all(cause)
        if parts.mirror.is_unused and not parts.durability.keeps_turns:
            self._end(cause)
        else:
            self._flushing = asyncio.Task(self._flush(cause))

    async def _flush(self, cause: SteersmanError | None) -> None:
        """Let the stores take what is left, and end the session: the lock is held until then."""
        try:
            await self._parts.mirror.close()
            await self._parts.durability.close()
        finally:
            self._end(cause)

    def _end(self, cause: SteersmanError | None) -> None:
        parts = self._parts
        parts.status.move((self._ending or Move.COMPLETE) if cause is None else Move.FAIL)
        parts.journal.end()
        parts.ownership.release()
        if cause is not None:
            parts.flights.failed(cause)
        if parts.listeners.has("complete"):
            parts.listeners.emit("complete", parts.last_snapshot())
        self._notifying = asyncio.Task(self._notify_end())
        self._has_finished.set()

    async def _notify_end(self) -> None:
        """Call the `SessionEnd` hooks and detach the in-process MCP servers."""
        parts = self._parts
        if parts.slot.running is not None:
            await parts.slot.running.tasks.wait(parts.options.close_grace)
        hooks = parts.responder.hooks
        if hooks.has_hooks and parts.slot.handshake is not None:
            await run_session_end(hooks, parts.options, parts.slot.session_id or "")
        await parts.responder.servers.detach()

    def _on_full_disk(self, report: str) -> None:
        log.error("the journal is no longer written: %s", report)
        self._parts.journal.fault("journal file", report)


def _unexpected(error: BaseException) -> SteersmanError:
    """Return what a session fails with after an error in our own code."""
    log.error("restarting a CLI failed", exc_info=error)
    failure = ChannelClosed(f"restarting a CLI failed: {error!r}")
    failure.__cause__ = error
    return failure
