"""What a viewer learns of an error: a status, a code and words, and nothing of the server."""

from __future__ import annotations

import logging

import pytest

from steersman import errors
from steersman.web.failures import Refusal, refusal_of

SECRET = "/home/ann/secret"
GIVEN = (
    *("answer", "attachments", "data", "key", "mode", "model", "prompt", "seen", "session", "text"),
    *("turn", "uuid", "when", "also_queued", "hard", "media_type", "source", "words"),
)
"""Arguments that a viewer can give."""

ERRORS: list[tuple[Exception, int, str, str]] = [
    (errors.AlreadyAnswered("r", "ann", None), 409, "already_answered", "ann has already answered"),
    (errors.AskNotFound("r"), 404, "ask_not_found", "no such ask"),
    (errors.AskGone("r", "it expired"), 410, "ask_gone", "it expired"),
    (errors.AskChanged("r", "a", "b"), 409, "ask_changed", "not what was shown"),
    (errors.KeyTaken(SECRET), 409, "key_taken", "another prompt of this session"),
    (errors.SessionInUse(SECRET), 409, "session_in_use", "another process"),
    (errors.ChannelClosed(SECRET), 409, "session_closed", "send it again"),
    (errors.UsageError("cwd", SECRET, "a directory"), 502, "usage", "arg"),
    (errors.StoreError(SECRET), 502, "store", "A store of sessions cannot be read"),
    (errors.CliNotFound([SECRET]), 502, "cli_not_found", "CLI"),
    (RuntimeError(SECRET), 500, "internal", "the server failed"),
    (Refusal(418, "teapot", "short and stout"), 418, "teapot", "short and stout"),
]


@pytest.mark.parametrize(
    ("error", "status", "code", "words"), ERRORS, ids=[type(row[0]).__name__ for row in ERRORS]
)
def test_an_error_is_a_status_a_code_and_words_without_paths(
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, code: str, words: str
) -> None:
    with caplog.at_level(logging.WARNING, "steersman.web"):
        shown = refusal_of(error)

    assert (shown.status, shown.code, shown.body["code"]) == (status, code, code)
    assert words in shown.words
    assert shown.body["message"] == shown.words == str(shown)
    assert SECRET not in str(shown.body)
    # Who runs the server finds in the log what viewers do not get.
    assert (SECRET in caplog.text) == (status in (500, 502))
    assert shown.body.get("by") == ("ann" if code == "already_answered" else None)


@pytest.mark.parametrize("argument", [*GIVEN, "attachments[3]"])
def test_what_is_wrong_with_a_value_of_the_viewer_is_said_as_it_is(argument: str) -> None:
    shown = refusal_of(errors.UsageError(argument, "seven", "another value"))

    assert (shown.status, shown.code) == (400, "usage")
    assert "seven" in shown.words
    assert "another value" in shown.words


def test_a_kind_of_error_without_a_description_has_words_too() -> None:
    class Odd(errors.SteersmanError):
        __doc__ = None

    assert refusal_of(Odd(SECRET)).words == "the CLI failed"
