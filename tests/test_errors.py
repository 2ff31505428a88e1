from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import pytest

from steersman import errors
from steersman.errors import (
    AlreadyAnswered,
    AskGone,
    AskNotFound,
    BadOutput,
    ChannelClosed,
    CliExited,
    CliMisbehaves,
    CliNotExecutable,
    CliNotFound,
    CliTooOld,
    Evidence,
    ForbiddenTool,
    KeyTaken,
    LeaseLost,
    LimitReached,
    McpNotReady,
    NoOutput,
    NotLoggedIn,
    OptionRefused,
    PoisonedJob,
    ProtocolViolation,
    ReaderLagged,
    RequestLost,
    RequestRefused,
    RequestTimeout,
    ResumeNotFound,
    SessionInUse,
    SessionNotFound,
    Stalled,
    StartupExited,
    StartupTimeout,
    SteersmanError,
    StoreError,
    StoreTooNew,
    ToolExecutionError,
    TurnFailed,
    UnsafeCli,
    UsageError,
    WorkingDirectoryMissing,
)

CLASSES: list[type[SteersmanError]] = [
    each
    for each in vars(errors).values()
    if inspect.isclass(each) and issubclass(each, SteersmanError)
]
EVIDENCE = Evidence("initialize", 1, " boom \n", ("claude", "--model=opus"))

EXAMPLES: list[SteersmanError] = [
    UsageError("model", 5, "a text", hint="write model='opus'"),
    KeyTaken("invoice 7"),
    CliNotFound(["PATH", "/opt"]),
    CliNotExecutable("/bin/claude", "permission denied"),
    WorkingDirectoryMissing("/x", "no such directory"),
    CliTooOld("1.0", "2.1.0", evidence=EVIDENCE),
    UnsafeCli("2.1.300", "can_use_tool is not called", "2.1.325", evidence=EVIDENCE),
    McpNotReady("db", "failed", "refused", evidence=EVIDENCE),
    OptionRefused("no", evidence=EVIDENCE),
    ResumeNotFound("no"),
    SessionInUse("no"),
    StartupExited("no", hint="look", evidence=EVIDENCE),
    StartupTimeout("no"),
    NotLoggedIn("no"),
    ChannelClosed("no"),
    CliExited("no", evidence=Evidence("running", -9)),
    Stalled("tool", 12.5, "assistant", evidence=EVIDENCE),
    ProtocolViolation("no"),
    RequestRefused("set_model", "no", "nope"),
    RequestTimeout("interrupt", "no answer in time"),
    RequestLost("interrupt", "gone"),
    TurnFailed("failed", "API Error", text="so far"),
    LimitReached("turn", "cost_usd", 1.5, 1.0),
    PoisonedJob("invoice 7", 3),
    NoOutput("none", text="so far"),
    BadOutput("bad", output={"a": 1}, text="so far"),
    ToolExecutionError("add", "boom"),
    CliMisbehaves("permission_mode", "default", "auto"),
    ForbiddenTool(["WebFetch"]),
    LeaseLost("1f", "it was not renewed in time"),
    SessionNotFound("1f", "in the store"),
    AlreadyAnswered("q1", "ann", "yes"),
    AskGone("q1", "its session has ended"),
    AskNotFound("q1"),
    StoreError("sessions.db: database is locked", hint="try again"),
    StoreTooNew("sessions.db", 9, 1),
    ReaderLagged(5),
]


def test_every_class_has_a_code_of_its_own() -> None:
    codes = [each.__dict__["code"] for each in CLASSES]

    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch("[a-z_]+", code) for code in codes)


def test_the_codes_are_a_promise() -> None:
    assert {each.__name__: each.code for each in CLASSES} == {
        "SteersmanError": "steersman",
        "UsageError": "usage",
        "KeyTaken": "key_taken",
        "LaunchError": "launch",
        "CliNotFound": "cli_not_found",
        "CliNotExecutable": "cli_not_executable",
        "WorkingDirectoryMissing": "cwd_missing",
        "StartupError": "startup",
        "CliTooOld": "cli_too_old",
        "UnsafeCli": "unsafe_cli",
        "McpNotReady": "mcp_not_ready",
        "OptionRefused": "option_refused",
        "ResumeNotFound": "resume_not_found",
        "SessionInUse": "session_in_use",
        "StartupExited": "startup_exited",
        "StartupTimeout": "startup_timeout",
        "NotLoggedIn": "not_logged_in",
        "ChannelError": "channel",
        "ChannelClosed": "channel_closed",
        "CliExited": "cli_exited",
        "Stalled": "stalled",
        "ProtocolViolation": "protocol_violation",
        "RequestError": "request",
        "RequestRefused": "request_refused",
        "RequestTimeout": "request_timeout",
        "RequestLost": "request_lost",
        "TurnError": "turn",
        "TurnFailed": "turn_failed",
        "TurnStopped": "turn_stopped",
        "ApiFailed": "api_failed",
        "LimitReached": "limit_reached",
        "PoisonedJob": "poisoned_job",
        "NoOutput": "no_output",
        "BadOutput": "bad_output",
        "ToolExecutionError": "tool_execution",
        "CliMisbehaves": "cli_misbehaves",
        "ForbiddenTool": "forbidden_tool",
        "LeaseLost": "lease_lost",
        "SessionNotFound": "session_not_found",
        "AskError": "ask",
        "AlreadyAnswered": "already_answered",
        "AskChanged": "ask_changed",
        "AskGone": "ask_gone",
        "AskNotFound": "ask_not_found",
        "StoreError": "store",
        "StoreTooNew": "store_too_new",
        "ReaderLagged": "reader_lagged",
        "WebError": "web",
    }


def test_every_class_is_drawn_in_the_tree_and_exported() -> None:
    drawn = set(re.findall(r"^[│├└─ ]*([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE))
    names = {each.__name__ for each in CLASSES}

    assert names <= drawn
    assert names | {"Described", "Evidence"} == set(errors.__all__)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_shows_what_happened_what_to_do_and_the_evidence(error: SteersmanError) -> None:
    lines = [
        error.what,
        *([f"What to do: {error.hint}"] if error.hint else []),
        *([f"[{error.evidence}]"] if error.evidence.phase != "unknown" else []),
    ]

    assert str(error) == "\n".join(lines)


def test_the_evidence_is_one_line_of_facts() -> None:
    assert str(EVIDENCE) == (
        "phase: initialize; exit status 1; command: claude --model=opus; stderr: boom"
    )
    assert str(Evidence("running", -9)) == "phase: running; ended by signal 9"


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (UsageError("a", 1, "b"), ValueError),
        (RequestTimeout("a", "b"), TimeoutError),
        (StartupTimeout("a"), TimeoutError),
        (SessionNotFound("a"), LookupError),
    ],
)
def test_an_error_is_also_what_python_would_call_it(
    error: SteersmanError, base: type[Exception]
) -> None:
    assert isinstance(error, base)


def test_a_long_value_is_shortened_in_the_text_but_kept_in_the_field() -> None:
    error = UsageError("prompt", "x" * 10_000, "less")

    assert len(str(error)) < 200
    assert error.given == "x" * 10_000


def test_where_a_cli_was_looked_for_is_listed() -> None:
    error = CliNotFound(["PATH", "/opt/claude"])

    assert error.looked_in == ("PATH", "/opt/claude")
    assert "\n  - PATH\n  - /opt/claude" in error.what
    assert "pip install steersman[cli]" in error.hint


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_can_cross_a_process_boundary(error: SteersmanError) -> None:
    other: Any = pickle.loads(pickle.dumps(error))

    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)
