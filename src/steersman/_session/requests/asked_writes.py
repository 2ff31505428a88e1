"""Checks whether the CLI asks if a hook replies `ask`.

In `bypassPermissions` the CLI runs writes to `.git`, `.claude`, `.bashrc` and similar paths,
although a hook replied `ask`. Links can lead from every path to such a path.
"""

from __future__ import annotations

from steersman import _json
from steersman.hooks.events import PreToolUse
from steersman.hooks.replies import Reply, ToolVerdict
from steersman.permissions.writes import may_write

NOT_ASKED = (
    "Denied: a hook wants the user to be asked, and in {mode} the CLI does not ask about writes."
)


def objection_to_ask(event: PreToolUse, reply: Reply) -> str | None:
    """Return why this reply may not ask about the call, or None if the reply can be sent."""
    specific = reply.hook_specific_output
    decision: object = None
    if isinstance(specific, ToolVerdict):
        decision = specific.permission_decision
    elif _json.is_mapping(specific):
        decision = specific.get("permissionDecision")
    mode = event.permission_mode
    if decision != "ask" or mode != "bypassPermissions":
        return None
    return NOT_ASKED.format(mode=mode) if may_write(event.tool_name, event.tool_input) else None
