"""Tool names and the classes of their inputs and outputs.

To add a tool, write its classes in the module of their topic and give the tool a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import CONVERT_ERRORS, read_leniently, set_source
from steersman.messages.builtin import (
    agents,
    files,
    hosted,
    mcp,
    planning,
    schedules,
    shell,
    user,
    web,
)
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = ["ALIASES", "INPUTS", "LISTS", "OUTPUTS", "typed_input", "typed_output"]

INPUTS: Mapping[str, type[ToolInput]] = {
    "Agent": agents.AgentInput,
    "Artifact": hosted.ArtifactInput,
    "AskUserQuestion": user.AskUserQuestionInput,
    "Bash": shell.BashInput,
    "ClaudeDesign": hosted.ClaudeDesignInput,
    "CronCreate": schedules.CronCreateInput,
    "CronDelete": schedules.CronDeleteInput,
    "CronList": schedules.CronListInput,
    "Edit": files.FileEditInput,
    "EndConversation": user.EndConversationInput,
    "EnterPlanMode": planning.EnterPlanModeInput,
    "EnterWorktree": planning.EnterWorktreeInput,
    "ExitPlanMode": planning.ExitPlanModeInput,
    "ExitWorktree": planning.ExitWorktreeInput,
    "Glob": files.GlobInput,
    "Grep": files.GrepInput,
    "LSP": files.LSPInput,
    "ListAgents": agents.ListAgentsInput,
    "ListMcpResourcesTool": mcp.ListMcpResourcesInput,
    "Monitor": shell.MonitorInput,
    "NotebookEdit": files.NotebookEditInput,
    "OfferChromeSetup": user.OfferChromeSetupInput,
    "PowerShell": shell.PowerShellInput,
    "Projects": hosted.ProjectsInput,
    "ProposeGoal": planning.ProposeGoalInput,
    "PushNotification": user.PushNotificationInput,
    "Read": files.FileReadInput,
    "ReadMcpResourceDirTool": mcp.ReadMcpResourceDirInput,
    "ReadMcpResourceTool": mcp.ReadMcpResourceInput,
    "ReadNotifications": user.ReadNotificationsInput,
    "RefreshMcpTools": mcp.RefreshMcpToolsInput,
    "RemoteTrigger": schedules.RemoteTriggerInput,
    "ReportFindings": planning.ReportFindingsInput,
    "ScheduleWakeup": schedules.ScheduleWakeupInput,
    "SendFeedback": user.SendFeedbackInput,
    "SendMessage": agents.SendMessageInput,
    "SendUserFile": user.SendUserFileInput,
    "SendUserMessage": user.SendUserMessageInput,
    "ShareOnboardingGuide": user.ShareOnboardingGuideInput,
    "ShowOnboardingRolePicker": user.ShowOnboardingRolePickerInput,
    "Skill": agents.SkillInput,
    "SubagentHandback": agents.SubagentHandbackInput,
    "TaskCreate": planning.TaskCreateInput,
    "TaskGet": planning.TaskGetInput,
    "TaskList": planning.TaskListInput,
    "TaskStop": shell.TaskStopInput,
    "TaskUpdate": planning.TaskUpdateInput,
    "TodoWrite": planning.TodoWriteInput,
    "ToolSearch": mcp.ToolSearchInput,
    "WaitForMcpServers": mcp.WaitForMcpServersInput,
    "WebFetch": web.WebFetchInput,
    "WebSearch": web.WebSearchInput,
    "Workflow": agents.WorkflowInput,
    "Write": files.FileWriteInput,
    "propose_skills": hosted.ProposeSkillsInput,
}

OUTPUTS: Mapping[str, type[ToolOutput]] = {
    "Agent": agents.AgentOutput,
    "Artifact": hosted.ArtifactOutput,
    "AskUserQuestion": user.AskUserQuestionOutput,
    "Bash": shell.BashOutput,
    "ClaudeDesign": hosted.ClaudeDesignOutput,
    "CronCreate": schedules.CronCreateOutput,
    "CronDelete": schedules.CronDeleteOutput,
    "CronList": schedules.CronListOutput,
    "Edit": files.FileEditOutput,
    "EnterPlanMode": planning.EnterPlanModeOutput,
    "EnterWorktree": planning.EnterWorktreeOutput,
    "ExitPlanMode": planning.ExitPlanModeOutput,
    "ExitWorktree": planning.ExitWorktreeOutput,
    "Glob": files.GlobOutput,
    "Grep": files.GrepOutput,
    "ListAgents": agents.ListAgentsOutput,
    "ListMcpResourcesTool": mcp.ListMcpResourcesOutput,
    "Monitor": shell.MonitorOutput,
    "NotebookEdit": files.NotebookEditOutput,
    "OfferChromeSetup": user.OfferChromeSetupOutput,
    "Projects": hosted.ProjectsOutput,
    "ProposeGoal": planning.ProposeGoalOutput,
    "PushNotification": user.PushNotificationOutput,
    "Read": files.FileReadOutput,
    "ReadMcpResourceDirTool": mcp.ReadMcpResourceDirOutput,
    "ReadMcpResourceTool": mcp.ReadMcpResourceOutput,
    "ReadNotifications": user.ReadNotificationsOutput,
    "RefreshMcpTools": mcp.RefreshMcpToolsOutput,
    "RemoteTrigger": schedules.RemoteTriggerOutput,
    "ReportFindings": planning.ReportFindingsOutput,
    "ScheduleWakeup": schedules.ScheduleWakeupOutput,
    "SendFeedback": user.SendFeedbackOutput,
    "ShowOnboardingRolePicker": user.ShowOnboardingRolePickerOutput,
    "Skill": agents.SkillOutput,
    "TaskCreate": planning.TaskCreateOutput,
    "TaskGet": planning.TaskGetOutput,
    "TaskList": planning.TaskListOutput,
    "TaskStop": shell.TaskStopOutput,
    "TaskUpdate": planning.TaskUpdateOutput,
    "TodoWrite": planning.TodoWriteOutput,
    "WebFetch": web.WebFetchOutput,
    "WebSearch": web.WebSearchOutput,
    "Workflow": agents.WorkflowOutput,
    "Write": files.FileWriteOutput,
    "propose_skills": hosted.ProposeSkillsOutput,
}

ALIASES: Mapping[str, str] = {
    "Brief": "SendUserMessage",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
    "ListMcpResources": "ListMcpResourcesTool",
    "ListPeers": "ListAgents",
    "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool",
    "Task": "Agent",
}
"""Older names of tools; `system/init` still lists `Task`."""

LISTS: Mapping[type[ToolOutput], str] = {
    mcp.ListMcpResourcesOutput: "resources",
    mcp.RefreshMcpToolsOutput: "servers",
}
"""Outputs that are a list and not an object, and the field that holds the list."""

PartT = TypeVar("PartT", bound=Part)


def typed_input(tool_name: str, given: JsonDict) -> ToolInput | JsonDict:
    """Return the input of `tool_name` as its class, or `given` if the tool is not built in."""
    cls = INPUTS.get(ALIASES.get(tool_name, tool_name))
    return given if cls is None else _read(cls, given)


def typed_output(tool_name: str, value: Json) -> ToolOutput | Json:
    """Return the output of `tool_name`, such as `User.tool_use_result`, as its class.

    Returns `value` itself if the tool is not built in or has no class, or if `value` is a text,
    which is an error.
    """
    cls = OUTPUTS.get(ALIASES.get(tool_name, tool_name))
    if cls is None:
        return value
    if _json.is_array(value) and cls in LISTS:
        return _read(cls, {LISTS[cls]: value})
    return _read(cls, value) if _json.is_object(value) else value


def _read(cls: type[PartT], found: JsonDict) -> PartT:
    try:
        value = msgspec.convert(found, cls)
    except CONVERT_ERRORS:
        value = read_leniently(cls, found)
    return set_source(value, found)
