"""`ToolAnnotations`: hints about a tool, in both spellings.

A class of the package `mcp` where that is installed, as in the official SDK; this module imports
it, and is imported only if the class is used.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    class ToolAnnotations:
        """Hints about a tool."""

        def __init__(
            self,
            *,
            title: str | None = None,
            readOnlyHint: bool | None = None,  # noqa: N803 - MCP's own names
            destructiveHint: bool | None = None,  # noqa: N803
            idempotentHint: bool | None = None,  # noqa: N803
            openWorldHint: bool | None = None,  # noqa: N803
            maxResultSizeChars: int | None = None,  # noqa: N803
            **others: Any,
        ) -> None:
            """Make the hints; `None` is no hint."""

else:
    try:
        from mcp.types import ToolAnnotations as _Base
    except ImportError:

        class ToolAnnotations(SimpleNamespace):
            """Hints about a tool."""

            def __init__(self, **hints: Any) -> None:
                super().__init__(**{"title": None, **hints})

    else:

        class ToolAnnotations(_Base):
            """Hints about a tool."""

            model_config = {"extra": "allow"}

            maxResultSizeChars: int | None = None  # noqa: N815 - MCP's own form
