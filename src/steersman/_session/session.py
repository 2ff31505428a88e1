"""Session: one conversation you can hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, cast, get_args

import msgspec

from steersman._session.ceremonies import raise_start
from steersman._session.course import Course
from steersman._session.front import caller_of, front_of
from steersman._session.helm import Helm
from steersman._session.identity import new_uuid, uuid_of
from steersman._session.listening import EventName, Listener
from steersman._session.mcp import McpDesk
from steersman._session.prompts import Prompt, content_of
from steersman._session.readings import Readings
from steersman._session.rewinding import Checkpoint
from steersman._session.turn import Turn, When
from steersman._session.verbs import DailyVerbs
from steersman._struct import set_source
from steersman.control.handshake import Initialize, Initialized
from steersman.control.session import CancelAsyncMessage, EndSession, Interrupt, InterruptReceipt
from steersman.control.verbs import Verb
from steersman.errors import (
    ChannelClosed,
    RequestLost,
    RequestRefused,
    RequestTimeout,
    UsageError,
)
from steersman.journal import Move, Phase
from steersman.journal.agents import AgentNode
from steersman.journal.snapshot import SessionSnapshot, State, describe
from steersman.journal.tasks import Task
from steersman.options import Options, checks

__all__ = ["Session", "State"]

AnswerT = TypeVar("AnswerT")


class Session(Readings, DailyVerbs):
    """One conversation. Opened with `async with agent.session() as session`.

    It has one CLI at a time; one that dies is replaced, and the conversation goes on. It runs in
    the event loop that started it; any task of that loop may use it.
    """

    def __init__(self, course: Course) -> None:
        self.options: Options = course.options
        self._helm = Helm(course)
        self._helm.desk = front_of(self, course, self._helm)
        super().__init__(self._helm.log, shows_partials=course.options.include_partial_messages)
        self.mcp = McpDesk(
            self.call,
            self._helm.servers,
            self._helm.desk.serving,
            lambda key: caller_of(self, key, self._helm),
            course.adopt,
        )
        self._course = course
        self._sent: list[str] = []
        self._keyed: dict[str, Turn] = {}
        self._waiting = 0
        """How many wait for the end, and want no more prompts."""
        self._keeper: AsyncGenerator[None, None] | None = None

    # Life

    async def start(self) -> Self:
        """Run the CLI and greet it.

        Raises `LaunchError`, `StartupError`, `NotLoggedIn` or `ProtocolViolation`.
        """
        await self._helm.start()
        self._keeper = _keep(self)
        await anext(self._keeper)
        await self._open()
        return self

    async def _open(self) -> None:
        """Tell the hooks that the session has started, and take what they give it."""
        assert self._helm.desk is not None
        hooking = self._helm.desk.hooking
        for opening in await raise_start(hooking, self.options, self.id or ""):
            if opening.additional_context:
                await self.send(opening.additional_context, query=False)
            if opening.initial_user_message:
                await self.send(opening.initial_user_message)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the session and see the CLI's whole tree gone.

        Begins at the call, not at the first await, so that cancelling the wait does not keep the
        CLI alive. May be called any number of times; `abandon()` is for those who do not wait.
        """
        self.abandon()
        return self._see_it_gone()

    def abandon(self) -> None:
        """Begin to close, and do not wait for it."""
        self._helm.close()

    async def cancel(self) -> None:
        """End the session at once: the CLI's tree is killed, and what is open is cancelled."""
        self._helm.close(Move.CANCEL)
        await self._see_it_gone()

    async def _see_it_gone(self) -> None:
        await self._helm.see_it_gone()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()

    async def released(self) -> None:
        """Close because the event loop shuts down."""
        self._keeper = None
        await self.aclose()

    # What one can know

    @property
    def id(self) -> str | None:
        """The conversation's id; known before the start unless the latest one is continued."""
        return self._helm.session_id

    @property
    def pid(self) -> int | None:
        """The CLI's process id, while it runs on this machine."""
        return None if self._helm.life is None else self._helm.life.link.pid

    @property
    def phase(self) -> Phase:
        """Where the session stands, whatever it waits for."""
        return self._helm.phase

    @property
    def state(self) -> State:
        """What the session is doing, or waits for."""
        return self._helm.state

    @property
    def initialized(self) -> Initialized:
        """What the CLI said about itself in the handshake: version, models, and more."""
        if self._helm.initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        return self._helm.initialized

    @property
    def capabilities(self) -> frozenset[str] | None:
        """What the CLI says it can do; it tells at the beginning of a turn, so `None` before."""
        return self._helm.capabilities

    @property
    def cost_usd(self) -> float:
        """What all turns of this session cost, those that nobody asked for included."""
        return self._helm.ledger.accounts.cost_usd

    @property
    def restarts(self) -> int:
        """How many CLIs were lost and replaced."""
        return self._helm.restarts

    def snapshot(self) -> SessionSnapshot:
        """Where the session stands now, as a value that does not change."""
        return self._helm.snapshot()

    def describe(self) -> str:
        """What the session is doing, in a line for people: `waiting for you 40 s`."""
        return describe(self._helm.snapshot(), self._helm.log.clock())

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Background tasks and subagents, those that have ended included."""
        return tuple(self._helm.ledger.accounts.tasks.all)

    @property
    def agents(self) -> AgentNode:
        """The main agent, and the subagents that it started, as a tree."""
        return self._helm.ledger.accounts.agents(self.state, self._helm.started)

    def on(self, event: EventName, listener: Listener) -> Callable[[], None]:
        """Call `listener` on each such event, with what happened; gives what ends that.

        It may be async. It is called after the fact, in order, and cannot hurt the session.
        """
        return self._helm.listeners.add(event, listener)

    async def idle(self, timeout: float) -> bool:
        """Wait until nothing runs or waits, in the background neither; says whether it came so far.

        A session that is over is idle.
        """
        if timeout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise UsageError("timeout", timeout, "seconds above 0")
        seconds = _seconds(timeout, timeout)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self._helm.is_at_rest or self._helm.phase.is_over):
                    await self._helm.log.growth.wait()
        return self._helm.is_at_rest or self._helm.phase.is_over

    async def wait(self, timeout: float | None = None) -> SessionSnapshot:
        """Take no more prompts, let everything finish, and close; gives the last snapshot.

        Raises `TimeoutError` when it is not over in time; the session then goes on, and takes
        prompts again.
        """
        if self._helm.phase is Phase.IDLE:
            self._helm.at_work()
        self._waiting += 1
        try:
            async with asyncio.timeout(None if timeout is None else _seconds(timeout, timeout)):
                while not (self._helm.is_at_rest or self._helm.phase.is_over):
                    await self._helm.log.growth.wait()
            await self.aclose()
        finally:
            self._waiting -= 1
        return self.snapshot()

    # Prompts

    async def send(
        self, prompt: Prompt, *, when: When = "later", key: str | None = None, query: bool = True
    ) -> Turn:
        """Send `prompt`, word for word as it is, and hold its turn.

        Returns once it is written, or queued behind another: `later` prompts get a turn of their
        own each. `next` becomes part of the turn under way, at its next tool boundary; `now` ends
        that turn after its running tool. The same `key` is the same turn, however often it is
        sent, also by another process that resumes the conversation. With `query=False` the text is
        only added to the conversation, for the next prompt.
        """
        if not isinstance(query, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("query", query, "True or False")
        if when not in get_args(When):
            raise UsageError("when", when, "one of later, next, now")
        # Without this mark the CLI runs slash commands and reads files named by `@`.
        fields: dict[str, Any] = {"client_composed": True} if self.options.verbatim_prompts else {}
        content = content_of(prompt)
        if fields and isinstance(content, str) and content.startswith("/"):
            self._refuse_if_run(content)
        if not query:
            fields = {**fields, "shouldQuery": False}
        return self._send(content, fields, when, key)

    def _refuse_if_run(self, text: str) -> None:
        """Older CLIs, which tell no capabilities, would run it in spite of our mark."""
        self._refuse_if_over()
        if not self.initialized.capabilities:
            hint = "if it is meant as a command, use session.command()"
            raise UsageError("prompt", text, "a text this old CLI does not run: no `/`", hint=hint)

    async def command(self, text: str) -> Turn:
        """Send a slash command, such as `/compact`, for the CLI to run."""
        if not (isinstance(text, str) and text.startswith("/") and len(text) > 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("text", text, "a slash command, such as /compact")
        return self._send(text, {}, "later", None)

    def _send(self, content: Any, fields: dict[str, Any], when: When, key: str | None) -> Turn:
        self._refuse_if_over()
        if not (key is None or (isinstance(key, str) and key)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("key", key, "a text that is not empty, or None")
        if key is not None and key in self._keyed:
            return self._keyed[key]
        self._helm.refuse_more()
        uuid = new_uuid() if key is None else uuid_of(self.id or "", key)
        turn = Turn(self, uuid, content, fields, when)
        if key is not None:
            self._keyed[key] = turn
            turn.may_be_known = True
        self._sent.append(uuid)
        self._helm.ledger.add(turn)
        self._helm.move(Move.BEGIN)
        return turn

    def _refuse_if_over(self) -> None:
        """A session that is being revived still takes prompts."""
        if self._waiting:
            raise ChannelClosed("this session takes no more prompts: somebody waits for its end")
        if not self._helm.is_reviving:
            self._helm.at_work()

    async def withdraw(self, turn: Turn) -> bool:
        """Take a prompt back that the model has not seen; says whether that worked."""
        self._refuse_stranger("turn", turn)
        if self._helm.ledger.withdraw(turn):
            return True
        if turn.is_settled or turn.has_begun:
            return turn.delivery == "cancelled"
        await self._take_out(turn)
        # The CLI's answer may be no although it works: what becomes of the prompt is believed.
        try:
            async with asyncio.timeout(self.options.request_timeout):
                await turn.begun()
        except TimeoutError:
            raise RequestTimeout("withdraw", "the prompt neither began nor was cancelled") from None
        return turn.delivery == "cancelled"

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop the turn under way, and wait until it has settled.

        The receipt lists the prompts that still wait; `also_queued=True` takes those back too.
        Raises `RequestTimeout` when the CLI does not answer.
        """
        if turn is not None:
            self._refuse_stranger("turn", turn)
        if not isinstance(also_queued, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("also_queued", also_queued, "True or False")
        await self._helm.answering("interrupt")
        ledger = self._helm.ledger
        taken = ledger.take_back(turn, also_queued=also_queued)
        waiting = ledger.queued
        receipt = InterruptReceipt()
        # A turn that is over, or was only queued, must not stop another one that runs.
        if turn is None or turn in ledger.written:
            meant = turn or ledger.at_work
            try:
                async with asyncio.timeout(self.options.request_timeout):
                    receipt = await self._stop(meant, also_queued=also_queued)
            except TimeoutError:
                raise RequestTimeout("interrupt", "the turn did not settle in time") from None
            except RequestLost:
                # The CLI that went away took the turn with it; the next one does not go on with it.
                if meant is None or not meant.is_settled or not self._helm.is_reviving:
                    raise
        return set_source(
            InterruptReceipt(
                still_queued=[*receipt.still_queued, *waiting],
                cancelled=[*receipt.cancelled, *taken],
            ),
            receipt.raw,
        )

    async def _stop(self, turn: Turn | None, *, also_queued: bool) -> InterruptReceipt:
        """Interrupt the CLI until `turn` has settled."""
        link, timeout = self._helm.at_work().link, self.options.request_timeout
        if turn is None:
            return await link.call(Interrupt(cancel_queued=also_queued), timeout)
        turn.was_interrupted = True
        await self._take_out(turn)
        receipt = InterruptReceipt()
        while not turn.is_settled:
            # An interrupt alone would not stop a prompt that has not begun, and the CLI may hold
            # it back for as long as a tool server is mute.
            has_begun = turn.has_begun
            verb = Interrupt(cancel_queued=also_queued or not has_begun)
            receipt = await link.call(verb, timeout)
            if has_begun or turn.uuid in receipt.cancelled:
                break
            await turn.begun()
        await turn.result()
        others = [uuid for uuid in receipt.cancelled if uuid != turn.uuid]
        return set_source(msgspec.structs.replace(receipt, cancelled=others), receipt.raw)

    async def _take_out(self, turn: Turn) -> None:
        """Take a prompt that has not begun out of the CLI's queue, and disturb nobody else."""
        if turn.has_begun:
            return
        verb = CancelAsyncMessage(message_uuid=turn.uuid)
        answer = await self._helm.at_work().link.call(verb, self.options.request_timeout)
        if answer.cancelled:
            # Older CLIs send no lifecycle that would settle it.
            self._helm.ledger.withdrawn(turn.uuid)

    def _refuse_stranger(self, name: str, turn: object) -> None:
        if not isinstance(turn, Turn) or turn.session is not self:
            raise UsageError(name, turn, "a Turn of this session")

    # Holding

    async def pause(self, *, hard: bool = False) -> None:
        """Hold the next tool, and every prompt that the CLI does not have yet.

        A tool that runs is not disturbed, nor is the model that writes. `hard=True` stops the
        CLI's whole process tree where it stands, tools included. Raises `RequestRefused` where the
        CLI is so old that it can only be held hard.
        """
        if not isinstance(hard, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("hard", hard, "True or False")
        await self._helm.pause(hard=hard)

    async def resume(self) -> None:
        """Go on where `pause()` held the session; nothing happens to one that is not paused."""
        await self._helm.living()
        self._helm.resume()

    # Going back

    def checkpoint(self) -> Checkpoint:
        """Mark this place in the conversation, to come back to with `rewind`."""
        if self._helm.last_message is None or self.id is None:
            raise UsageError("checkpoint", "no turn yet", "a session in which the model has spoken")
        return Checkpoint(self.id, self._helm.last_message, len(self._sent))

    async def rewind(self, checkpoint: Checkpoint) -> None:
        """Go back to `checkpoint`: the conversation, and with file checkpointing the files too.

        The session must be at rest. Another CLI goes on from there; what came after is not lost,
        but no longer part of the conversation.
        """
        if not isinstance(checkpoint, Checkpoint) or checkpoint.session_id != self.id:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("checkpoint", checkpoint, "a Checkpoint of this conversation")
        later = self._sent[checkpoint.prompts :]
        if later and self.options.enable_file_checkpointing:
            await self.rewind_files(later[0])
        await self._helm.restart(checkpoint.message_uuid)
        del self._sent[checkpoint.prompts :]

    def fork(self, **overrides: Any) -> Session:
        """Another session, not started yet, that goes on from here on its own."""
        if self._course.branch is None or self.id is None:
            raise UsageError("session", self, "a session whose id is known")
        return cast("Session", self._course.branch(self.id, overrides))

    # Verbs

    async def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Put `verb` to the CLI and wait for its answer.

        Raises `RequestRefused` when the CLI says no and `RequestTimeout` when it says nothing.
        Cancelling the wait sends `control_cancel_request` and forgets the id.
        """
        if not isinstance(verb, Verb):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("verb", verb, "a value of steersman.control, such as SetModel(...)")
        _refuse_other_hooks(verb)
        life = await self._helm.answering(verb.operation)
        known = self.capabilities
        missing = verb.needs - (verb.needs if known is None else known)
        if missing:
            lacks = ", ".join(sorted(missing))
            raise RequestRefused(verb.operation, f"this CLI is too old for it: it has no {lacks}")
        patience = max(self.options.request_timeout, verb.patience or 0)
        answer = await life.link.call(verb, _seconds(timeout, patience))
        if isinstance(verb, EndSession):
            # The CLI leaves by itself now, and is not to be brought back.
            self.abandon()
        return answer

    async def control(
        self, subtype: str, /, *, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a control request that has no class here; gives the answer as it came."""
        if not (isinstance(subtype, str) and subtype):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("subtype", subtype, "the CLI's name for a control request")
        plain = checks.plain("fields", fields)
        seconds = _seconds(timeout, self.options.request_timeout)
        life = await self._helm.answering(subtype)
        answer = await life.link.control(subtype, plain, seconds)
        return answer.raw


def _refuse_other_hooks(verb: object) -> None:
    if isinstance(verb, Initialize) and verb.hooks is not None:
        raise UsageError("verb", verb, "an Initialize without hooks: they would replace ours")


def _seconds(given: float | None, otherwise: float) -> float:
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("timeout", given, "seconds above 0, or None")
    return given


async def _keep(session: Session) -> AsyncGenerator[None, None]:
    """Stand open as long as the session does: a loop that shuts down closes both."""
    try:
        yield
    finally:
        await session.released()
