"""Tools that run commands, watch them, and stop them."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, one
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "BashInput",
    "BashOutput",
    "MonitorInput",
    "MonitorOutput",
    "MonitorSocket",
    "PowerShellInput",
    "TaskStopInput",
    "TaskStopOutput",
]


class BashInput(ToolInput, frozen=True, kw_only=True):
    """`Bash`: run a command; `timeout` is in milliseconds."""

    command: str = ""
    timeout: float | None = None
    description: str | None = None
    run_in_background: bool | None = None
    dangerously_disable_sandbox: bool | None = field(default=None, name="dangerouslyDisableSandbox")


class BashOutput(ToolOutput, frozen=True, kw_only=True):
    """What a command printed, or where it goes on in the background."""

    stdout: str | None = None
    stderr: str | None = None
    interrupted: bool | None = None
    is_image: bool | None = None
    no_output_expected: bool | None = None
    raw_output_path: str | None = None
    persisted_output_path: str | None = None
    persisted_output_size: int | None = None
    structured_content: list[Any] | None = None
    return_code_interpretation: str | None = None
    timed_out_after_ms: float | None = None
    background_task_id: str | None = None
    backgrounded_by_user: bool | None = None
    background_cwd_hint: str | None = None
    background_ends_with_final_response: bool | None = None
    background_wakes_owner: bool | None = None
    dangerously_disable_sandbox: bool | None = None
    stale_read_file_state_hint: str | None = None
    gh_rate_limit_hint: Any = None
    git_operation: Any = None


class PowerShellInput(ToolInput, frozen=True, kw_only=True):
    """`PowerShell`: run a command there; `timeout` is in milliseconds."""

    command: str = ""
    timeout: float | None = None
    description: str | None = None
    run_in_background: bool | None = None
    dangerously_disable_sandbox: bool | None = field(default=None, name="dangerouslyDisableSandbox")


class MonitorSocket(Part, frozen=True, kw_only=True):
    """A web socket to listen to."""

    url: str = ""
    protocols: list[str] | None = None


class MonitorInput(ToolInput, frozen=True, kw_only=True):
    """`Monitor`: watch a command or a socket and be told of each line."""

    READERS: ClassVar[Readers] = {"ws": one(MonitorSocket)}

    description: str = ""
    timeout_ms: float = 0
    command: str | None = None
    ws: MonitorSocket | None = None


class MonitorOutput(ToolOutput, frozen=True, kw_only=True):
    """The task that watches."""

    task_id: str | None = None
    timeout_ms: float | None = None
    persistent: bool | None = None


class TaskStopInput(ToolInput, frozen=True, kw_only=True):
    """`TaskStop`: end a background task; `shell_id` is its older name."""

    task_id: str | None = None
    shell_id: str | None = None


class TaskStopOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """The task that was ended."""

    message: str | None = None
    task_id: str | None = None
    task_type: str | None = None
    command: str | None = None
