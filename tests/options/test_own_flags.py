"""Flags in `extra_args` that have an option, or that every session has."""

from __future__ import annotations

import pytest

from steersman.errors import UsageError
from steersman.options import Options

UUID = "11111111-2222-4333-8444-555555555555"


def test_flags_with_an_option_set_it_and_flags_of_every_session_are_left_out() -> None:
    found = Options(
        extra_args={
            "include-partial-messages": None,
            "session-id": UUID,
            "verbose": None,
            "print": None,
            "betas": "x",
        }
    )

    assert found == Options(
        include_partial_messages=True, session_id=UUID, extra_args={"betas": "x"}
    )
    assert found.replace(model="opus").session_id == UUID


def test_the_flag_for_replays_stays() -> None:
    found = Options(extra_args={"replay-user-messages": None})

    assert found.extra_args == {"replay-user-messages": None}


@pytest.mark.parametrize(
    "name",
    [
        "await-initialize",
        "input-format",
        "managed-settings-in-initialize",
        "output-format",
        "permission-prompt-tool",
    ],
)
def test_a_flag_that_every_session_sets_is_refused_when_it_is_passed(name: str) -> None:
    with pytest.raises(UsageError, match="a flag that every session sets") as refused:
        Options(extra_args={name: "s3cret"})

    assert refused.value.argument == f"extra_args[{name!r}]"
    assert "s3cret" not in str(refused.value)


def test_an_id_may_be_given_twice_if_it_is_the_same() -> None:
    assert Options(session_id=UUID, extra_args={"session-id": UUID}).session_id == UUID


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"verbose": "x"}, "extra_args['verbose']: got 'x', allowed: None: this flag has no value"),
        (
            {"replay-user-messages": ""},
            "extra_args['replay-user-messages']: got '', allowed: None: this flag has no value",
        ),
        (
            {"session-id": None},
            "extra_args['session-id']: got None, allowed: a UUID, such as str(uuid.uuid4())",
        ),
        (
            {"session-id": UUID.replace("1", "9")},
            (
                f"extra_args['session-id']: got '{UUID.replace('1', '9')}', allowed: the same id as"
                " session_id=, or only one of them"
            ),
        ),
    ],
)
def test_what_such_a_flag_cannot_mean_is_refused(extra: dict[str, str | None], text: str) -> None:
    with pytest.raises(UsageError) as refused:
        Options(session_id=UUID, extra_args=extra)

    assert str(refused.value) == text
