"""The tree of agents: the main agent, its subagents, and theirs.

Built from the known tasks and tool calls each time it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steersman.journal.calls import ToolCallRecord
from steersman.journal.tasks import Task
from steersman.messages.tasks import TaskUsage

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
