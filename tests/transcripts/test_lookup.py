"""Lines as the stock CLI 2.1.325 writes them, cut down to the fields that matter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.transcripts import (
    Ending,
    answer_to,
    ending_of,
    failure_of,
    has_prompt,
    is_unfinished,
    was_folded,
)
from steersman.transcripts.lookup import was_followed

PROMPT = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
FOLDED = "33333333-3333-4333-8333-333333333333"


def line(kind: str, uuid: str, parent: str | None, content: Any = None, **fields: Any) -> bytes:
    entry: dict[str, Any] = {"type": kind, "uuid": uuid, "parentUuid": parent, **fields}
    if content is not None:
        entry["message"] = {"id": f"msg_{uuid}", "role": kind, "content": content}
    return json.dumps(entry).encode()


def asked(uuid: str, parent: str | None, text: str) -> bytes:
    return line("user", uuid, parent, text)


def said(uuid: str, parent: str, *texts: str) -> bytes:
    return line("assistant", uuid, parent, [{"type": "text", "text": text} for text in texts])


def called(uuid: str, parent: str) -> bytes:
    return line("assistant", uuid, parent, [{"type": "tool_use", "id": "toolu_1", "name": "Bash"}])


def gave(uuid: str, parent: str) -> bytes:
    return line("user", uuid, parent, [{"type": "tool_result", "tool_use_id": "toolu_1"}])


def noted(uuid: str, parent: str, text: str, *, is_meta: bool = False) -> bytes:
    return line("user", uuid, parent, [{"type": "text", "text": text}], isMeta=is_meta)


def attached(uuid: str, parent: str, **attachment: Any) -> bytes:
    return line("attachment", uuid, parent, attachment=attachment)


def filled(uuid: str, parent: str) -> bytes:
    """Put by the CLI behind a prompt that was never answered, when it resumes."""
    content = [{"type": "text", "text": "No response requested."}]
    message = {"model": "<synthetic>", "stop_reason": "stop_sequence", "content": content}
    return line("assistant", uuid, parent, message=message)


def refused(uuid: str, parent: str, text: str) -> bytes:
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return line("assistant", uuid, parent, message=message, isApiErrorMessage=True)


WHOLE = [
    json.dumps({"type": "queue-operation", "operation": "enqueue", "content": "go"}).encode(),
    asked(PROMPT, None, "go"),
    attached("a1", PROMPT, type="environment"),
    said("b1", "a1", "I look."),
    called("b2", "b1"),
    gave("b3", "b2"),
    said("b4", "b3", "All ", "done."),
]
NEXT = [asked(OTHER, "b4", "and then"), said("c1", OTHER, "Behind.")]
CONTINUE = "Continue from where you left off."


def test_the_answer_is_all_that_follows_from_the_prompt() -> None:
    assert answer_to(WHOLE, PROMPT) == "I look.\n\nAll done."


def test_the_answer_ends_where_the_next_prompt_begins() -> None:
    assert answer_to([*WHOLE, *NEXT], PROMPT) == "I look.\n\nAll done."
    assert answer_to([*WHOLE, *NEXT], OTHER) == "Behind."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], False),
        (WHOLE, False),
        ([*WHOLE, *NEXT], True),
        ([*NEXT, *WHOLE], False),
        ([*WHOLE, noted("m1", "b4", CONTINUE, is_meta=True)], False),
        ([*WHOLE, asked(FOLDED, "b4", CONTINUE)], False),
        ([*WHOLE, *NEXT, asked(FOLDED, "c1", CONTINUE)], False),
        ([*WHOLE, line("user", "d1", None, "look", isSidechain=True)], False),
    ],
    ids=["unknown", "last", "another", "before", "note", "ours", "ours again", "subagent"],
)
def test_a_turn_was_followed_if_another_prompt_stands_behind_it(
    lines: list[bytes], *, expected: bool
) -> None:
    assert was_followed(lines, PROMPT, FOLDED) is expected


def test_what_was_said_on_another_branch_is_not_part_of_it() -> None:
    elsewhere = said("d1", "somewhere-else", "Not this.")

    assert answer_to([*WHOLE, elsewhere], PROMPT) == "I look.\n\nAll done."


def test_a_turn_that_the_cli_took_up_again_goes_on_behind_its_note() -> None:
    lines = [asked(PROMPT, None, "go"), noted("m1", PROMPT, CONTINUE, is_meta=True)]

    assert answer_to([*lines, said("b1", "m1", "All.")], PROMPT) == "All."


def test_a_turn_that_we_continued_goes_on_under_both_uuids() -> None:
    lines = [*WHOLE[:5], asked(OTHER, "b2", CONTINUE), said("c1", OTHER, "All.")]

    assert answer_to(lines, PROMPT, OTHER) == "I look.\n\nAll."


def test_what_was_folded_in_has_the_answer_from_there_on() -> None:
    lines = [
        *WHOLE[:6],
        attached("q1", "b3", type="queued_command", source_uuid=FOLDED),
        said("b4", "q1", "Both."),
    ]

    assert answer_to(lines, FOLDED) == "Both."
    assert answer_to(lines, PROMPT) == "I look.\n\nBoth."
    assert (was_folded(lines, FOLDED), was_folded(lines, PROMPT)) == (True, False)
    assert has_prompt(lines, FOLDED)


def test_what_the_cli_made_up_itself_is_no_answer() -> None:
    synthetic = {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "No."}]}
    lines = [
        asked(PROMPT, None, "go"),
        line("assistant", "s1", PROMPT, message=synthetic),
        line("assistant", "s2", PROMPT, [{"type": "text", "text": "Err"}], isApiErrorMessage=True),
    ]

    assert answer_to(lines, PROMPT) == ""


@pytest.mark.parametrize("torn", [b"", b"{", b"[]", b"7", WHOLE[-1][:40]])
def test_torn_and_strange_lines_are_passed_over(torn: bytes) -> None:
    assert answer_to([torn, *WHOLE, torn], PROMPT) == "I look.\n\nAll done."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], False),
        (WHOLE, False),
        (WHOLE[:2], True),
        (WHOLE[:3], True),
        (WHOLE[:4], False),
        (WHOLE[:5], True),
        (WHOLE[:6], True),
        ([*WHOLE[:2], noted("m1", PROMPT, CONTINUE, is_meta=True)], True),
        ([*WHOLE[:3], filled("f1", "a1")], True),
        ([*WHOLE[:6], filled("f1", "b3")], True),
        ([*WHOLE[:3], filled("f1", "a1"), said("b1", PROMPT, "Paid.")], False),
        ([*WHOLE[:5], noted("s1", "b2", "[Request interrupted by user for tool use]")], False),
        ([*WHOLE[:2], noted("s1", PROMPT, "[Request interrupted by user]")], False),
    ],
    ids=[
        "unknown",
        "answered",
        "only the prompt",
        "and its surroundings",
        "a text",
        "a call",
        "its result",
        "taken up once",
        "filled up after a loss",
        "filled up after a tool",
        "answered after all",
        "stopped in a tool",
        "stopped in a text",
    ],
)
def test_a_turn_is_unfinished_if_something_was_still_to_come(
    lines: list[bytes], *, expected: bool
) -> None:
    assert is_unfinished(lines, PROMPT) is expected


LIMIT_REACHED = [*WHOLE[:6], attached("x1", "b3", type="max_turns_reached", maxTurns=1)]
INTERRUPTED = [*WHOLE[:4], noted("s1", "b1", "[Request interrupted by user]")]
REFUSED = [*WHOLE[:3], refused("e1", "a1", "API Error: 400 bad")]


@pytest.mark.parametrize(
    ("lines", "ending", "failure"),
    [
        ([], "unknown", ""),
        (WHOLE[:3], "unfinished", ""),
        (WHOLE, "answered", ""),
        (INTERRUPTED, "interrupted", ""),
        (REFUSED, "failed", "API Error: 400 bad"),
        (LIMIT_REACHED, "failed", "the turn reached its maximum number of turns"),
        ([*REFUSED, *NEXT], "failed", "API Error: 400 bad"),
    ],
)
def test_the_file_shows_how_a_turn_ended(lines: list[bytes], ending: Ending, failure: str) -> None:
    assert (ending_of(lines, PROMPT), failure_of(lines, PROMPT)) == (ending, failure)


def test_a_message_that_stopped_for_a_tool_is_unfinished_without_the_call() -> None:
    content = [{"type": "text", "text": "I look."}]
    text = {"id": "msg", "stop_reason": "tool_use", "content": content}
    lines = [asked(PROMPT, None, "go"), line("assistant", "b1", PROMPT, message=text)]

    assert ending_of(lines, PROMPT) == "unfinished"


def test_an_answer_that_was_interrupted_keeps_what_was_said() -> None:
    assert answer_to(INTERRUPTED, PROMPT) == "I look."


def test_a_prompt_that_was_only_queued_is_not_known() -> None:
    assert not has_prompt(WHOLE[:1], PROMPT)
    assert has_prompt(WHOLE[:2], PROMPT)
