"""What a list of sessions shows of each."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.transcripts import (
    SessionInfo,
    SessionKey,
    Summary,
    entry_of,
    fold_session_summary,
    read_entry,
)
from tests.transcripts.lines import SESSION, encoded, entry, result, sample

KEY: SessionKey = {"project_key": "p", "session_id": SESSION}
PROMPT = entry("a", cwd="/w", gitBranch="main", message={"content": "Do it\nnow"})


def info(*entries: dict[str, Any], **more: Any) -> SessionInfo | None:
    """The row of a session with these entries."""
    summary = Summary()
    summary.fold_all(read_entry(line) for line in encoded(*entries))
    return summary.info(SESSION, 5, 6, **more)


def shown(*entries: dict[str, Any], **more: Any) -> SessionInfo:
    found = info(*entries, **more)
    assert found is not None
    return found


def said(content: Any, **fields: Any) -> dict[str, Any]:
    return entry("m", message={"role": "user", "content": content}, **fields)


def test_a_session_is_shown_with_what_its_entries_have() -> None:
    assert info(PROMPT, archived=True, expires=9) == SessionInfo(
        session_id=SESSION,
        summary="Do it now",
        last_modified=5,
        file_size=6,
        first_prompt="Do it now",
        git_branch="main",
        cwd="/w",
        created_at=1767225600000,
        archived=True,
        expires=9,
    )


TITLES = [
    {"type": "summary", "summary": "a summary", "leafUuid": "a"},
    {"type": "last-prompt", "lastPrompt": "the last prompt"},
    {"type": "ai-title", "aiTitle": "by the model"},
    {"type": "custom-title", "customTitle": "by the user"},
]


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("step", [1, -1])
def test_titles_have_an_order_that_is_not_that_of_the_file(count: int, step: int) -> None:
    expected = ["Do it now", "a summary", "the last prompt", "by the model", "by the user"]

    found = shown(PROMPT, *TITLES[:count][::step])

    assert found.summary == expected[count]
    assert found.custom_title == (expected[count] if count > 2 else None)


def test_the_latest_title_counts_and_an_empty_one_is_none() -> None:
    again = [{**TITLES[3], "customTitle": title} for title in ("first", "second", "")]

    assert shown(PROMPT, *again[:2]).custom_title == "second"
    assert shown(PROMPT, *again).summary == "Do it now"


def test_a_title_that_is_kept_beside_the_file_counts_most() -> None:
    assert shown(PROMPT, *TITLES, custom_title="beside").summary == "beside"


@pytest.mark.parametrize(
    "first",
    [
        said("not for users", isMeta=True),
        said("a summary", isCompactSummary=True),
        result("r", "x"),
        said([{"type": "tool_result", "content": "x"}, {"type": "text", "text": "beside it"}]),
        said("<local-command-stdout>out</local-command-stdout>"),
        said("  <session-start-hook>x"),
        said("<command-name>/init</command-name>\n<command-args>x</command-args>"),
        said("[Request interrupted by user for tool use]"),
        said("<ide_opened_file>a\nb</ide_opened_file>\n"),
        said("<ide_selection>a</ide_selection>"),
        said(" \n "),
        said(None),
        said([{"type": "image"}, "text", {"type": "text", "text": 5}]),
        entry("m", kind="assistant"),
        entry("m", kind="attachment"),
    ],
)
def test_what_the_user_did_not_write_is_not_the_first_prompt(first: dict[str, Any]) -> None:
    assert shown(first, said("the prompt"), said("another")).first_prompt == "the prompt"


def test_the_first_prompt_may_be_any_text_block_of_a_message() -> None:
    blocks = [
        {"type": "image"},
        {"type": "text", "text": "<ide_selection>x</ide_selection>"},
        {"type": "text", "text": "what I ask"},
    ]

    assert shown(said(blocks), said("another")).first_prompt == "what I ask"


def test_a_command_is_the_first_prompt_if_there_is_no_other() -> None:
    commands = [said(f"<command-name>/{name}</command-name>") for name in ("one", "two")]

    assert shown(*commands).summary == "/one"


def test_a_text_of_many_open_commands_takes_no_time() -> None:
    assert shown(said("<command-name>" * 200_000), said("x")).first_prompt


def test_a_long_prompt_is_cut_at_200_characters() -> None:
    assert shown(said("x" * 300)).first_prompt == "x" * 200 + "…"
    assert shown(said("x" * 195 + " " * 20 + "y")).first_prompt == "x" * 195 + "…"
    assert shown(said("x" * 200)).first_prompt == "x" * 200


def test_a_tag_is_set_and_cleared() -> None:
    tags = [{"type": "tag", "tag": tag} for tag in ("one", "two", "")]

    assert shown(PROMPT, *tags[:2]).tag == "two"
    assert shown(PROMPT, *tags).tag is None
    assert shown(PROMPT, {"type": "other", "tag": "no"}).tag is None


def test_the_branch_is_the_last_one_and_the_directory_the_first_or_where_it_moved() -> None:
    later = entry("b", "a", gitBranch="dev", cwd="/elsewhere")
    moved = {"type": "relocated", "relocatedCwd": "/new"}

    assert (shown(PROMPT, later).git_branch, shown(PROMPT, later).cwd) == ("dev", "/w")
    assert shown(PROMPT, moved, later).cwd == "/new"


def test_the_time_of_creation_is_the_first_that_can_be_read() -> None:
    times = ["nonsense", "", "9999-99-99T00:00:00Z", "2026-01-01T02:00:00+02:00"]
    entries = [entry(f"u{at}", timestamp=time) for at, time in enumerate(times)]

    assert shown(*entries).created_at == 1767225600000
    assert shown(entries[0]).created_at is None
    assert shown(entry("a", timestamp="2026-01-01T00:00:00")).created_at == 1767225600000


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry("a", kind="assistant")],
        [entry("a", isSidechain=True), entry("b", "a", isSidechain=True)],
        [{"type": "queue-operation"}, entry("a", isSidechain=True)],
        [PROMPT, {"type": "continued-in", "continuedInSessionId": "other"}],
    ],
)
def test_a_session_without_anything_to_show_is_not_shown(entries: list[dict[str, Any]]) -> None:
    assert info(*entries) is None


def test_a_sidechain_inside_of_a_session_does_not_hide_it() -> None:
    assert shown(PROMPT, entry("b", "a", isSidechain=True)).summary == "Do it now"


def test_titles_and_tags_have_no_characters_that_are_not_seen() -> None:
    bad = "a\u202eb\x1b[2Jc\nd"
    found = shown(
        said(bad),
        {"type": "custom-title", "customTitle": bad},
        {"type": "tag", "tag": bad},
    )

    assert {found.summary, found.tag, found.first_prompt} == {"ab[2Jc d"}


def test_names_inside_of_a_message_are_no_titles() -> None:
    nested = {"customTitle": "no", "aiTitle": "no", "tag": "no", "lastPrompt": "no", "type": "tag"}

    assert shown(PROMPT, said([{"type": "tool_use", "input": nested}])).summary == "Do it now"


def test_the_summary_of_a_file_of_the_cli() -> None:
    summary = Summary()
    summary.fold_all(map(read_entry, sample("conversation")))

    found = summary.info(SESSION, 5)

    assert found is not None
    assert (found.summary, found.custom_title, found.first_prompt) == (
        "my title",
        "my title",
        "first prompt",
    )
    assert (found.cwd, found.git_branch) == ("/workspace/project", "HEAD")


VALUES = st.none() | st.text(max_size=5) | st.integers() | st.just("2026-01-01T00:00:00Z")
FIELDS = st.sampled_from(
    ["customTitle", "aiTitle", "tag", "cwd", "gitBranch", "timestamp", "summary", "isSidechain"]
)
ENTRIES = st.lists(
    st.builds(
        lambda kind, fields: {"type": kind, "uuid": "u", "message": {"content": "x"}, **fields},
        st.sampled_from(["user", "tag", "system", "other"]),
        st.dictionaries(FIELDS, VALUES, max_size=4),
    ),
    max_size=8,
)


@given(ENTRIES, st.integers(0, 8))
def test_a_summary_can_be_kept_at_any_point_and_folded_further(
    entries: list[dict[str, Any]], at: int
) -> None:
    whole = Summary()
    whole.fold_all(map(entry_of, entries))

    first = fold_session_summary(None, KEY, entries[:at])  # type: ignore[arg-type]  # as stored
    kept = json.loads(json.dumps({**first, "mtime": 7}))
    second = fold_session_summary(kept, KEY, entries[at:])  # type: ignore[arg-type]  # as stored

    assert second == {"session_id": SESSION, "mtime": 7, "data": whole.to_data()}
    assert first["mtime"] == 0


def test_keys_that_this_release_does_not_know_are_kept() -> None:
    summary = Summary.from_data({"future": [1], "custom_title": 5, "created_at": "soon"})
    summary.fold(entry_of(PROMPT))

    assert summary.to_data()["future"] == [1]
    found = summary.info(SESSION, 0)
    assert found is not None
    assert (found.summary, found.created_at) == ("Do it now", None)


def test_folding_leaves_the_previous_summary_as_it_was() -> None:
    before = fold_session_summary(None, KEY, [])

    fold_session_summary(before, KEY, [PROMPT])  # type: ignore[list-item]  # as stored

    assert before == {"session_id": SESSION, "mtime": 0, "data": {}}
