"""Errors of a session as official exceptions, which name the native one as their cause."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from steersman.compat._errors import (
    ClaudeSDKError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
    ResultError,
)
from steersman.compat.parsing import raw_of
from steersman.errors import (
    ChannelError,
    CliExited,
    CliNotFound,
    LaunchError,
    ProtocolViolation,
    RequestError,
    StartupError,
    SteersmanError,
    UsageError,
)

if TYPE_CHECKING:
    from steersman.compat.types import ResultMessage

NOT_CONNECTED = "Not connected. Call connect() first."


def as_official(error: SteersmanError) -> Exception:
    """Return the official exception for an error of a session.

    A `UsageError` is a `ValueError`, as the official SDK raises for arguments, and stays itself.
    """
    found: Exception
    if isinstance(error, UsageError):
        return error
    if isinstance(error, CliNotFound):
        found = CLINotFoundError(_text(error))
    elif isinstance(error, RequestError):
        found = ClaudeSDKError(error.reason)
    elif isinstance(error, ProtocolViolation):
        found = CLIJSONDecodeError(_text(error), error)
    elif isinstance(error, CliExited | StartupError) and error.evidence.status is not None:
        evidence = error.evidence
        found = ProcessError(_text(error), evidence.status, evidence.stderr_tail or None)
    elif isinstance(error, LaunchError | StartupError | ChannelError):
        found = CLIConnectionError(_text(error))
    else:
        found = ClaudeSDKError(_text(error))
    found.__cause__ = error
    return found


@contextmanager
def official_errors() -> Generator[None, None, None]:
    """Raise errors of a session in the block as official exceptions."""
    try:
        yield
    except SteersmanError as error:
        raise as_official(error) from error.__cause__ if isinstance(error, UsageError) else error


def has_exited_in_order(error: SteersmanError) -> bool:
    """Whether the CLI, or a transport of the caller, has ended without an error of its own."""
    return isinstance(error, CliExited) and error.evidence.status == 0


def result_error(result: ResultMessage, cause: ProcessError | None) -> ResultError:
    """Return the exception that follows an error result at the end of the messages."""
    data = raw_of(result)
    exit_code = 1 if cause is None else cause.exit_code
    error = ResultError("", data, exit_code)
    named = "" if error.subtype == "success" else error.subtype
    why = "; ".join(error.errors) or error.result or named or "unknown error"
    found = ResultError(f"Claude Code returned an error result: {why}", data, exit_code)
    found.__cause__ = cause
    return found


def _text(error: SteersmanError) -> str:
    """Return what happened and what to do. The evidence is in the cause."""
    return f"{error.what}\nWhat to do: {error.hint}" if error.hint in str(error) else error.what
