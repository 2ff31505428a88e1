"""Environment variables, as the official SDK passes them: all that this process has, and `env`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from steersman._launch.environment import MARKS, PROTOCOL
from steersman.compat._warnings import warn

if TYPE_CHECKING:
    from steersman.compat._shapes.options import ClaudeAgentOptions

__all__ = ["variables"]

REPLACED = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Variables of an outer Claude Code session that the official SDK does not pass on either."""

BY_OPTION = {
    "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "enable_file_checkpointing",
    "CLAUDE_AGENT_SDK_CLIENT_APP": "client_app",
}
"""Variables that an option sets, whatever `env` has."""


def variables(options: ClaudeAgentOptions) -> dict[str, str]:
    """Return the variables to set, beside those that the CLI inherits."""
    marks = {name: os.environ[name] for name in (MARKS - REPLACED) & os.environ.keys()}
    found = {**marks, **(options.env or {})}
    for name, value in found.items():
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"env[{name!r}]: pass a string, not {type(value).__name__}")
    for name in PROTOCOL.keys() & found.keys():
        if found[name] != PROTOCOL[name]:
            warn(f"env[{name!r}] has no effect: steersman needs it as {PROTOCOL[name]!r}")
            del found[name]
    for name, option in BY_OPTION.items():
        if getattr(options, option) not in (None, False):
            found.pop(name, None)
    if options.cwd:
        found["PWD"] = str(options.cwd)
    return found
