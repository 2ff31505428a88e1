"""The messages of a conversation, by their parents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import UsageError
from steersman.transcripts import AgentInfo, lines_source, messages
from tests.transcripts.lines import (
    SESSION,
    call,
    encoded,
    entry,
    result,
    sample,
    sources,
    texts,
    uuids,
)

PARALLEL = [
    entry("p"),
    call("c1", "p", "m"),
    call("c2", "c1", "m"),
    call("c3", "c2", "m"),
    result("r3", "c3"),
    result("r1", "c1"),
    result("r2", "c2"),
    entry("a", "r2", "assistant"),
]


def test_a_conversation_is_given_from_its_first_message_to_its_last() -> None:
    found = list(messages(sources(entry("a"), entry("b", "a", "assistant")), session_id=SESSION))

    assert [(each.type, each.uuid, each.session_id) for each in found] == [
        ("user", "a", SESSION),
        ("assistant", "b", SESSION),
    ]
    assert found[0].message == {"role": "user", "content": "text of a"}
    assert found[0].parent_tool_use_id is None


def test_the_newest_branch_is_the_conversation() -> None:
    assert uuids(entry("a"), entry("b", "a"), entry("old", "b"), entry("new", "b")) == [
        "a",
        "b",
        "new",
    ]


@pytest.mark.parametrize("kind", ["attachment", "system", "progress", "of-the-future"])
def test_entries_between_messages_lead_back_and_are_not_messages(kind: str) -> None:
    assert uuids(entry("a"), entry("x", "a", kind), entry("b", "x")) == ["a", "b"]


@pytest.mark.parametrize(
    "last",
    [
        entry("x", "b", isSidechain=True),
        entry("x", "b", isMeta=True),
        entry("x", "b", teamName="t"),
        entry("x", "a", "attachment"),
        entry("x", "a", "system"),
        {"type": "last-prompt", "lastPrompt": "b", "leafUuid": "a"},
    ],
)
def test_what_is_no_message_of_the_main_conversation_is_not_its_end(last: dict[str, Any]) -> None:
    assert uuids(entry("a"), entry("b", "a"), last) == ["a", "b"]


def test_the_results_of_parallel_calls_are_put_back() -> None:
    assert uuids(*PARALLEL) == ["p", "c1", "c2", "c3", "r3", "r1", "r2", "a"]


def test_parallel_calls_that_are_siblings_are_put_back_with_their_results() -> None:
    entries = [
        entry("p"),
        *(call(each, "p", "m") for each in ("c1", "c2", "c3")),
        *(result(f"r{each[1]}", each) for each in ("c2", "c1", "c3")),
        entry("a", "r1", "assistant"),
    ]

    assert uuids(*entries) == ["p", "c1", "c2", "c3", "r2", "r3", "r1", "a"]


def test_results_are_put_back_in_the_order_of_their_times() -> None:
    late, early = "2026-01-01T00:00:09Z", "2026-01-01T00:00:01Z"
    entries = [
        *PARALLEL[:4],
        result("r1", "c1", timestamp=late),
        result("r2", "c2", timestamp=early),
        result("r3", "c3"),
        entry("a", "r3", "assistant"),
    ]

    assert uuids(*entries) == ["p", "c1", "c2", "c3", "r2", "r1", "r3", "a"]


def test_a_result_beside_blocks_of_an_odd_shape_is_put_back_too() -> None:
    odd = result("r1", "c1")
    odd["message"]["content"] += ["text", {"type": 5}]

    assert "r1" in uuids(*PARALLEL[:5], odd, *PARALLEL[6:])


def test_a_result_that_comes_after_the_next_prompt_is_put_back_too() -> None:
    entries = [*PARALLEL, entry("q", "a"), result("r0", "c1"), entry("b", "q", "assistant")]

    assert uuids(*entries)[-4:] == ["r2", "a", "q", "b"]
    assert "r0" in uuids(*entries)[:8]


def test_the_tool_calls_of_an_abandoned_branch_stay_away() -> None:
    entries = [*PARALLEL, entry("q", "p"), call("d1", "q", "n"), result("s1", "d1")]

    assert uuids(*entries) == ["p", "q", "d1", "s1"]


def test_a_compaction_is_the_beginning_unless_it_is_passed() -> None:
    entries = [
        entry("a"),
        entry("b", "a", "assistant"),
        entry("k", None, "system", subtype="compact_boundary", logicalParentUuid="b"),
        entry("s", "k", isCompactSummary=True),
        entry("c", "s"),
    ]

    assert uuids(*entries) == ["s", "c"]
    assert uuids(*entries, through_compaction=True) == ["a", "b", "s", "c"]
    found = messages(sources(*entries), session_id=SESSION)
    assert [each.is_compact_summary for each in found] == [True, False]


def test_hidden_entries_are_given_when_they_are_asked_for() -> None:
    entries = [
        entry("a"),
        entry("m", "a", isMeta=True),
        entry("b", "m", "assistant"),
        entry("s", "b", "system", content="renamed"),
        entry("t", "s", "attachment"),
        entry("n", "t", isMeta=True),
        entry("x", "gone", "system"),
    ]

    assert uuids(*entries) == ["a", "b"]
    assert uuids(*entries, hidden=True) == ["a", "m", "b", "s", "n"]
    assert uuids(entry("m", isMeta=True), hidden=True) == ["m"]


class Counted:
    """A source that counts what is read of it."""

    def __init__(self, lines: list[bytes]) -> None:
        self._source, self.read_bytes = lines_source(lines), 0
        self.size = self._source.size

    def read(self, offset: int, size: int) -> bytes:
        self.read_bytes += size
        return self._source.read(offset, size)


def test_what_is_before_a_compaction_is_not_read() -> None:
    before = [entry(str(each), str(each - 1) if each else None) for each in range(5_000)]
    boundary = entry("k", None, "system", logicalParentUuid="4999")
    source = Counted(encoded(*before, boundary, entry("s", "k"), entry("a", "s")))

    assert [each.uuid for each in messages(source, session_id=SESSION)] == ["s", "a"]
    assert source.read_bytes < 100_000 < source.size


@pytest.mark.parametrize("last", range(10))
def test_the_last_messages_are_the_end_of_all(last: int) -> None:
    every = uuids(*PARALLEL)

    assert uuids(*PARALLEL, last=last) == every[len(every) - min(last, len(every)) :]


def test_the_last_messages_are_found_without_reading_the_whole_file() -> None:
    chain = [entry(str(each), str(each - 1) if each else None) for each in range(20_000)]
    source = Counted(encoded(*chain))

    found = [each.uuid for each in messages(source, session_id=SESSION, last=20)]

    assert found == [str(each) for each in range(19_980, 20_000)]
    assert source.read_bytes < 100_000 < source.size


def test_a_negative_number_of_messages_is_refused() -> None:
    with pytest.raises(UsageError, match="last: got -1, allowed: a number of messages, 0 or more"):
        messages(sources(), session_id=SESSION, last=-1)


def test_the_file_of_a_subagent_is_read_for_that_agent() -> None:
    agent = AgentInfo(agent_id="x", parent_tool_use_id="toolu_1", parent_agent_id="y")
    entries = [
        entry("a", isSidechain=True),
        call("c1", "a", "m", isSidechain=True),
        call("c2", "c1", "m", isSidechain=True),
        result("r1", "c1", isSidechain=True),
        result("r2", "c2", isSidechain=True),
    ]

    found = list(messages(sources(*entries), session_id=SESSION, agent=agent))

    assert [each.uuid for each in found] == ["a", "c1", "c2", "r1", "r2"]
    assert {(each.parent_tool_use_id, each.parent_agent_id) for each in found} == {("toolu_1", "y")}
    assert uuids(*entries) == []


def test_a_file_of_the_cli_is_read_from_its_compaction_on_and_through_it() -> None:
    lines = sample("conversation")
    source, said = lines_source(lines), texts(lines)

    after = [said[each.uuid] for each in messages(source, session_id=SESSION)]
    every = [
        said[each.uuid] for each in messages(source, session_id=SESSION, through_compaction=True)
    ]

    assert after[0].startswith("This session is being continued")
    assert after[-2:] == ["after again", "[{'type': 'text', 'text': 'Echo: after again'}]"]
    assert [each for each in every if each in ("first prompt", "parallel please", "hang")] == [
        "first prompt",
        "parallel please",
        "hang",
    ]
    assert sum("tool_result" in each for each in every) == 6
    assert every[-len(after) :] == after


# --- Files that the CLI did not write so ----------------------------------------------------


def test_a_parent_that_is_missing_is_the_beginning() -> None:
    assert uuids(entry("a", "gone"), entry("b", "a")) == ["a", "b"]


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({"a": "b", "b": "a"}, ""),
        ({"a": "a"}, ""),
        ({"a": "b", "b": "c", "c": "a"}, ""),
        ({"a": "b", "b": "c", "c": "a", "d": "b"}, "acbd"),
        ({"a": "c", "b": "a", "c": "b", "d": "c"}, "abcd"),
        ({"a": "b", "b": "a", "c": "b", "d": "e", "e": "d"}, "abc"),
        ({"a": None, "b": "a", "c": "d", "d": "c"}, "ab"),
    ],
)
def test_a_cycle_of_parents_ends_where_the_newest_message_leads_to(
    parents: dict[str, str | None], expected: str
) -> None:
    assert uuids(*(entry(*each) for each in parents.items())) == [*expected]


def test_a_long_cycle_of_parents_takes_no_time() -> None:
    size = 20_000

    assert uuids(*(entry(f"u{at}", f"u{(at + 1) % size}") for at in range(size))) == []


def test_parents_may_come_after_their_children() -> None:
    assert uuids(entry("b", "a"), entry("c", "b"), entry("a")) == ["a", "b", "c"]
    assert uuids(entry("c", "b"), entry("a"), entry("b", "a"), entry("d", "c")) == [
        "a",
        "b",
        "c",
        "d",
    ]


def test_a_long_conversation_that_is_written_backwards_takes_no_time() -> None:
    chain = [entry(str(each), str(each - 1) if each else None) for each in range(5_000)]

    assert uuids(*chain[::-1]) == [str(each) for each in range(5_000)]


def test_a_batch_that_was_written_twice_is_read_once() -> None:
    once = [entry("a"), entry("b", "a"), entry("c", "b"), entry("d", "c")]

    assert uuids(*once, *once) == ["a", "b", "c", "d"]
    assert uuids(*once, once[1], once[2]) == ["a", "b", "c", "d"]
    assert uuids(*PARALLEL[:5], *PARALLEL[1:5], *PARALLEL[5:]) == uuids(*PARALLEL)


def test_lines_that_are_no_entries_are_passed_over() -> None:
    junk = [b"", b"junk", b"[]", b"5", b"null", b"\xff\xfe", b"\0" * 9, b"{" * 5000]

    assert uuids(entry("a"), *junk, entry("b", "a"), *junk, b'{"type":"user","uu') == ["a", "b"]


def test_names_inside_of_a_message_are_not_those_of_the_entry() -> None:
    nested = {"uuid": "a", "parentUuid": None, "isSidechain": True, "message": {"id": "x"}}
    odd = entry("b", "a", message={"content": json.dumps(nested), "uuid": "zz", "input": nested})
    first = {"message": {"parentUuid": "zz", "content": 'x","uuid":"zz'}, **entry("a")}

    assert uuids(first, odd, entry("c", "b")) == ["a", "b", "c"]


def test_windows_line_ends_and_odd_fields_are_no_hindrance() -> None:
    odd = entry("b", "a", message="text", isMeta="no", timestamp=5, teamName=["x"])
    lines = [line + b"\r" for line in encoded(entry("a"), odd, entry("c", "b"))]

    assert uuids(*lines) == ["a", "b", "c"]


@pytest.mark.parametrize("content", [None, 5, {}, "tool_result", [None, "tool_result", {}]])
def test_messages_of_an_odd_shape_beside_the_conversation_stay_there(content: Any) -> None:
    odd = entry("x", "c1", message={"content": content})

    assert uuids(*PARALLEL[:5], odd, *PARALLEL[5:]) == uuids(*PARALLEL)


def test_parallel_calls_with_odd_fields_are_put_back_too() -> None:
    odd = call("c2", "p", "m", isMeta="no", timestamp=5)

    found = uuids(entry("p"), call("c1", "p", "m"), odd, result("r2", "c2"), result("r1", "c1"))

    assert found == ["p", "c1", "c2", "r2", "r1"]


def test_a_very_long_line_is_one_message() -> None:
    big = entry("b", "a", message={"role": "user", "content": "x" * (50 << 20)})

    assert uuids(entry("a"), big, entry("c", "b")) == ["a", "b", "c"]


NAMES = st.sampled_from([f"u{number}" for number in range(8)])
ENTRIES = st.builds(
    entry,
    NAMES,
    st.none() | NAMES,
    st.sampled_from(["user", "assistant", "system", "attachment", "future"]),
    isMeta=st.booleans(),
    isSidechain=st.booleans(),
    logicalParentUuid=st.none() | NAMES,
)
CALLS = st.builds(call, NAMES, NAMES, st.sampled_from(["m", "n"]))
LINES = st.lists(
    ENTRIES | CALLS | st.builds(result, NAMES, NAMES) | st.binary(max_size=9), max_size=25
)
OPTIONS = st.fixed_dictionaries(
    {
        "last": st.none() | st.integers(0, 5),
        "through_compaction": st.booleans(),
        "hidden": st.booleans(),
        "agent": st.none() | st.just(AgentInfo(agent_id="x")),
    }
)


@given(LINES, OPTIONS)
def test_any_lines_give_messages_and_an_end(
    lines: list[dict[str, Any] | bytes], options: dict[str, Any]
) -> None:
    found = uuids(*lines, **options)

    assert len(found) <= len(lines)
    assert options["last"] is None or len(found) <= options["last"]


@given(LINES, LINES, OPTIONS, st.integers(0, 6))
def test_a_file_that_is_replaced_while_it_is_read_gives_messages_and_an_end(
    before: list[dict[str, Any] | bytes],
    after: list[dict[str, Any] | bytes],
    options: dict[str, Any],
    reads: int,
) -> None:
    class Replaced:
        def __init__(self) -> None:
            self.source, self.left = sources(*before), reads
            self.size = self.source.size

        def read(self, offset: int, size: int) -> bytes:
            self.left -= 1
            if self.left < 0:
                self.source = sources(*after)
            return self.source.read(offset, size)

    found = list(messages(Replaced(), session_id=SESSION, **options))

    assert len(found) <= len(before) + len(after)
    assert all(each.uuid for each in found)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 30))
def test_a_file_cut_anywhere_gives_the_messages_before_the_cut(steps: list[int], cut: int) -> None:
    chain = [entry(str(at), str(at - 1) if at else None) for at in range(len(steps))]
    data = b"".join(line + b"\n" for line in encoded(*chain))
    lines = data[: max(1, len(data) - cut * 37)].split(b"\n")
    whole = [line for line in lines if line.endswith(b"}") and line in encoded(*chain)]

    assert uuids(*lines) == [str(at) for at in range(len(whole))]
