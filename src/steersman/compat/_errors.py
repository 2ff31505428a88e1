"""The official exceptions: bases, attributes and texts as programs know them."""

from __future__ import annotations

from steersman._json import Json, JsonDict, is_array

__all__ = [
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "ClaudeSDKError",
    "MessageParseError",
    "ProcessError",
    "ResultError",
]

SHOWN_OF_A_LINE = 100
"""Characters of a broken line that the text of an exception shows."""


class ClaudeSDKError(Exception):
    """The base of all exceptions of the SDK."""


class CLIConnectionError(ClaudeSDKError):
    """The CLI cannot be started, or is not connected."""


class CLINotFoundError(CLIConnectionError):
    """There is no CLI on this machine."""

    def __init__(self, message: str = "Claude Code not found", cli_path: str | None = None) -> None:
        super().__init__(f"{message}: {cli_path}" if cli_path else message)


class ProcessError(ClaudeSDKError):
    """The CLI failed."""

    def __init__(
        self, message: str, exit_code: int | None = None, stderr: str | None = None
    ) -> None:
        self.exit_code = exit_code
        self.stderr = stderr
        if exit_code is not None:
            message = f"{message} (exit code: {exit_code})"
        if stderr:
            message = f"{message}\nError output: {stderr}"
        super().__init__(message)


class ResultError(ProcessError):
    """A turn ended with an error result; `data` is its line."""

    def __init__(
        self, message: str, data: JsonDict | None = None, exit_code: int | None = None
    ) -> None:
        self.data: JsonDict = data or {}
        self.subtype = _text(self.data.get("subtype"))
        self.errors = _errors(self.data.get("errors"))
        self.result = _text(self.data.get("result"))
        status = self.data.get("api_error_status")
        self.api_error_status = status if isinstance(status, int) else None
        self.terminal_reason = _text(self.data.get("terminal_reason"))
        self.session_id = _text(self.data.get("session_id"))
        super().__init__(message, exit_code)


class CLIJSONDecodeError(ClaudeSDKError):
    """A line of the CLI is not JSON."""

    def __init__(self, line: str, original_error: Exception) -> None:
        self.line = line
        self.original_error = original_error
        super().__init__(f"Failed to decode JSON: {line[:SHOWN_OF_A_LINE]}...")


class MessageParseError(ClaudeSDKError):
    """A message lacks a field that it must have; `data` is the message."""

    def __init__(self, message: str, data: JsonDict | None = None) -> None:
        self.data = data
        super().__init__(message)


def _text(found: Json) -> str | None:
    return found if isinstance(found, str) else None


def _errors(found: Json) -> list[str]:
    given: list[Json] = [found] if isinstance(found, str) else found if is_array(found) else []
    return [text.strip() for text in given if isinstance(text, str) and text.strip()]
