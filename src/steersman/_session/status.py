"""The phase and the state of one session; every change is journalled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman import _json
from steersman._protocol.events import DialogAsked, ElicitationAsked, PermissionAsked, ToolCalled
from steersman._session.cli import CliSlot
from steersman._session.journal_writer import JournalWriter
from steersman._session.listeners import EventListeners
from steersman._session.prompt_queue import PromptQueue
from steersman._session.requests.tasks import Need, RequestTasks
from steersman.journal import Kind, Move, Phase, step
from steersman.journal.snapshot import SessionSnapshot, State, StateChanged
from steersman.permissions import CanUseTool

if TYPE_CHECKING:
    from steersman.journal.state import StateFollower

# Enum member lookups are slow on Python 3.11, and these run for every control request.
RUNNING, PHASE = Phase.RUNNING, Kind.PHASE


class Status:
    """Follows one session from idle to its end, over all its CLIs."""

    def __init__(
        self,
        log: JournalWriter,
        prompts: PromptQueue,
        slot: CliSlot,
        listeners: EventListeners,
    ) -> None:
        self.phase = Phase.IDLE
        self.is_cli_idle = True
        """Whether the CLI reports itself idle; running subagents count as work."""
        self.is_between_turns = True
        """Whether the main agent has nothing to do."""
        self.since = 0.0
        self.started: float | None = None
        self.completed: float | None = None
        self._log = log
        self._prompts = prompts
        self._slot = slot
        self._listeners = listeners
        self._written: State = "idle"

    @property
    def waiting(self) -> Need | None:
        """What the CLI waits for: the user's permission, or an in-process tool."""
        running = self._slot.running
        return None if running is None else running.tasks.need

    @property
    def state(self) -> State:
        """The phase, or what the session waits for while it runs."""
        return (self.waiting or "running") if self.phase is RUNNING else self.phase.value

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs and nothing is queued, background work included."""
        return (
            self.phase is not Phase.STARTING
            and self._prompts.current is None
            and not self._prompts.queued
            and self.is_cli_idle
            and not self._prompts.totals.running_tasks
        )

    @property
    def is_parked(self) -> bool:
        """Whether only background work is left: the session accepts prompts meanwhile."""
        has_turn = self._prompts.current is not None or not self.is_between_turns
        return not has_turn and any(
            each.is_background for each in self._prompts.totals.running_tasks
        )

    def move(self, move: Move) -> None:
        """Change the phase, if the table has that move."""
        self.phase = step(self.phase, move)
        self.refresh()

    def park(self) -> None:
        """Become idle beside background work; the CLI itself still reports `running`."""
        if self.is_parked and self.waiting is None:
            self.move(Move.REST)

    def is_in_turn(self) -> bool:
        """Whether a turn runs, as it does during nearly every control request."""
        return self.phase is RUNNING and self._prompts.is_busy

    def set_waiting(self, need: Need | None) -> None:
        """Record what the CLI waits for. Background tasks open requests too, so also while idle."""
        if self.is_in_turn():
            # The usual case: a control request in the middle of a turn.
            self._write(need or "running", self._log.clock())
            return
        if need is not None and self.phase is Phase.IDLE:
            self.phase = step(self.phase, Move.BEGIN)
        self.park()
        self.refresh()

    def resume(self) -> None:
        """Leave the paused phase, in one step if there is no work to come back to."""
        self.phase = step(self.phase, Move.RESUME)
        if (self.is_cli_idle and self._prompts.current is None) or self.is_parked:
            self.phase = step(self.phase, Move.REST)
        self.refresh()

    def refresh(self) -> None:
        """Journal the state if it is not the one journalled last."""
        after = self.state
        if after == self._written:
            return
        now = self._log.clock()
        if self.phase is Phase.STARTING and self.started is None:
            self.started = now
        if self.phase.is_over:
            self.completed = now
        self._write(after, now)

    def _write(self, after: State, at: float) -> None:
        before, self._written, self.since = self._written, after, at
        self._log.append(at, PHASE, details={"before": before, "after": after})
        self._log.wake()
        if self._listeners.is_any and self._listeners.has("state_change"):
            change = StateChanged(before, after, self.snapshot())
            self._listeners.emit("state_change", change)

    def snapshot(self) -> SessionSnapshot:
        """Return the current state of the session, with the requests that are being answered."""
        from steersman.journal.state import StateFollower, snapshot_of  # noqa: PLC0415 - on first use

        state = StateFollower()
        state.phase, state.state, state.since = self.phase, self.state, self.since
        state.started, state.completed = self.started, self.completed
        if self._slot.running is not None:
            _add_open(state, self._slot.running.tasks)
        is_asking = self.state == "waiting_permission"
        return snapshot_of(
            state,
            self._prompts.totals,
            session_id=self._slot.session_id,
            queued=self._prompts.queued,
            behind_ask=self._prompts.not_begun if is_asking else (),
        )


def _add_open(state: StateFollower, tasks: RequestTasks) -> None:
    """Add the requests that are being answered."""
    from steersman.journal.state import pending_permission, pending_tool_call  # noqa: PLC0415 - as above

    for ask in tasks.held:
        if isinstance(ask.payload, CanUseTool):
            state.permissions[ask.id] = pending_permission(ask.id, ask.payload, ask.created)
            state.asks[ask.id] = "can_use_tool"
    for asked, since in tasks.open:
        if isinstance(asked, PermissionAsked):
            state.permissions[asked.request_id] = pending_permission(
                asked.request_id, asked.request, since
            )
            state.asks[asked.request_id] = "can_use_tool"
        elif isinstance(asked, ElicitationAsked):
            state.asks[asked.request_id] = "elicitation"
        elif isinstance(asked, DialogAsked):
            state.asks[asked.request_id] = "request_user_dialog"
        elif isinstance(asked, ToolCalled) and asked.message.get("method") == "tools/call":
            params = asked.message.get("params")
            state.tool_calls[asked.request_id] = pending_tool_call(
                asked.server, params if _json.is_object(params) else {}, since
            )
