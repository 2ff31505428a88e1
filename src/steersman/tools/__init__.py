"""Tools written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.tools._schema.schema import Shape, shape_of
    from steersman.tools.context import ToolContext
    from steersman.tools.definition import Tool, ToolHints, tool
    from steersman.tools.mcp_remote import RemoteCall, RemoteLimits, RemoteTools
    from steersman.tools.prompts import Prompt, prompt
    from steersman.tools.resources import Resource, resource
    from steersman.tools.results import (
        ToolError,
        ToolResult,
        error_result,
        image_result,
        text_result,
    )
    from steersman.tools.toolbox import Toolbox
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "context": ("ToolContext",),
            "definition": ("Tool", "ToolHints", "tool"),
            "mcp_remote": ("RemoteCall", "RemoteLimits", "RemoteTools"),
            "_schema.schema": ("Shape", "shape_of"),
            "prompts": ("Prompt", "prompt"),
            "resources": ("Resource", "resource"),
            "results": ("ToolError", "ToolResult", "error_result", "image_result", "text_result"),
            "toolbox": ("Toolbox",),
        },
    )

__all__ = [
    "Prompt",
    "RemoteCall",
    "RemoteLimits",
    "RemoteTools",
    "Resource",
    "Shape",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolHints",
    "ToolResult",
    "Toolbox",
    "error_result",
    "image_result",
    "prompt",
    "resource",
    "shape_of",
    "text_result",
    "tool",
]
