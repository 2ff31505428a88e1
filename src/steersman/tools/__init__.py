"""Tools written in Python."""

from __future__ import annotations

from steersman.tools.context import ToolContext
from steersman.tools.definition import Tool, ToolHints, tool
from steersman.tools.output import Shape, shape_of
from steersman.tools.results import ToolError, ToolResult, error_result, image_result, text_result
from steersman.tools.toolbox import Toolbox

__all__ = [
    "Shape",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolHints",
    "ToolResult",
    "Toolbox",
    "error_result",
    "image_result",
    "shape_of",
    "text_result",
    "tool",
]
