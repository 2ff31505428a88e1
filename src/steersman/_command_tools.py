"""The CLI's tools that run commands. Rules and guards about `Bash` are about all of them."""

from __future__ import annotations

from collections.abc import Mapping

BASH = "Bash"

COMMAND_FIELDS: Mapping[str, str] = {BASH: "command", "Monitor": "command", "PowerShell": "command"}
"""Each tool that runs commands, and the field of its input that has the command line."""

SAME_SHELL = frozenset({BASH, "Monitor"})
"""Tools that an `allow` rule for `Bash` covers, as in the CLI: they start the same shell."""
