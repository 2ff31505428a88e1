"""Tasks that answer the CLI: one per control request, each cancellable.

A request that waits in an inbox has no task: the inbox answers it, or it is withdrawn.

The tasks run their first step at once, so that an answer without waiting costs no iteration of the
loop. `current_task`, `asyncio.timeout` and context variables work in them as in any task. Python
has such eager tasks since 3.12. For 3.11, the first step is intercepted when the task schedules it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal

from msgspec import Struct

from steersman._portal.waiting import WAITING_TASK
from steersman._protocol.events import HookAsked, PermissionAsked, ToolCalled
from steersman._session.link import CliLink
from steersman._session.requests.permissions import DEFERRED, RequestRejected
from steersman._session.requests.responder import CliRequest, Responder
from steersman.errors import ChannelClosed
from steersman.permissions import Ask

Need = Literal["waiting_permission", "waiting_tool_call"]
USER: Final[Need] = "waiting_permission"
TOOL: Final[Need] = "waiting_tool_call"
WITHDRAWN = "the CLI withdrew the request"


class _OpenRequest(Struct, eq=False):
    """A control request without an answer yet."""

    asked: CliRequest
    since: float
    need: Need | None
    task: asyncio.Task[None] | None = None
    """None until the task's first step is done, and for a request that waits in an inbox."""
    is_deferred: bool = False
    """Whether the request waits in an inbox."""
    has_begun: bool = False
    """Whether the task's first step has begun."""
    is_withdrawn: bool = False
    """Whether the request was answered or cancelled; the task may still be cleaning up."""


