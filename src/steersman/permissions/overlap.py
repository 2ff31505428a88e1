"""How two permission rules meet: whether they could cover the same call, and what a guard is worth.

Two rules are apart only if their tools are certainly different; what they match is not compared.
"""

from __future__ import annotations

from steersman._tool_names import BASH, COMMAND_FIELDS
from steersman.permissions.rules import AGENTS, EDITING, READING, Rule

FILES = EDITING | READING


def may_overlap(one: Rule, other: Rule) -> bool:
    """Return whether one call could be covered by both rules."""
    if one.tool.startswith("mcp__") and other.tool.startswith("mcp__"):
        return _may_be_one_tool(one.tool, other.tool)
    if "*" in one.tool or "*" in other.tool:
        return True
    if one.tool == other.tool or _shares_a_family(one.tool, other.tool):
        return True
    return _is_about_files_of(one, other) or _is_about_files_of(other, one)


def _may_be_one_tool(one: str, other: str) -> bool:
    """Compare the texts before the first wildcard: one must be the beginning of the other."""
    before, behind = one.partition("*")[0], other.partition("*")[0]
    return before.startswith(behind) or behind.startswith(before)


def _shares_a_family(one: str, other: str) -> bool:
    return any({one, other} <= family for family in (AGENTS, COMMAND_FIELDS.keys(), FILES))


def _is_about_files_of(rule: Rule, command: Rule) -> bool:
    """Return whether a rule with a path could be about a command that names the file."""
    return rule.tool in FILES and rule.content is not None and command.tool in COMMAND_FIELDS


def is_fence(guard: Rule, approval: Rule) -> bool:
    """Return whether what a guard stops can be done in another way that the approval allows.

    Beside an approval of every command, a guard about a program or a file does not stop a copy of
    the program, a script, or a program that opens the file. Beside one of every subcommand of a
    program, a guard about one of them does not stop an alias.
    """
    if guard.content is None or approval.tool != BASH:
        return False
    if approval.content is None:
        return guard.tool == BASH or guard.tool in FILES
    before, star, _ = approval.content.replace(":*", " *").partition("*")
    words = before.split()
    return guard.tool == BASH and bool(star) and guard.content.split()[: len(words)] == words
