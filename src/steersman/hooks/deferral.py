"""Checks whether a tool may be deferred until the session is resumed.

A deferred call that the CLI loses would neither run nor be asked about again. The CLI loses calls
of subagents, calls of tools whose MCP server is not there when it resumes, and the first of two
calls that are deferred in one turn. A CLI that does not wait for our hooks on resume could run the
tool before they are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from steersman import _json
from steersman.hooks.events import PreToolUse
from steersman.hooks.outputs import ToolVerdict
from steersman.hooks.replies import Reply

IN_SUBAGENT = (
    "Denied: {tool} cannot be deferred in a subagent, because the CLI would lose the call. Report"
    " this to the main agent, which can call it."
)
OWN_TOOL = (
    "Denied: {tool} cannot be deferred, because it is a tool of the program itself, which the CLI"
    " does not find when it resumes."
)
CANNOT_WAIT = (
    "Denied: {tool} cannot be deferred, because this CLI would run it on resume before it knows the"
    " hooks. The author can update the CLI."
)
ONE_AT_A_TIME = "Denied for now: another tool was deferred in this turn. Ask for it again later."


class DeferralCheck:
    """Allows one deferred tool per turn: of the main agent, and not one of this process."""

    def __init__(
        self,
        waits_on_resume: Callable[[], bool] = lambda: True,
        own_servers: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`own_servers` returns the keys of the MCP servers that run in this process."""
        self._waits_on_resume = waits_on_resume
        self._own_servers = own_servers
        self._last: tuple[str, str] | None = None

    def objection(self, event: PreToolUse, reply: Reply) -> str | None:
        """Return why this reply may not defer the tool, or None if the reply can be sent."""
        if _decision_of(reply.hook_specific_output) != "defer":
            return None
        if event.agent_id is not None:
            return IN_SUBAGENT.format(tool=event.tool_name)
        if is_own_tool(event.tool_name, self._own_servers()):
            return OWN_TOOL.format(tool=event.tool_name)
        if not self._waits_on_resume():
            return CANNOT_WAIT.format(tool=event.tool_name)
        prompt, tool_use = event.prompt_id, event.tool_use_id
        if self._last is not None and self._last[0] == prompt and self._last[1] != tool_use:
            return ONE_AT_A_TIME
        self._last = (prompt, tool_use)
        return None


def is_own_tool(tool: str, servers: Iterable[str]) -> bool:
    """Return whether a tool is one of the MCP servers with these keys, as the CLI names it."""
    if not tool.startswith("mcp__"):
        return False
    names = (re.sub(r"[^A-Za-z0-9_-]", "_", key) for key in servers)
    return any(tool.startswith(f"mcp__{name}__") for name in names)


def _decision_of(specific: object) -> object:
    if isinstance(specific, ToolVerdict):
        return specific.permission_decision
    return specific.get("permissionDecision") if _json.is_mapping(specific) else None
