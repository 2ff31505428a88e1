"""Which prompt a line belongs to, and when a prompt settles.

Prompts settle by uuid, never by counting results: the CLI merges and folds prompts, drops doubles,
and runs turns without a prompt. The rules, most important first:

- a result that names a prompt settles it;
- `command_lifecycle: cancelled` settles a prompt that no result has settled;
- a bare `completed` settles it once the CLI is idle (a folded prompt completes before its result);
- on older CLIs, whose results name no prompt, a result settles the prompts replayed since the
  last one, unless it has a foreign `origin`;
- a peer that names no prompt, sends no lifecycle and replays nothing is no CLI, but a stand-in:
  there, a message begins the oldest open prompt, and a result without `origin` settles it.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman._protocol.events import TurnSettled, TurnStarted
from steersman._protocol.routing import RoutingFields

TurnEvent = TurnStarted | TurnSettled


class TurnTracker:
    """Tracks the prompts that were sent and have not settled."""

    def __init__(self) -> None:
        self.current: tuple[str, ...] = ()
        """The prompts that the CLI is processing: lines that arrive now belong to them."""
        self._open: dict[str, None] = {}
        self._started: set[str] = set()
        self._completed: set[str] = set()
        self._replayed: list[str] = []
        self._owners: dict[str, tuple[str, ...]] = {}
        self._has_lifecycle = False
        self.is_nameless = True
        """Whether the peer has named no prompt by its uuid, and has not announced that it will."""
        self._together: tuple[str, ...] = ()
        self._aliases: dict[str, str] = {}
        self._adopted: str | None = None
        """The prompt whose turn the CLI continues under a uuid of its own."""
        self._has_yet_to_resume = False

    @property
    def open(self) -> tuple[str, ...]:
        """The uuids of prompts that have not settled, in the order they were sent."""
        return tuple(self._open)

    def expect(self, uuid: str) -> None:
        """Expect lines about this prompt."""
        self._open[self._aliases.get(uuid, uuid)] = None

    def resume(self, uuids: Iterable[str]) -> None:
        """Expect the CLI to continue the turn of these prompts, in which another CLI exited.

        The result names only the first of them; they settle together.
        """
        # Older CLIs continue nothing. A CLI that refuses to continue sends a bare result.
        self._has_lifecycle = self._has_yet_to_resume = True
        self.is_nameless = False
        self._together = tuple(uuids)
        self._open |= dict.fromkeys(self._together)
        self._started.update(self._together)
        self.current = self._together

    def alias(self, other: str, uuid: str) -> None:
        """Count what the CLI reports about `other` as about the prompt `uuid`."""
        self._aliases[other] = uuid

    def continue_as(self, uuid: str, other: str) -> None:
        """Reopen the settled prompt `uuid`, which continues under the uuid `other`."""
        self.alias(other, uuid)
        self._open[uuid] = None

    def adopt(self, uuid: str) -> None:
        """Count the turn in progress, which the CLI has begun by itself, as that of a prompt.

        So a CLI continues a turn in which a call was deferred. Its result names no prompt.
        """
        self._has_lifecycle = True
        self.is_nameless = False
        self._open[uuid] = None
        self._started.add(uuid)
        self._adopted, self.current = uuid, (uuid,)

    def owners(self, parent: str | None) -> tuple[str, ...]:
        """Return the prompts that a line belongs to: its subagent's, or else the current ones."""
        return self.current if parent is None else self._owners.get(parent, self.current)

    def lifecycle(self, uuid: str, state: str) -> list[TurnEvent]:
        """Handle a `command_lifecycle` message."""
        self._has_lifecycle, self._has_yet_to_resume = True, False
        self.is_nameless = False
        uuid = self._aliases.get(uuid, uuid)
        if uuid not in self._open:
            return []
        if state == "started":
            return self._start(uuid)
        if state == "completed":
            self._completed.add(uuid)
            if uuid not in self._started:
                # It was dropped, so no result is its own.
                self._replayed = [each for each in self._replayed if each != uuid]
        if state == "cancelled":
            return self._settle([uuid], None, was_cancelled=True)
        return []

    def opened(self) -> list[TurnEvent]:
        """Handle `system/init`. Older CLIs replay the turn's prompt only after its first text."""
        self._has_yet_to_resume = False
        waiting = [uuid for uuid in self._open if uuid not in self._started]
        if self._has_lifecycle or self.current or not waiting:
            return []
        return self._start(waiting[0])

    def spoken(self) -> list[TurnEvent]:
        """Handle a message of the main agent, from a peer that has named no prompt."""
        if self.current or not self._open:
            return []
        oldest = next(iter(self._open))
        started = self._start(oldest)
        self.current = (oldest,)
        return started

    def replayed(self, uuid: str) -> list[TurnEvent]:
        """Handle a replayed prompt: on older CLIs the only sign that it has started."""
        self.is_nameless = False
        uuid = self._aliases.get(uuid, uuid)
        if uuid not in self._open:
            return []
        self._replayed.append(uuid)
        # A CLI that reports more also replays the prompts that it drops.
        return [] if self._has_lifecycle else self._start(uuid)

    def is_refusal(self, fields: RoutingFields) -> bool:
        """Whether a result is that of a CLI that finds no conversation in which to continue."""
        is_bare = not (fields.user_message_uuids or fields.user_message_uuid or fields.origin)
        return is_bare and self._has_yet_to_resume

    def result(self, fields: RoutingFields, line: bytes) -> list[TurnEvent]:
        """Handle a result."""
        named = fields.user_message_uuids or [uuid for uuid in (fields.user_message_uuid,) if uuid]
        named = [self._aliases.get(uuid, uuid) for uuid in named]
        if named:
            self.is_nameless = False
        if not named and fields.origin is not None:
            # A turn without a prompt of ours, such as one of a background task.
            return []
        if not named and self._adopted is not None:
            named, self._adopted = [self._adopted], None
        replayed, self._replayed = self._replayed, []
        # An older CLI that is interrupted in its first text does not replay the prompt.
        begun = () if self._has_lifecycle else self.current
        if self.is_nameless and not begun:
            begun = self.open[:1]
        self.current = ()
        return self._settle(self._with_others(named or replayed or begun), line)

    def idle(self) -> list[TurnEvent]:
        """Handle the idle state: settle prompts that completed without a result."""
        self.current = ()
        completed = [uuid for uuid in self._open if uuid in self._completed]
        return self._settle(self._with_others(completed), None)

    def task_started(self, tool_use_id: str) -> None:
        """Handle the start of a subagent; all its lines belong to the current prompts."""
        self._owners.setdefault(tool_use_id, self.current)

    def _with_others(self, uuids: Iterable[str]) -> list[str]:
        """Return these prompts and those that share their turn."""
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
