"""Asks and answers survive JSON, with fields that this release does not know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steersman import _json
from steersman.errors import UsageError
from steersman.permissions import (
    AddRules,
    Allow,
    Answer,
    Ask,
    CanUseTool,
    Deny,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    QuestionAnswer,
    UserDialog,
    answer_from_json,
    answer_to_json,
    ask_from_json,
    ask_to_json,
)

WRITE = CanUseTool(tool_name="Write", input={"file_path": "/a", "content": "\ud800"})
PAYLOADS = (
    WRITE,
    Elicitation(mcp_server_name="forms", message="Name?"),
    UserDialog(dialog_kind="refusal", payload={"text": "no"}),
)
ANSWERS: tuple[Answer, ...] = (
    Allow(),
    Allow({"file_path": "/b"}, [{"type": "of tomorrow"}], "user_permanent"),
    Deny("no", interrupt=True),
    ElicitationAnswer("accept", {"name": "Ann"}),
    DialogAnswer("accepted", [1, 2]),
    [QuestionAnswer("Which?", "this"), QuestionAnswer("When?", None)],
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_ask_is_the_same_after_it_was_stored(payload: Any) -> None:
    ask = Ask(id="1", session="s", payload=payload, created=2.5, turn="t", assignee="ann")

    again = ask_from_json(ask_to_json(ask))

    assert again == ask
    assert again.payload.raw == ask.payload.raw


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_the_same_after_it_was_stored(answer: Answer) -> None:
    assert answer_from_json(answer_to_json(answer)) == answer


def test_permission_updates_are_sent_as_they_were_given() -> None:
    answer = Allow(updated_permissions=[AddRules(rules=["Bash(git *)"])])  # type: ignore[list-item]

    again = answer_from_json(answer_to_json(answer))

    assert _json.dumps(again) == _json.dumps(answer)


@given(some.dictionaries(some.text(min_size=1).map("x-{}".format), some.text()))
def test_fields_of_a_later_release_are_kept(later: dict[str, str]) -> None:
    ask = Ask(id="1", session="s", payload=WRITE, created=1.0)
    lines = [
        ask_to_json(ask),
        answer_to_json(Deny("no")),
        answer_to_json(ElicitationAnswer("decline")),
    ]
    stored = [_json.dumps({**_json.loads(line), **later}) for line in lines]

    again = [
        ask_to_json(ask_from_json(stored[0])),
        *(answer_to_json(answer_from_json(each)) for each in stored[1:]),
    ]

    assert [*map(_json.loads, again)] == [*map(_json.loads, stored)]


def test_fields_of_a_later_release_are_not_sent_to_the_cli() -> None:
    answer = answer_from_json(b'{"behavior": "deny", "message": "no", "seen": "tomorrow"}')

    assert answer == Deny("no")
    assert b"tomorrow" not in _json.dumps(answer)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"no JSON",
        b"{}",
        b'{"behavior": 1}',
        b'{"behavior": "deny"}',
        b'{"behavior": "allow", "updatedInput": 3}',
        b'{"behavior": "allow", "updatedPermissions": "all"}',
        b'{"behavior": "deny", "message": null}',
        b'{"action": "perhaps"}',
        b'{"answers": {"Which?": "this"}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="data"):
        answer_from_json(data)


@pytest.mark.parametrize(
    "change",
    [
        {"payload": None},
        {"payload": {"subtype": "initialize"}},
        {"payload": {"subtype": "elicitation"}},
        {"payload": {"subtype": "can_use_tool", "tool_name": "Write"}},
        {"id": 3},
        {"session": None},
        {"created": "yesterday"},
        {"expires": "soon"},
    ],
)
def test_what_is_no_ask_is_refused(change: dict[str, Any]) -> None:
    ask = _json.loads(ask_to_json(Ask(id="1", session="s", payload=WRITE, created=1.0)))

    with pytest.raises(UsageError):
        ask_from_json(_json.dumps({**ask, **change}))


def test_an_error_does_not_show_a_long_secret_whole() -> None:
    secret = "s" * 500

    with pytest.raises(UsageError) as caught:
        answer_from_json(f'{{"key": "{secret}"}}')

    assert secret not in str(caught.value)
