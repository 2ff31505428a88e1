"""Tools written in Python."""

from __future__ import annotations

from steersman.tools.context import ToolContext
from steersman.tools.definition import Tool, tool
from steersman.tools.hints import ToolHints
from steersman.tools.mcp_remote import RemoteCall, RemoteLimits, RemoteTools
from steersman.tools.output import Shape, shape_of
from steersman.tools.prompts import Prompt, prompt
from steersman.tools.resources import Resource, resource
from steersman.tools.results import ToolError, ToolResult, error_result, image_result, text_result
from steersman.tools.toolbox import Toolbox

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
