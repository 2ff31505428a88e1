from __future__ import annotations

from typing import Any

import pytest

from steersman.messages import (
    CommandsChanged,
    FilesPersisted,
    McpResourceLink,
    Memory,
    MemoryRecall,
    PersistedFile,
    RateLimitEvent,
    RateLimitInfo,
    SlashCommand,
    TaskNotification,
    TaskProgress,
    TaskUsage,
    UnpersistedFile,
    parse_message,
)


def system(subtype: str, **fields: Any) -> Any:
    return parse_message({"type": "system", "subtype": subtype, **fields})


@pytest.mark.parametrize("strange", [None, 5, "words", [], [1]])
def test_where_one_value_should_stand_and_does_not_there_is_none(strange: Any) -> None:
    message = system("task_progress", task_id="t", usage=strange)

    assert message == TaskProgress(task_id="t")


def test_a_value_with_a_strange_field_keeps_its_others() -> None:
    usage = {"total_tokens": 5, "tool_uses": "many", "new": 1}

    message = system("task_notification", usage=usage)

    assert message == TaskNotification(usage=TaskUsage(total_tokens=5))
    assert message.usage.raw == usage


def test_of_many_values_each_keeps_its_place() -> None:
    commands = [{"name": "one", "argumentHint": "<x>"}, "strange", {"name": 2, "builtin": True}]

    message = system("commands_changed", commands=commands)

    assert message == CommandsChanged(
        commands=[
            SlashCommand(name="one", argument_hint="<x>"),
            SlashCommand(),
            SlashCommand(builtin=True),
        ]
    )
    assert [each.raw for each in message.commands] == [commands[0], {}, commands[2]]


def test_what_should_be_many_and_is_not_is_none() -> None:
    assert system("memory_recall", memories={"path": "x"}) == MemoryRecall()


def test_every_value_of_a_message_is_read_in_its_class() -> None:
    files = system("files_persisted", files=[{"filename": "a"}], failed=[{"error": "full"}])
    ended = system("task_notification", resource_links=[{"uri": "u", "mimeType": "m"}])
    memory = system("memory_recall", memories=[{"path": "p"}])
    limit = parse_message({"type": "rate_limit_event", "rate_limit_info": {"resetsAt": 5}})

    assert files == FilesPersisted(
        files=[PersistedFile(filename="a")], failed=[UnpersistedFile(error="full")]
    )
    assert ended == TaskNotification(resource_links=[McpResourceLink(uri="u", mime_type="m")])
    assert memory == MemoryRecall(memories=[Memory(path="p")])
    assert limit == RateLimitEvent(rate_limit_info=RateLimitInfo(resets_at=5))
