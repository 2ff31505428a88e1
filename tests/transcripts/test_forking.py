"""A conversation copied under a new id."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.transcripts import fork, lines_source, messages
from tests.transcripts.lines import SESSION, call, encoded, entry, result, sample, uuids

NOW = "2026-11-19T10:00:00.000Z"
NEW = "87654321-4321-4321-8321-cba987654321"

Entries = list[dict[str, Any]]


def forked(entries: Entries, up_to: str | None = None, title: str | None = None) -> Entries:
    """The fork, with uuids that begin with N."""
    numbers = itertools.count()
    return list(
        fork(
            entries,
            session_id=SESSION,
            new_id=NEW,
            new_uuid=lambda: f"N{next(numbers)}",
            timestamp=NOW,
            up_to=up_to,
            title=title,
        )
    )


def origins(entries: Entries) -> list[str]:
    return [each["forkedFrom"]["messageUuid"] for each in entries if "forkedFrom" in each]


def test_a_fork_has_new_uuids_and_says_where_it_comes_from() -> None:
    copies = forked([entry("a"), entry("b", "a", "assistant", sourceToolAssistantUUID="a")])

    assert [(each["uuid"], each["parentUuid"], each["sessionId"]) for each in copies[:2]] == [
        ("N0", None, NEW),
        ("N1", "N0", NEW),
    ]
    assert copies[1]["sourceToolAssistantUUID"] == "N0"
    assert copies[1]["forkedFrom"] == {"sessionId": SESSION, "messageUuid": "b"}
    assert copies[2:] == [
        {
            "type": "custom-title",
            "customTitle": "text of a (fork)",
            "sessionId": NEW,
            "uuid": "N2",
            "timestamp": NOW,
        }
    ]


def test_uuids_in_the_words_of_a_message_stay() -> None:
    message = {"role": "user", "content": "a"}

    copies = forked([entry("a", message=message), entry("b", "a", message=message)])

    assert [each["message"] for each in copies[:2]] == [message, message]


@pytest.mark.parametrize(
    ("title", "given", "expected"),
    [
        (None, None, "text of a (fork)"),
        ("named", None, "named (fork)"),
        ("named", "mine", "mine"),
        ("named", " \u202e mine\n", "mine"),
        ("named", "\u202e", "named (fork)"),
    ],
)
def test_a_fork_has_a_title(title: str | None, given: str | None, expected: str) -> None:
    named = [{"type": "custom-title", "customTitle": title}] if title else []

    copies = forked([entry("a"), *named], title=given)

    assert copies[-1]["customTitle"] == expected


def test_what_belongs_to_the_original_alone_is_left_out() -> None:
    left = [
        {"type": kind, "sessionId": SESSION}
        for kind in ("api-request", "queue-operation", "cost-state", "file-history-snapshot", "tag")
    ]
    carried = {"type": "content-replacement", "sessionId": SESSION, "messageUuid": "a"}

    copies = forked([entry("a"), *left, carried, entry("s", "a", isSidechain=True)])

    assert copies[1] == {
        "type": "content-replacement",
        "sessionId": NEW,
        "messageUuid": "N0",
        "uuid": "N2",
        "timestamp": NOW,
    }
    assert len(copies) == 3


def test_entries_that_are_left_out_do_not_break_the_conversation() -> None:
    copies = forked([entry("a"), entry("x", "a", "progress"), entry("b", "x"), entry("c", "gone")])

    assert [each["parentUuid"] for each in copies[:3]] == [None, "N0", None]


def test_a_fork_ends_at_a_message_of_its_branch() -> None:
    entries = [entry("a"), entry("b", "a"), entry("old", "b"), entry("c", "b"), entry("d", "c")]

    assert origins(forked(entries, "c")) == ["a", "b", "c"]
    assert origins(forked(entries, "old")) == ["a", "b", "old"]
    assert origins(forked(entries)) == ["a", "b", "old", "c", "d"]


PARALLEL = [
    entry("p"),
    call("c1", "p", "m"),
    call("c2", "c1", "m"),
    result("r2", "c2"),
    result("r1", "c1"),
    entry("a", "r1", "assistant"),
    entry("q", "a"),
]


@pytest.mark.parametrize(
    ("up_to", "expected"),
    [
        ("a", ["p", "c1", "c2", "r2", "r1", "a"]),
        ("r1", ["p", "c1", "c2", "r2", "r1"]),
        ("r2", ["p", "c1", "c2", "r2", "r1"]),
        ("c1", ["p", "c1"]),
        ("p", ["p"]),
    ],
)
def test_a_fork_has_the_results_of_all_its_tool_calls(up_to: str, expected: list[str]) -> None:
    assert origins(forked(PARALLEL, up_to)) == expected


def test_a_fork_leads_back_through_a_compaction() -> None:
    entries = [
        entry("a"),
        entry("k", None, "system", logicalParentUuid="a", compactMetadata={"x": {"uuids": ["a"]}}),
        entry("b", "k"),
        entry("c", "b"),
    ]

    copies = forked(entries, "b")

    assert origins(copies) == ["a", "k", "b"]
    assert copies[1]["logicalParentUuid"] == copies[0]["uuid"] == "N0"
    assert copies[1]["compactMetadata"] == {"x": {"uuids": ["N0"]}}
    assert copies[1]["parentUuid"] is None


@pytest.mark.parametrize("up_to", ["gone", "s", ""])
def test_a_message_that_the_conversation_does_not_have_is_refused(up_to: str) -> None:
    with pytest.raises(UsageError, match=r"up_to: got .*, allowed: the uuid of a message"):
        forked([entry("a"), entry("s", "a", isSidechain=True)], up_to)


def test_a_session_without_messages_is_refused() -> None:
    with pytest.raises(UsageError, match="allowed: a session that has messages"):
        forked([{"type": "custom-title", "customTitle": "x"}])


def test_a_field_that_is_nested_too_deeply_is_copied_as_it_is() -> None:
    deep: Any = ["a"]
    for _ in range(3000):
        deep = [deep]

    copies = forked([entry("a"), entry("b", "a", attachment=deep, sourceToolAssistantUUID="a")])

    assert copies[1]["attachment"] is deep
    assert (copies[1]["parentUuid"], copies[1]["sourceToolAssistantUUID"]) == ("N0", "N0")


def test_an_iterator_can_be_forked_too() -> None:
    entries = iter([entry("a"), entry("b", "a")])

    copies = fork(entries, session_id=SESSION, new_id=NEW, new_uuid=lambda: "N", timestamp=NOW)

    assert origins(list(copies)) == ["a", "b"]


def test_a_file_of_the_cli_is_the_same_conversation_when_it_is_forked() -> None:
    entries = [json.loads(line) for line in sample("conversation")]

    copies = forked(entries)

    old, new = [
        [each.message for each in messages(source, session_id=SESSION, through_compaction=True)]
        for source in (lines_source(encoded(*entries)), lines_source(encoded(*copies)))
    ]
    assert old == new
    known = {each["uuid"] for each in entries if "uuid" in each}
    linked = json.dumps([{**each, "forkedFrom": None} for each in copies])
    assert [uuid for uuid in known if uuid in linked] == []


NAMES = st.sampled_from([f"u{number}" for number in range(8)])
ENTRIES = st.lists(
    st.builds(entry, NAMES, st.none() | NAMES, st.sampled_from(["user", "system", "progress"]))
    | st.builds(call, NAMES, NAMES, st.sampled_from(["m", "n"]))
    | st.builds(result, NAMES, NAMES),
    min_size=1,
    max_size=20,
)


def has_cycle(entries: Entries) -> bool:
    links = {(each["uuid"], each["parentUuid"]) for each in entries}
    while left := {each for each in links if each[1] in dict(links)}:
        if left == links:
            return True
        links = left
    return False


@given(ENTRIES, st.none() | NAMES)
def test_any_entries_give_a_fork_whose_parents_are_in_it(
    entries: Entries, up_to: str | None
) -> None:
    try:
        copies = forked(entries, up_to)
    except UsageError:
        return

    copied = {each["uuid"]: each["parentUuid"] for each in copies if "forkedFrom" in each}
    assert all(each in {None, *copied} for each in copied.values())
    assert len(origins(copies)) == len(set(origins(copies))) == len(copied)
    assert up_to is None or up_to in origins(copies)
    # What led to a cycle of parents may be left out, and then nothing does.
    if not has_cycle(entries) and any(each["type"] in ("user", "assistant") for each in copies):
        assert uuids(*copies) or not uuids(*entries)
