"""Background work and subagents, read off the CLI's task messages.

Messages and their times in; what runs, what ran, and how it ended out. The CLI tells the end of a
task in up to three ways, not always in all of them: the first that comes ends it, later ones add
what they know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from steersman.messages.parsing import Message
from steersman.messages.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
    TaskUsage,
)

__all__ = ["AGENT", "ENDED", "LOST", "RUNNING", "Task", "TaskRegistry"]

RUNNING = "running"
ENDED = "ended"
"""It no longer runs, and the CLI did not say how it ended."""
LOST = "lost"
"""The CLI went away under it."""

AGENT = "local_agent"
"""The type of a task that is a subagent."""

UNENDED = frozenset({RUNNING, "pending", "paused", "waiting"})
"""States in which something can still come; any other word of the CLI's is an end."""

_Changes: TypeAlias = dict[str, Any]
"""New values of fields of a `Task`, by name."""

KEPT = 1000
"""Tasks that the registry of a session remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A subagent, a shell, or other work with an id of its own."""

    task_id: str
    """Of a subagent this is its `agent_id`, too."""
    started: float
    """Seconds since the epoch."""
    state: str = RUNNING
    """`running`, or the CLI's word for its end, such as `completed`; or `ended`, or `lost`."""
    ended: float | None = None
    task_type: str = ""
    tool_use_id: str = ""
    """The tool call that began it."""
    description: str = ""
    subagent_type: str | None = None
    parent_task_id: str | None = None
    """The subagent that began it, where the CLI says so."""
    is_background: bool = False
    """Whether the turn does not wait for it."""
    run_id: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None
    doing: str = ""
    """What it was last seen to do."""
    summary: str = ""
    """What it said at its end."""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    @property
    def is_agent(self) -> bool:
        """Whether it is a subagent."""
        return self.task_type == AGENT or self.subagent_type is not None


class TaskRegistry:
    """Every task of a session, with a known end for each."""

    def __init__(self, kept: int | None = KEPT) -> None:
        """Remember so many tasks, the latest ones and all that run; `None` is all of them."""
        self._kept = kept
        self._tasks: dict[str, Task] = {}

    @property
    def all(self) -> tuple[Task, ...]:
        """Every task it remembers, in the order they began in."""
        return tuple(self._tasks.values())

    @property
    def running(self) -> tuple[Task, ...]:
        """Those that have not ended."""
        return tuple(task for task in self._tasks.values() if task.is_running)

    @property
    def background(self) -> tuple[Task, ...]:
        """Those that go on after their turn."""
        return tuple(task for task in self.running if task.is_background)

    def get(self, task_id: str) -> Task | None:
        """The task of that id."""
        return self._tasks.get(task_id)

    def record(self, message: Message, at: float) -> list[Task]:
        """The tasks that `message` changes, as they are now."""
        match message:
            case TaskStarted():
                return self._change(message.task_id, at, **_facts_of(message))
            case TaskProgress():
                return self._change(message.task_id, at, **_progress_of(message))
            case TaskUpdated():
                return self._update(message, at)
            case TaskNotification():
                return self._notify(message, at)
            case BackgroundTasksChanged():
                return self._replace_background(message, at)
            case _:
                return []

    def lose(self, at: float) -> list[Task]:
        """The CLI is gone, and every task with it."""
        return [
            task for each in self.running for task in self._change(each.task_id, at, state=LOST)
        ]

    def _update(self, message: TaskUpdated, at: float) -> list[Task]:
        patch = message.patch
        facts: _Changes = {
            name: value
            for name in ("description", "summary")
            if isinstance(value := patch.get(name), str)
        }
        if isinstance(background := patch.get("is_backgrounded"), bool):
            facts["is_background"] = background
        state = patch.get("status")
        if isinstance(state, str) and state:
            facts["state"] = state
        elif "end_time" in patch:
            facts["state"] = ENDED
        return self._change(message.task_id, at, **facts)

    def _notify(self, message: TaskNotification, at: float) -> list[Task]:
        facts = _known(
            tool_use_id=message.tool_use_id,
            run_id=message.run_id,
            usage=message.usage,
            summary=message.summary,
        )
        return self._change(message.task_id, at, **facts, state=message.status or ENDED)

    def _replace_background(self, message: BackgroundTasksChanged, at: float) -> list[Task]:
        """The whole set of what runs in the background: what is missing there has ended."""
        listed = {str(each.get("task_id")): each for each in message.tasks if each.get("task_id")}
        changed = [
            task
            for each in self.background
            if each.task_id not in listed
            for task in self._change(each.task_id, at, state=ENDED)
        ]
        for task_id, each in listed.items():
            facts = {name: each[name] for name in _LISTED if isinstance(each.get(name), str)}
            changed += self._change(task_id, at, **facts, is_background=True)
        return changed

    def _change(self, task_id: str, at: float, **facts: Any) -> list[Task]:
        if not task_id:
            return []
        known = self._tasks.get(task_id)
        before = known or Task(task_id=task_id, started=at)
        after = replace(before, **facts)
        if after.state not in UNENDED:
            ended = at if before.ended is None else before.ended
            # A stopped shell is `killed` in one message and `stopped` in the next.
            state = before.state if _has_stated_end(before) else after.state
            after = replace(after, state=state, ended=ended)
        elif before.ended is not None:
            # A later run of the same task.
            after = replace(after, ended=None)
        self._tasks[task_id] = after
        self._forget()
        return [] if after == known else [after]

    def _forget(self) -> None:
        if self._kept is None or len(self._tasks) <= self._kept:
            return
        oldest = next((each for each in self._tasks.values() if not each.is_running), None)
        if oldest is not None:
            del self._tasks[oldest.task_id]


_LISTED = ("task_type", "subagent_type", "description", "run_id", "parent_task_id")


def _has_stated_end(task: Task) -> bool:
    """Whether the CLI has told how it ended."""
    return task.ended is not None and task.state not in (ENDED, LOST)


def _facts_of(message: TaskStarted) -> _Changes:
    return {
        "state": RUNNING,
        **_known(
            tool_use_id=message.tool_use_id,
            task_type=message.task_type,
            description=message.description,
            subagent_type=message.subagent_type,
            parent_task_id=message.parent_task_id,
            is_background=message.is_backgrounded,
            run_id=message.run_id,
        ),
    }


def _progress_of(message: TaskProgress) -> _Changes:
    return _known(
        tool_use_id=message.tool_use_id,
        subagent_type=message.subagent_type,
        usage=message.usage,
        last_tool_name=message.last_tool_name,
        doing=message.description,
        summary=message.summary,
    )


def _known(**facts: Any) -> _Changes:
    """What a message really tells: the rest must not wipe out what an earlier one told."""
    return {name: value for name, value in facts.items() if value not in (None, "")}
