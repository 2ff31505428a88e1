"""Errors of a session are the official exceptions, with what happened and the native error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steersman.compat import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
    query,
)
from steersman.compat._raising import as_official
from steersman.errors import (
    ChannelClosed,
    CliNotFound,
    ProtocolViolation,
    SteersmanError,
    UsageError,
)

pytestmark = pytest.mark.process

LIMIT = 20.0


def program(place: Path, text: str) -> Path:
    """Write a CLI that tells its version, and otherwise does what `text` says."""
    path = place / "claude"
    version = 'case "$*" in *--version*|-v) echo "2.1.325 (Claude Code)"; exit;; esac'
    path.write_text(f"#!/bin/sh\n{version}\n{text}\n")
    path.chmod(0o755)
    return path


async def failure(cli: Path) -> Any:
    """Return the exception that a query over this CLI raises."""
    try:
        async with asyncio.timeout(LIMIT):
            async for _ in query(prompt="hi", options=ClaudeAgentOptions(cli_path=cli)):
                pass
    except Exception as error:  # noqa: BLE001 - the tests look at it
        return error
    pytest.fail("no error")


async def test_a_cli_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    error = await failure(tmp_path / "nowhere")

    assert type(error) is CLINotFoundError
    assert isinstance(error.__cause__, CliNotFound)
    assert str(tmp_path / "nowhere") in str(error)
    assert "What to do: " in str(error)


async def test_a_cli_that_fails_at_once_is_a_process_error_with_its_last_words(
    tmp_path: Path,
) -> None:
    error = await failure(program(tmp_path, "echo no luck today >&2; exit 3"))

    assert type(error) is ProcessError
    assert error.exit_code == 3
    assert "no luck today" in (error.stderr or "")
    assert "(exit code: 3)" in str(error)
    assert isinstance(error.__cause__, SteersmanError)


async def test_a_line_that_is_no_json_is_told_with_its_cause(tmp_path: Path) -> None:
    error = await failure(program(tmp_path, "read line; echo '{\"type\": nonsense}'; cat"))

    assert type(error) is CLIJSONDecodeError
    assert isinstance(error.original_error, ProtocolViolation)
    assert error.__cause__ is error.original_error
    assert error.line.startswith(error.original_error.what)


async def test_a_program_that_cannot_be_started_is_a_connection_error(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    path.write_text("#!/no/such/interpreter\n")

    error = await failure(path)

    assert isinstance(error, CLIConnectionError)
    assert isinstance(error.__cause__, SteersmanError)


async def test_a_client_that_is_not_connected_says_so() -> None:
    client = ClaudeSDKClient()

    for call in (client.interrupt, client.get_mcp_status, client.get_server_info):
        with pytest.raises(CLIConnectionError, match=r"^Not connected\. Call connect\(\) first\.$"):
            await call()


def test_a_wrong_argument_stays_a_value_error_and_a_closed_channel_is_a_connection_error() -> None:
    wrong, closed = UsageError("name", 5, "a text"), ChannelClosed("gone", hint="connect again")

    assert as_official(wrong) is wrong
    official = as_official(closed)
    assert type(official) is CLIConnectionError
    assert str(official) == "gone\nWhat to do: connect again"
    assert official.__cause__ is closed
