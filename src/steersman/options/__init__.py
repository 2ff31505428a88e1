"""`Options`: what a caller may set before a session starts, checked and stored. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.options.agents import AgentDefinition, AgentEffort
    from steersman.options.checks import Effort, PermissionMode, SettingSource
    from steersman.options.conflicts import ShadowedCallbackWarning
    from steersman.options.fields import Options, options_from
    from steersman.options.keywords import OptionKwargs, ServerForm
    from steersman.options.limits import (
        Budget,
        Caps,
        Limits,
        Park,
        Revival,
        StartupLimits,
        Watchdog,
    )
    from steersman.options.mappings import (
        AskUserQuestionWords,
        CustomPrompt,
        HttpServer,
        OutputFormat,
        PresetPrompt,
        PromptFile,
        SandboxFilesystem,
        SandboxNetwork,
        SandboxSettings,
        SseServer,
        StdioServer,
        TaskBudget,
        ThinkingConfig,
        ToolConfig,
        ToolsPreset,
    )
    from steersman.options.plugins import Plugin
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "agents": ("AgentDefinition", "AgentEffort"),
            "checks": ("Effort", "PermissionMode", "SettingSource"),
            "conflicts": ("ShadowedCallbackWarning",),
            "fields": ("Options", "options_from"),
            "keywords": ("OptionKwargs", "ServerForm"),
            "limits": ("Budget", "Caps", "Limits", "Park", "Revival", "StartupLimits", "Watchdog"),
            "mappings": (
                "AskUserQuestionWords",
                "CustomPrompt",
                "HttpServer",
                "OutputFormat",
                "PresetPrompt",
                "PromptFile",
                "SandboxFilesystem",
                "SandboxNetwork",
                "SandboxSettings",
                "SseServer",
                "StdioServer",
                "TaskBudget",
                "ThinkingConfig",
                "ToolConfig",
                "ToolsPreset",
            ),
            "plugins": ("Plugin",),
        },
    )

__all__ = [
    "AgentDefinition",
    "AgentEffort",
    "AskUserQuestionWords",
    "Budget",
    "Caps",
    "CustomPrompt",
    "Effort",
    "HttpServer",
    "Limits",
    "OptionKwargs",
    "Options",
    "OutputFormat",
    "Park",
    "PermissionMode",
    "Plugin",
    "PresetPrompt",
    "PromptFile",
    "Revival",
    "SandboxFilesystem",
    "SandboxNetwork",
    "SandboxSettings",
    "ServerForm",
    "SettingSource",
    "ShadowedCallbackWarning",
    "SseServer",
    "StartupLimits",
    "StdioServer",
    "TaskBudget",
    "ThinkingConfig",
    "ToolConfig",
    "ToolsPreset",
    "Watchdog",
    "options_from",
]
