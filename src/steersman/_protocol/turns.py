"""Which prompt a line belongs to, and when a prompt is done with.

Prompts settle by uuid, never by counting results: the CLI merges and folds prompts, drops doubles,
and runs turns that nobody asked for. The rules, in the order of their weight:

- a result that names a prompt settles it;
- `command_lifecycle: cancelled` settles a prompt that no result has settled;
- a bare `completed` settles it once the CLI is idle (a folded prompt completes before its result);
- on older CLIs, whose results name nobody, a result settles the prompts replayed since the last
  one, unless it tells of a foreign origin.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman._protocol.events import TurnSettled, TurnStarted
from steersman._protocol.routing import RoutingFields

__all__ = ["TurnTracker"]

TurnEvent = TurnStarted | TurnSettled


class TurnTracker:
    """Follows the prompts that were sent and not yet settled."""

    def __init__(self) -> None:
        self.current: tuple[str, ...] = ()
        """The prompts that the CLI is at work on: what it says now belongs to them."""
        self._open: dict[str, None] = {}
        self._started: set[str] = set()
        self._completed: set[str] = set()
        self._replayed: list[str] = []
        self._owners: dict[str, tuple[str, ...]] = {}
        self._has_lifecycle = False
        self._together: tuple[str, ...] = ()
        self._stand_ins: dict[str, str] = {}

    @property
    def open(self) -> tuple[str, ...]:
        """Prompts not yet settled, in the order they were sent."""
        return tuple(self._open)

    def expect(self, uuid: str) -> None:
        """A prompt is on its way."""
        self._open[self._stand_ins.get(uuid, uuid)] = None

    def resume(self, uuids: Iterable[str]) -> None:
        """The CLI takes up the turn of these prompts, in whose middle another one was lost.

        It names only the first of them in the end; they settle together.
        """
        # Older ones take up nothing; and one that refuses to go on says so with a bare result.
        self._has_lifecycle = True
        self._together = tuple(uuids)
        self._open |= dict.fromkeys(self._together)
        self._started.update(self._together)
        self.current = self._together

    def alias(self, other: str, uuid: str) -> None:
        """What the CLI says about `other` is about the prompt `uuid`."""
        self._stand_ins[other] = uuid

    def continue_as(self, uuid: str, other: str) -> None:
        """A prompt that was settled goes on, under the uuid of another one."""
        self.alias(other, uuid)
        self._open[uuid] = None

    def has_started(self, uuid: str) -> bool:
        """Whether the CLI has begun with this prompt."""
        return uuid in self._started

    def owners(self, parent: str | None) -> tuple[str, ...]:
        """The prompts that a line belongs to: its subagent's, or else the current ones."""
        return self.current if parent is None else self._owners.get(parent, self.current)

    def lifecycle(self, uuid: str, state: str) -> list[TurnEvent]:
        """The CLI tells what becomes of a prompt."""
        self._has_lifecycle = True
        uuid = self._stand_ins.get(uuid, uuid)
        if uuid not in self._open:
            return []
        if state == "started":
            return self._start(uuid)
        if state == "completed":
            self._completed.add(uuid)
        if state == "cancelled":
            return self._settle([uuid], None, was_cancelled=True)
        return []

    def opened(self) -> list[TurnEvent]:
        """A turn of the CLI's begins. Older ones replay its prompt only after the first text."""
        waiting = [uuid for uuid in self._open if uuid not in self._started]
        if self._has_lifecycle or self.current or not waiting:
            return []
        return self._start(waiting[0])

    def replayed(self, uuid: str) -> list[TurnEvent]:
        """The CLI echoes a prompt: on older ones, the only sign that it has begun with it."""
        uuid = self._stand_ins.get(uuid, uuid)
        if uuid not in self._open:
            return []
        self._replayed.append(uuid)
        return self._start(uuid)

    def result(self, route: RoutingFields, line: bytes) -> list[TurnEvent]:
        """A turn of the CLI's has ended."""
        named = route.user_message_uuids or [uuid for uuid in (route.user_message_uuid,) if uuid]
        named = [self._stand_ins.get(uuid, uuid) for uuid in named]
        if not named and route.origin is not None:
            # Nobody asked for that turn; it ends no prompt of ours.
            return []
        replayed, self._replayed = self._replayed, []
        # An older CLI that is stopped in its first text does not even replay.
        begun = () if self._has_lifecycle else self.current
        self.current = ()
        return self._settle(self._with_others(named or replayed or begun), line)

    def idle(self) -> list[TurnEvent]:
        """The CLI has nothing left to do: what completed without a result is settled now."""
        self.current = ()
        completed = [uuid for uuid in self._open if uuid in self._completed]
        return self._settle(self._with_others(completed), None)

    def task_started(self, tool_use_id: str) -> None:
        """A subagent begins; all it ever says belongs to the prompts at work now."""
        self._owners.setdefault(tool_use_id, self.current)

    def _with_others(self, uuids: Iterable[str]) -> list[str]:
        """These prompts, and those that share their turn although no line says so."""
        named = list(uuids)
        return [*named, *self._together] if set(named) & set(self._together) else named

    def _start(self, uuid: str) -> list[TurnEvent]:
        if uuid in self._started:
            return []
        self._started.add(uuid)
        self.current = (*self.current, uuid)
        return [TurnStarted(uuid)]

    def _settle(
        self, uuids: Iterable[str], line: bytes | None, *, was_cancelled: bool = False
    ) -> list[TurnEvent]:
        known = [uuid for uuid in dict.fromkeys(uuids) if uuid in self._open]
        for uuid in known:
            del self._open[uuid]
            self._started.discard(uuid)
            self._completed.discard(uuid)
        self.current = tuple(uuid for uuid in self.current if uuid not in known)
        return [TurnSettled(uuid, line, was_cancelled) for uuid in known]
