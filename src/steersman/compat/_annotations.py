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
    _NAMES = {
        "readOnlyHint": "read_only_hint",
        "destructiveHint": "destructive_hint",
        "idempotentHint": "idempotent_hint",
        "openWorldHint": "open_world_hint",
        "max_result_size_chars": "maxResultSizeChars",
    }
    """The other spellings of hints, and the attribute of each, as with the package `mcp`."""
    try:
        from mcp.types import ToolAnnotations as _Base
        from pydantic import AliasChoices, Field
    except ImportError:

        class ToolAnnotations(SimpleNamespace):
            """Hints about a tool."""

            def __init__(self, **hints: Any) -> None:
                given = {_NAMES.get(name, name): hint for name, hint in hints.items()}
                super().__init__(**{**dict.fromkeys(_NAMES.values()), "title": None, **given})

    else:

        class ToolAnnotations(_Base):
            """Hints about a tool."""

            model_config = {"extra": "allow"}

            maxResultSizeChars: int | None = Field(  # noqa: N815 - MCP's own form
                default=None,
                validation_alias=AliasChoices("maxResultSizeChars", "max_result_size_chars"),
                serialization_alias="maxResultSizeChars",
            )
