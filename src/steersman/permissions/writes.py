"""Calls that may write files: in `bypassPermissions` the CLI does not ask about all of them."""

from __future__ import annotations

import re

from steersman.permissions.rules import EDITING, ToolCall

__all__ = ["may_write"]

READERS = frozenset({"cat", "echo", "grep", "head", "ls", "pwd", "stat", "tail", "wc"})
"""Commands that write no file, whatever their arguments are."""

LIMIT = 16 * 1024
_PLAIN_WORDS = re.compile(r"[\w ./:,=@%+*?~-]+", re.ASCII)


def may_write(call: ToolCall) -> bool:
    """Return whether a built-in tool may write a file. A command line may if it is not plain."""
    if call.tool in EDITING:
        return True
    if call.tool.startswith("mcp__") or not (call.tool == "Bash" or "command" in call.input):
        return False
    line = call.input.get("command")
    if not isinstance(line, str) or len(line) > LIMIT or not _PLAIN_WORDS.fullmatch(line):
        return True
    return not READERS.issuperset(line.split()[:1])
