"""Background tasks and subagents, read from the CLI's task messages; and the tree of agents.

Messages and their times in; tasks and their ends out. The CLI reports the end of a task with up to
three messages. The first one ends the task; later ones add their fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from steersman.journal.calls import ToolCallRecord
from steersman.messages.parsing import Message
from steersman.messages.tasks import (
    BackgroundTasksChanged,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
    TaskUsage,
)

RUNNING = "running"
ENDED = "ended"
"""The task no longer runs, and the CLI has not reported how it ended."""
LOST = "lost"
"""The CLI of the task exited while it ran."""

AGENT = "local_agent"
"""The `task_type` of a subagent."""

UNENDED = frozenset({RUNNING, "pending", "paused", "waiting"})
"""The states of a task that has not ended; any other state is an end."""

_Changes: TypeAlias = dict[str, Any]
"""New values of fields of a `Task`, by name."""

KEPT = 1000
"""How many tasks the registry of a session remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A subagent, a shell, or other work that has an id."""

    task_id: str
    """The id of the task; for a subagent also its `agent_id`."""
    started: float
    """Seconds since the epoch."""
    state: str = RUNNING
    """`running`, or the end as the CLI names it, such as `completed`; or `ended`, or `lost`."""
    ended: float | None = None
    task_type: str = ""
    tool_use_id: str = ""
    """The tool call that started the task."""
    description: str = ""
    subagent_type: str | None = None
    parent_task_id: str | None = None
    """The subagent that started the task, if the CLI has named it."""
    is_background: bool = False
    """Whether the task runs in the background, so that the turn does not wait for it."""
    run_id: str | None = None
    usage: TaskUsage | None = None
    last_tool_name: str | None = None
    doing: str = ""
    """What the task does, in its last progress message."""
    summary: str = ""
    """The summary in the last message that had one."""

    @property
    def is_running(self) -> bool:
        """Whether the task has not ended."""
        return self.ended is None

    @property
    def is_agent(self) -> bool:
        """Whether the task is a subagent."""
        return self.task_type == AGENT or self.subagent_type is not None


class TaskRegistry:
    """All tasks of a session, and how each of them ended."""

    def __init__(self, kept: int | None = KEPT) -> None:
        """Remember the latest `kept` tasks and all running ones; `None` keeps all."""
        self._kept = kept
        self._tasks: dict[str, Task] = {}

    @property
    def all(self) -> tuple[Task, ...]:
        """All remembered tasks, in the order in which they began."""
        return tuple(self._tasks.values())

    @property
    def running(self) -> tuple[Task, ...]:
        """The tasks that have not ended."""
        return tuple(task for task in self._tasks.values() if task.is_running)

    @property
    def background(self) -> tuple[Task, ...]:
        """The running tasks that continue after their turn."""
        return tuple(task for task in self.running if task.is_background)

    def get(self, task_id: str) -> Task | None:
        """Return the task with this id, if it is remembered."""
        return self._tasks.get(task_id)

    def record(self, message: Message, at: float) -> list[Task]:
        """Return the tasks that `message` changes."""
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
        """End all running tasks as `lost`, because their CLI has exited; return them."""
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
        """Apply the full list of background tasks: a task that is not in it has ended."""
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
    """Whether the CLI has reported how the task ended."""
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
    """Return the fields that a message really has: empty ones must not replace known values."""
    return {name: value for name, value in facts.items() if value not in (None, "")}


MAIN = ""
"""The id of the main agent, which has none on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNode:
    """One agent, and the subagents that it started."""

    agent_id: str
    """The `agent_id` in messages and permission requests of this agent; empty for the main one."""
    state: str
    """The state of the session for the main agent; the state of the task for a subagent."""
    description: str = ""
    subagent_type: str | None = None
    tool_use_id: str = ""
    """The tool call that started this agent."""
    parent_id: str | None = None
    """The `agent_id` of the agent that started this one; `None` for the main agent."""
    started: float | None = None
    ended: float | None = None
    is_background: bool = False
    usage: TaskUsage | None = None
    """Tokens, tool uses and time so far. For subagents of subagents the CLI reports little else."""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    children: tuple[AgentNode, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether the agent has started and not ended."""
        return self.started is not None and self.ended is None

    def walk(self) -> Iterator[AgentNode]:
        """Yield this agent and all agents below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def agent_tree(
    tasks: Iterable[Task],
    calls: Iterable[ToolCallRecord],
    state: str = "",
    *,
    started: float | None = None,
    ended: float | None = None,
) -> AgentNode:
    """Return the main agent, in `state`, with the subagents in `tasks` and the calls of each."""
    agents = {task.task_id: task for task in tasks if task.is_agent}
    ids = {task.tool_use_id: task.task_id for task in agents.values() if task.tool_use_id}
    calls = list(calls)
    called: dict[str, list[ToolCallRecord]] = {}
    for call in calls:
        called.setdefault(ids.get(call.parent_tool_use_id or "", MAIN), []).append(call)
    callers = {call.tool_use_id: ids.get(call.parent_tool_use_id or "", MAIN) for call in calls}
    nodes: dict[str, list[AgentNode]] = {}
    places = {task_id: place for place, task_id in enumerate(agents)}
    # Parents come before their children, so backwards each child is built before its parent.
    for task in reversed(agents.values()):
        parent = _parent_of(task, places, callers)
        node = _node_of(task, parent, called, nodes)
        nodes.setdefault(parent, []).insert(0, node)
    return AgentNode(
        agent_id=MAIN,
        state=state,
        started=started,
        ended=ended,
        tool_calls=tuple(called.get(MAIN, ())),
        children=tuple(nodes.get(MAIN, ())),
    )


def _parent_of(task: Task, places: dict[str, int], callers: dict[str, str]) -> str:
    """Return the id of the agent that started `task`: as reported, else the caller's, else MAIN."""
    parent = task.parent_task_id or callers.get(task.tool_use_id, MAIN)
    is_before = parent in places and places[parent] < places[task.task_id]
    return parent if is_before else MAIN


def _node_of(
    task: Task,
    parent: str,
    called: dict[str, list[ToolCallRecord]],
    nodes: dict[str, list[AgentNode]],
) -> AgentNode:
    return AgentNode(
        agent_id=task.task_id,
        state=task.state,
        description=task.description,
        subagent_type=task.subagent_type,
        tool_use_id=task.tool_use_id,
        parent_id=parent,
        started=task.started,
        ended=task.ended,
        is_background=task.is_background,
        usage=task.usage,
        tool_calls=tuple(called.get(task.task_id, ())),
        children=tuple(nodes.get(task.task_id, ())),
    )
