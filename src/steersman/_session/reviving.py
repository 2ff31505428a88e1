"""When the CLI is lost: another one goes on where it was."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import msgspec

from steersman._launch.plan import LaunchPlan
from steersman._session.course import Continuation, Course
from steersman._session.handover import Handover, hand_over
from steersman._session.link import Link
from steersman._session.voyage import Voyage
from steersman.errors import (
    CliExited,
    LimitReached,
    ResumeNotFound,
    Stalled,
    SteersmanError,
    UsageError,
)
from steersman.journal import Kind, Move
from steersman.options import Revival

__all__ = ["Revivable"]

log = logging.getLogger("steersman.session")


class Revivable(Voyage):
    """Replaces a CLI that is lost, and tells the new one what the old one left undone."""

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.restarts = 0
        """How many CLIs were lost and replaced."""
        self._losses = 0
        self._begun_at = 0.0
        """When the CLI of now took over; 0 is the first one, which is not counted on."""
        self._has_answered = False
        """Whether a prompt of ours came to its result: then the conversation is on the disk."""
        self._why_killed: Stalled | LimitReached | None = None

    def kill(self, why: Stalled | LimitReached) -> None:
        """End a CLI that does not obey; a stalled one is brought back."""
        self._why_killed = why
        if self.life is not None:
            self.life.link.kill()

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

    @property
    def _limits(self) -> Revival:
        given = self.options.revive
        return given if isinstance(given, Revival) else Revival()

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
        limits = self._limits
        if asyncio.get_running_loop().time() - self._begun_at > limits.well_after:
            self._losses = 0
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
            except Exception as error:
                # Whatever it is, there are turns that wait to be settled.
                log.exception("reviving a session failed")
                cause.__cause__ = error
                break
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

    def _with_servers(self, plan: LaunchPlan) -> LaunchPlan:
        """Name the servers that are there now: some may have come or gone since the start."""
        assert self.desk is not None
        servers = list(self.desk.serving.keys) or None
        greeting = msgspec.structs.replace(plan.initialize, sdk_mcp_servers=servers)
        return replace(plan, initialize=greeting)

    def _may_be_unwritten(self) -> bool:
        """Whether the conversation can have been lost before its first line was on the disk."""
        return not self._has_answered and (not self.options.goes_on or self.options.fork_session)

    def _go_on(self, handover: Handover, cause: SteersmanError) -> None:
        assert self.life is not None
        self.restarts += 1
        self._begun_at = asyncio.get_running_loop().time()
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


def _look_at(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("reviving a session failed", exc_info=task.exception())
