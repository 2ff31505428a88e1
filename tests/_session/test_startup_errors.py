"""What a CLI that ends before it is ready becomes: its words in, an error with a hint out."""

from __future__ import annotations

import pytest

from steersman._session.startup import startup_error
from steersman.errors import (
    Evidence,
    NotLoggedIn,
    OptionRefused,
    ProtocolViolation,
    ResumeNotFound,
    SessionInUse,
    StartupExited,
)


@pytest.mark.parametrize(
    ("output", "status", "noise", "kind", "what", "hint"),
    [
        *(
            (words, 1, "", ResumeNotFound, f"the CLI refused to start: {words}", "per directory")
            for words in (
                "No conversation found with id x",
                "no message found",
                "x is not a valid uuid",
                "use --resume with an id",
            )
        ),
        (
            "Session x is already in use\n",
            1,
            "",
            SessionInUse,
            "the CLI refused to start: Session x is already in use",
            "continue that conversation with resume=",
        ),
        *(
            (words, 1, "", NotLoggedIn, f"the CLI refused to start: {words}", "log in with")
            for words in ("Not logged in", "Invalid API key", "please run /login")
        ),
        *(
            (words, 1, "", OptionRefused, f"the CLI refused to start: {words}", "correct the")
            for words in (
                *("unknown option", "bad argument", "Settings broken", "MCP config", "sandbox"),
                *("--permission-mode x", "cannot be used with root", "invalid"),
            )
        ),
        (
            "",
            -9,
            "",
            StartupExited,
            "the CLI was killed by signal 9 before it was ready",
            "check whether the machine ran out of memory",
        ),
        (
            "",
            0,
            "hello",
            ProtocolViolation,
            "what runs there does not speak the protocol: on stdout it wrote 'hello', and ended",
            "names the Claude Code CLI",
        ),
        (
            "\n  oh no \nmore",
            1,
            "hello",
            StartupExited,
            "the CLI exited before it was ready: oh no",
            "run the command by hand to see more",
        ),
        (
            "",
            None,
            "",
            StartupExited,
            "the CLI exited before it was ready, without an explanation",
            "run the command by hand to see more",
        ),
    ],
)
def test_a_cli_that_ends_too_early_says_why_and_what_to_do(
    output: str, status: int | None, noise: str, kind: type[Exception], what: str, hint: str
) -> None:
    evidence = Evidence("initialize", status)

    error = startup_error(output, evidence, noise)

    assert (type(error), error.what) == (kind, what)
    assert hint in error.hint
    assert error.evidence is evidence