class RequestTasks:
    """Runs the answers of a `Responder` in tasks; the reader of the CLI never waits for them."""

    def __init__(
        self,
        responder: Responder,
        link: CliLink,
        changed: Callable[[Need | None], None],
        is_in_turn: Callable[[], bool] = bool,
    ) -> None:
        self._is_in_turn = is_in_turn
        self._starter = EagerStarter()
        self._responder = responder
        self._link = link
        self._changed = changed
        self._new: list[tuple[_OpenRequest, contextvars.Context]] = []
        """Requests of the chunk that is being read; `begin` starts their tasks."""
        self._open: dict[str, _OpenRequest] = {}
        self._held: list[bytes] = []
        """Answers that are written together."""
        self._is_beginning = False
        self._needs: dict[Need, int] = {USER: 0, TOOL: 0}
        self._reported: Need | None = None
        """The value of `need` when `changed` was last called."""

    @property
    def need(self) -> Need | None:
        """The state that the open requests cause; a permission counts before a tool call."""
        return USER if self._needs[USER] else TOOL if self._needs[TOOL] else None

    @property
    def is_awaited(self) -> bool:
        """Whether the CLI waits for an answer. It waits for none to a request it has withdrawn."""
        return any(not each.is_withdrawn for each in self._open.values())

    @property
    def open(self) -> list[tuple[CliRequest, float]]:
        """Each open request, and the time it arrived."""
        return [(each.asked, each.since) for each in self._open.values() if not each.is_withdrawn]

    @property
    def held(self) -> tuple[Ask, ...]:
        """The asks of calls that our own hook holds, before the CLI requests the permission."""
        return self._responder.holding.held

    @property
    def is_answering(self) -> bool:
        """Whether the code that runs now answers a request: a tool, a hook or an approver.

        Also if it was called by a function that does so in a worker thread.
        """
        mine = (asyncio.current_task(), WAITING_TASK.get())
        return any(
            each.task in mine if each.task is not None else each.has_begun and not each.is_deferred
            for each in self._open.values()
        )

    def hold(self) -> Callable[[], None]:
        """Count a call that our own hook holds for an answer; returns what ends that."""
        self._needs[USER] += 1

        def end() -> None:
            self._needs[USER] -= 1
            if not self._is_beginning:
                self._report_need()

        if not self._is_beginning:
            self._report_need()
        return end

    def in_progress(self, is_other: Callable[[CliRequest], bool]) -> list[asyncio.Task[None]]:
        """Return the tasks of open requests for which `is_other` does not hold."""
        return [
            each.task
            for each in self._open.values()
            if each.task is not None and not each.is_withdrawn and not is_other(each.asked)
        ]

    def start(self, asked: CliRequest, context: contextvars.Context) -> None:
        """Register a request, to be answered in the context of its turn when `begin` is called."""
        opened = _OpenRequest(asked, self._link.journal.clock(), _need_of(asked))
        self._open[asked.request_id] = opened
        self._new.append((opened, context))
        if opened.need is not None:
            self._needs[opened.need] += 1
            # In a turn, `begin` reports the need after the first steps: a request that is answered
            # by then never made the session wait. Outside of a turn, only this call changes the
            # session's state.
            if not self._is_in_turn():
                self._report_need()

    def begin(self) -> None:
        """Start the tasks of the new requests; an answer that needs no waiting is sent at once."""
        if not self._new:
            return
        new, self._new = self._new, []
        self._is_beginning = True
        begin = self._starter()
        try:
            for opened, context in new:
                if not opened.is_withdrawn:
                    task = begin(self._answer(opened), context)
                    if not task.done():
                        opened.task = task
        finally:
            self._is_beginning = False
            self._report_need()
            if self._held:
                self._release()

    def withdraw(self, request_id: str) -> None:
        """Cancel a request that the CLI has withdrawn."""
        opened = self._open.get(request_id)
        if opened is not None:
            if type(opened.asked) is HookAsked:
                self._responder.withdrawn(opened.asked, WITHDRAWN)
            self._cancel(opened, WITHDRAWN, may_return=False)

    def cancel_all(self) -> None:
        """Cancel all requests, because the session ends."""
        for opened in list(self._open.values()):
            self._cancel(opened, "its session has ended", may_return=True)

    def _cancel(self, opened: _OpenRequest, reason: str, *, may_return: bool) -> None:
        task, request_id = opened.task, opened.asked.request_id
        if task is None and opened.has_begun and not opened.is_deferred:
            # The request is in its first step, and its own code has cancelled it.
            task = asyncio.current_task()
        if task is not None:
            # A task that is cancelled before its first step never reaches the end of `_answer`.
            task.add_done_callback(lambda _: self._ended(opened))
            task.cancel()
            self._uncount(opened)
            return
        self._forget(opened)
        if opened.is_deferred:
            self._responder.withdraw(request_id, reason, may_return=may_return)
        self._send(self._refuse(opened.asked, reason))

    async def wait(self, timeout: float) -> None:
        """Wait until cancelled tasks have cleaned up, at most `timeout` seconds."""
        mine = asyncio.current_task()
        tasks = [each.task for each in self._open.values() if each.task not in (None, mine)]
        if tasks:
            await asyncio.wait(filter(None, tasks), timeout=timeout)

    async def _answer(self, opened: _OpenRequest) -> None:
        asked, connection = opened.asked, self._link.connection
        opened.has_begun = True
        try:
            response = await self._responder.answer(
                asked, self._link.session_id, self._answer_later
            )
            if response is DEFERRED:
                opened.task, opened.is_deferred = None, True
                return
            line = connection.answer(asked.request_id, response)
        except RequestRejected as refused:
            line = connection.refuse(asked.request_id, str(refused))
        except Exception as error:  # noqa: BLE001 - such as an answer that is not JSON
            self._link.journal.fault(type(asked).__name__, error)
            line = self._refuse(asked, f"the answer failed: {type(error).__name__}")
        except BaseException:
            # Called here, because a done callback costs another iteration of the loop per task.
            self._ended(opened)
            raise
        self._send(line)
        if self._open.get(asked.request_id) is opened:
            self._forget(opened)

    def _answer_later(self, request_id: str, response: object) -> None:
        """Send the answer to a deferred request, unless it was withdrawn."""
        opened = self._open.get(request_id)
        if opened is not None:
            self._forget(opened)
            try:
                line = self._link.connection.answer(request_id, response)
            except Exception as error:  # noqa: BLE001 - such as an answer that is not JSON
                self._link.journal.fault(type(opened.asked).__name__, error)
                line = self._refuse(opened.asked, f"the answer failed: {type(error).__name__}")
            self._send(line)

    def _ended(self, opened: _OpenRequest) -> None:
        request_id = opened.asked.request_id
        if self._open.get(request_id) is not opened:
            return
        self._forget(opened)
        # A cancelled task has not sent an answer. After the CLI has cancelled a tool call, it still
        # counts the control request as open.
        self._send(self._refuse(opened.asked, "cancelled"))

    def _refuse(self, asked: CliRequest, reason: str) -> bytes:
        """Return the line that refuses a request: an error, or the blocking reply of a guard."""
        connection, refusal = self._link.connection, self._responder.refusal(asked)
        if refusal is None:
            return connection.refuse(asked.request_id, reason)
        return connection.answer(asked.request_id, refusal)

    def _forget(self, opened: _OpenRequest) -> None:
        del self._open[opened.asked.request_id]
        self._uncount(opened)

    def _uncount(self, opened: _OpenRequest) -> None:
        if not opened.is_withdrawn:
            opened.is_withdrawn = True
            if opened.need is not None:
                self._needs[opened.need] -= 1
                if not self._is_beginning:
                    self._report_need()

    def _report_need(self) -> None:
        need = self.need
        if need is not self._reported:
            self._reported = need
            self._changed(need)

    def _send(self, line: bytes) -> None:
        if not line:
            return
        if len(self._open) <= 1 and not self._held:
            self._write([line])
            return
        # Other requests are being answered too: one write for all answers costs much less.
        if not self._held and not self._is_beginning:
            asyncio.get_running_loop().call_soon(self._release)
        self._held.append(line)

    def _release(self) -> None:
        held, self._held = self._held, []
        if held:
            self._write(held)

    def _write(self, lines: list[bytes]) -> None:
        try:
            self._link.write_all(lines)
        except ChannelClosed:
            # The CLI has exited and needs no answer.
            return


