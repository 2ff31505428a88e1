"""The names of the CLI's own tools, skills and agents: near misses, and what counts as one name.

A rule or a matcher for a tool that does not exist is accepted by the CLI and never applies. Rules
and guards about `Bash` are about all tools that run commands. Skills and agents can be called by
other spellings than those that the CLI lists.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

BASH = "Bash"

COMMAND_FIELDS: Mapping[str, str] = {BASH: "command", "Monitor": "command", "PowerShell": "command"}
"""Each tool that runs commands, and the field of its input that has the command line."""

SAME_SHELL = frozenset({BASH, "Monitor"})
"""Tools that an `allow` rule for `Bash` covers, as in the CLI: they start the same shell."""

MAIN_AGENT = "main"
"""The name of the main agent in rules."""

BUILT_IN = frozenset(
    {
        *("Agent", "Artifact", "AskUserQuestion", "Bash", "BashOutput", "Brief"),
        *("ClaudeDesign", "CronCreate", "CronDelete", "CronList", "Edit", "EndConversation"),
        *("EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep"),
        *("KillBash", "KillShell", "LS", "LSP", "ListAgents", "ListMcpResources"),
        *("ListMcpResourcesTool", "ListPeers", "Monitor", "MultiEdit", "NotebookEdit"),
        *("NotebookRead", "OfferChromeSetup", "PowerShell", "Projects", "ProposeGoal"),
        *("PushNotification", "Read", "ReadMcpResource", "ReadMcpResourceDir"),
        *("ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReadNotifications"),
        *("RefreshMcpTools", "RemoteTrigger", "ReportFindings", "ScheduleWakeup"),
        *("SendFeedback", "SendMessage", "SendUserFile", "SendUserMessage"),
        *("ShareOnboardingGuide", "ShowOnboardingRolePicker", "Skill", "SlashCommand"),
        *("StructuredOutput", "SubagentHandback", "Task", "TaskCreate", "TaskGet", "TaskList"),
        *("TaskOutput", "TaskStop", "TaskUpdate", "TodoRead", "TodoWrite", "ToolSearch"),
        *("WaitForMcpServers", "WebFetch", "WebSearch", "Workflow", "Write", "propose_skills"),
    }
)
"""The tools of the supported CLIs, with their former names."""

DEFAULT_AGENTS = ("general-purpose", "fork")
"""The agents of which one starts if a call names none."""
RENAMED = {"Agent": "Task"}
"""The names of tools in calls, and their former ones, which lists and matchers may still have."""
LISTED_AS = {
    **RENAMED,
    "AgentOutputTool": "TaskOutput",
    "BashOutput": "TaskOutput",
    "BashOutputTool": "TaskOutput",
    "Brief": "SendUserMessage",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
}
"""Names that may be given for a tool, and the one under which the CLI lists it."""

SHORTEST = 4
"""Letters of a name that may be misspelt by one letter; shorter ones only by case."""

_BY_LOWER = {name.lower(): name for name in BUILT_IN}


def near_miss(name: str) -> str | None:
    """Return the tool that a name is a misspelling of: by case, or by one letter.

    None if the name is that of a tool, or is not similar to one.
    """
    if name in BUILT_IN or name.startswith("mcp__"):
        return None
    lower = name.lower()
    if lower in _BY_LOWER:
        return _BY_LOWER[lower]
    near = (known for known in sorted(BUILT_IN) if _is_one_letter_off(lower, known.lower()))
    return next(near, None) if len(name) >= SHORTEST else None


def _is_one_letter_off(given: str, known: str) -> bool:
    """Return whether one letter is missing, added or replaced, or two are swapped."""
    if abs(len(given) - len(known)) > 1 or len(known) < SHORTEST:
        return False
    same = 0
    while same < min(len(given), len(known)) and given[same] == known[same]:
        same += 1
    rest, other = given[same:], known[same:]
    return (
        rest[1:] == other[1:]
        or rest[1:] == other
        or rest == other[1:]
        or (rest[:2] == other[:2][::-1] and rest[2:] == other[2:])
    )


def skill_key(name: str) -> str:
    """Return a text that is equal for all spellings with which the CLI finds one skill.

    The CLI ignores white space at the ends and one slash before the name. Here every slash there
    and the case are ignored too.
    """
    return name.strip().strip("\ufeff").strip().lstrip("/").strip().casefold()


def agent_key(name: str) -> str:
    """Return a text that is equal for all spellings with which the CLI finds one agent.

    The CLI ignores the case, white space, `_`, dashes and the width of letters. Here everything but
    letters, digits and `:` is ignored.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(each for each in folded if each.isalnum() or each == ":")
