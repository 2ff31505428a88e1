from __future__ import annotations

from typing import Any

import pytest

from steersman.journal.calls import ToolCallTracker
from steersman.journal.tasks import ENDED, LOST, MAIN, AgentNode, Task, TaskRegistry, agent_tree
from steersman.messages import Message, parse_message
from steersman.messages.tasks import TaskUsage
from tests.samples import alone, frames, traces

NESTED = ("nested in the foreground", "nested in the background")


def message(subtype: str, **fields: Any) -> Message:
    return parse_message({"type": "system", "subtype": subtype, **fields})


def started(task_id: str, **fields: Any) -> Message:
    return message("task_started", task_id=task_id, task_type="local_agent", **fields)


def background(*task_ids: str) -> Message:
    return message("background_tasks_changed", tasks=[{"task_id": each} for each in task_ids])


def recorded(case: str) -> list[tuple[Message, float]]:
    return [
        (parse_message(each["frame"]), each["at"])
        for each in alone("recorded", "tasks")
        if each["case"] == case
    ]


def read_all(messages: list[tuple[Message, float]]) -> tuple[TaskRegistry, ToolCallTracker]:
    tasks, calls = TaskRegistry(), ToolCallTracker()
    for each, at in messages:
        tasks.record(each, at)
        calls.record(each, at)
    return tasks, calls


def test_a_task_runs_from_its_start_to_its_end() -> None:
    tasks = TaskRegistry()
    tasks.record(started("a1", tool_use_id="t1", description="look", subagent_type="helper"), 1.0)
    assert [each.task_id for each in tasks.running] == ["a1"]

    tasks.record(
        message("task_progress", task_id="a1", description="Reading", last_tool_name="Read"), 2.0
    )
    (ended,) = tasks.record(
        message("task_notification", task_id="a1", status="completed", summary="found it"), 3.0
    )

    assert tasks.running == ()
    assert tasks.all == (ended,)
    assert ended == Task(
        task_id="a1",
        started=1.0,
        ended=3.0,
        state="completed",
        task_type="local_agent",
        tool_use_id="t1",
        description="look",
        subagent_type="helper",
        last_tool_name="Read",
        doing="Reading",
        summary="found it",
    )


