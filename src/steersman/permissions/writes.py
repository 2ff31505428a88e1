"""Calls that may write files: in `bypassPermissions` the CLI does not ask about all of them.

Sessions without a policy use this module too, so it does not import the rules.
"""

from __future__ import annotations

import re

from steersman._json import JsonObject

WRITING = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
READERS = frozenset({"cat", "echo", "grep", "head", "ls", "pwd", "stat", "tail", "wc"})
"""Commands that write no file, whatever their arguments are."""

LIMIT = 16 * 1024
_PLAIN_WORDS = re.compile(r"[\w ./:,=@%+*?~-]+", re.ASCII)


def may_write(tool: str, given: JsonObject) -> bool:
    """Return whether a built-in tool may write a file. A command line may if it is not plain."""
    if tool in WRITING:
        return True
    if tool.startswith("mcp__") or not (tool == "Bash" or "command" in given):
        return False
    line = given.get("command")
    if not isinstance(line, str) or len(line) > LIMIT or not _PLAIN_WORDS.fullmatch(line):
        return True
    return not READERS.issuperset(line.split()[:1])