def _need_of(asked: CliRequest) -> Need | None:
    """Return what the session waits for until `asked` is answered; None for hooks and others."""
    if type(asked) is PermissionAsked:
        return USER
    is_call = type(asked) is ToolCalled and asked.message.get("method") == "tools/call"
    return TOOL if is_call else None


Work = Coroutine[Any, Any, None]
Start = Callable[[Work, contextvars.Context], asyncio.Task[None]]


class EagerStarter:
    """Returns, for each call, the function that starts a task and runs its first step at once.

    That function starts the task normally if another task is running, or if the loop has a task
    factory. Create one `EagerStarter` per event loop and keep it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._at_once = _at_once(self._loop)

    def __call__(self) -> Start:
        loop = self._loop
        if asyncio.current_task(loop) is None and loop.get_task_factory() is None:
            return self._at_once
        return functools.partial(_later, loop)


def _later(
    loop: asyncio.AbstractEventLoop, work: Work, context: contextvars.Context
) -> asyncio.Task[None]:
    return loop.create_task(work, context=context)


if sys.version_info >= (3, 12):

    def _at_once(loop: asyncio.AbstractEventLoop) -> Start:
        def begin(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
            return asyncio.Task(work, loop=loop, context=context, eager_start=True)

        return begin

else:

    def _at_once(loop: asyncio.AbstractEventLoop) -> Start:
        try:
            own = vars(loop)
        except TypeError:
            # Attributes of this loop cannot be set; uvloop is an example.
            return functools.partial(_later, loop)
        steps: list[Callable[[], object]] = []

        def catch(step: Callable[[], object], **_: object) -> None:
            steps.append(step)

        def begin(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
            # Replaced only while the task is created: `Task()` calls `call_soon` once, with the
            # first step.
            own["call_soon"] = catch
            try:
                task = asyncio.Task(work, loop=loop, context=context)
            finally:
                del own["call_soon"]
            context.run(steps.pop())
            return task

        return begin