ENDINGS = [
    message("task_updated", task_id="a1", patch={"status": "killed", "end_time": 1}),
    message("task_notification", task_id="a1", status="killed"),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_either_message_alone_ends_a_task(ending: Message) -> None:
    tasks = TaskRegistry()
    tasks.record(started("a1"), 1.0)

    tasks.record(ending, 2.0)

    assert [(each.state, each.ended) for each in tasks.all] == [("killed", 2.0)]


def test_a_task_that_leaves_the_background_without_a_word_has_ended() -> None:
    tasks = TaskRegistry()
    tasks.record(background("a1", "a2"), 1.0)
    tasks.record(started("a1", is_backgrounded=True), 1.0)
    tasks.record(started("front", is_backgrounded=False), 1.0)

    (ended,) = tasks.record(background("a2"), 2.0)

    assert (ended.task_id, ended.state, ended.ended) == ("a1", ENDED, 2.0)
    assert [each.task_id for each in tasks.running] == ["a2", "front"]
    assert [each.task_id for each in tasks.background] == ["a2"]


def test_a_later_message_that_states_the_end_counts() -> None:
    tasks = TaskRegistry()
    tasks.record(background("a1"), 1.0)
    tasks.record(background(), 2.0)

    tasks.record(message("task_notification", task_id="a1", status="failed"), 3.0)

    assert [(each.state, each.ended) for each in tasks.all] == [("failed", 2.0)]


def test_progress_after_the_end_does_not_bring_it_back_but_another_start_does() -> None:
    tasks = TaskRegistry()
    tasks.record(started("a1"), 1.0)
    tasks.record(ENDINGS[0], 2.0)

    tasks.record(message("task_progress", task_id="a1", description="late"), 3.0)
    assert not tasks.running

    tasks.record(started("a1"), 4.0)
    assert [each.task_id for each in tasks.running] == ["a1"]


def test_tasks_end_with_their_cli() -> None:
    tasks = TaskRegistry()
    tasks.record(started("a1"), 1.0)

    (lost,) = tasks.lose(5.0)

    assert (lost.state, lost.ended) == (LOST, 5.0)
    assert tasks.running == ()


def test_a_long_session_forgets_old_tasks_but_none_that_runs() -> None:
    tasks = TaskRegistry(kept=5)
    tasks.record(started("still here"), 0.0)
    for n in range(50):
        tasks.record(started(f"a{n}"), float(n))
        tasks.record(message("task_notification", task_id=f"a{n}", status="completed"), float(n))

    assert len(tasks.all) == 5
    assert [each.task_id for each in tasks.running] == ["still here"]


def test_messages_of_another_kind_and_without_an_id_change_nothing() -> None:
    tasks = TaskRegistry()

    assert tasks.record(message("init"), 1.0) == []
    assert tasks.record(message("task_started"), 1.0) == []
    assert tasks.record(background(), 1.0) == []


@pytest.mark.parametrize(
    "trace", [each for each in traces() if "background" in each or "sub" in each]
)
def test_every_recorded_task_comes_to_an_end(trace: str) -> None:
    tasks, _ = read_all([(parse_message(frame), float(n)) for n, frame in enumerate(frames(trace))])

    assert tasks.all
    assert {each.state for each in tasks.all} == {"completed"}


# Recorded one by one


@pytest.mark.parametrize(
    ("case", "state"),
    [
        # `killed` in one message, `stopped` in the next: an end does not change any more.
        ("a shell that is stopped", "killed"),
        ("a shell that fails", "failed"),
        ("a shell moved to the background", "completed"),
    ],
)
def test_a_shell_ends_as_the_cli_says_first(case: str, state: str) -> None:
    tasks, _ = read_all(recorded(case))

    assert [(each.state, each.is_background, each.is_agent) for each in tasks.all] == [
        (state, True, False)
    ]


def test_a_shell_that_is_moved_goes_on_in_the_background() -> None:
    tasks = TaskRegistry()
    seen: list[bool] = []
    for each, at in recorded("a shell moved to the background"):
        tasks.record(each, at)
        seen += [task.is_background for task in tasks.running]

    assert seen[0] is False
    assert seen[-1] is True


@pytest.mark.parametrize("case", NESTED)
def test_subagents_of_subagents_stand_below_them(case: str) -> None:
    tasks, calls = read_all(recorded(case))

    tree = agent_tree(tasks.all, calls.all, "idle")

    assert [(each.description, each.state) for each in tree.walk()] == [
        ("", "idle"),
        ("look", "completed"),
        ("deeper", "completed"),
    ]
    (first,) = tree.children
    (second,) = first.children
    assert (tree.agent_id, first.parent_id, second.parent_id) == (MAIN, MAIN, first.agent_id)
    assert [call.name for call in tree.tool_calls] == ["Agent"]
    assert [call.name for call in first.tool_calls] == ["Agent"]
    assert second.usage is not None
    assert second.usage.tool_uses == 1


def test_what_an_agent_calls_is_its_own() -> None:
    tasks, calls = read_all(recorded("nested in the background"))

    *_, deepest = agent_tree(tasks.all, calls.all).walk()

    assert [call.name for call in deepest.tool_calls] == ["Bash"]


def test_without_the_clis_word_the_call_tells_who_sent_it() -> None:
    tasks, calls = read_all(recorded("nested in the foreground"))
    unsaid = [Task(**{**_fields(each), "parent_task_id": None}) for each in tasks.all]

    tree = agent_tree(unsaid, calls.all)

    assert [each.description for each in tree.children] == ["look"]
    assert [each.description for each in tree.children[0].children] == ["deeper"]


def test_an_agent_with_an_unknown_parent_is_the_main_ones() -> None:
    lonely = Task(task_id="a1", started=1.0, task_type="local_agent", parent_task_id="gone")
    own = Task(task_id="a2", started=1.0, task_type="local_agent", parent_task_id="a2")

    tree = agent_tree([lonely, own], [])

    assert [each.agent_id for each in tree.children] == ["a1", "a2"]


def test_the_tree_tells_who_runs() -> None:
    running = Task(task_id="a1", started=1.0, task_type="local_agent", is_background=True)
    shell = Task(task_id="b1", started=1.0, task_type="local_bash")

    tree = agent_tree([running, shell], [], "running", started=0.0)

    assert tree.is_running
    assert [(each.agent_id, each.is_running) for each in tree.children] == [("a1", True)]
    assert AgentNode(agent_id="", state="idle").is_running is False
    assert agent_tree([], [], started=0.0, ended=2.0).is_running is False


def _fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in Task.__slots__}


def test_the_end_of_a_task_has_what_it_used_and_what_came_of_it() -> None:
    tasks = TaskRegistry()
    usage = {"total_tokens": 7, "tool_uses": 2, "duration_ms": 5}
    fields = {"tool_use_id": "t1", "run_id": "r1", "usage": usage, "summary": "done"}

    (ended,) = tasks.record(message("task_notification", task_id="a1", **fields), 3.0)

    assert ended == Task(
        task_id="a1",
        started=3.0,
        ended=3.0,
        state=ENDED,
        tool_use_id="t1",
        run_id="r1",
        usage=TaskUsage(total_tokens=7, tool_uses=2, duration_ms=5),
        summary="done",
    )
