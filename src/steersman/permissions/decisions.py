"""The two answers to a permission question, in the shape the CLI reads."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

__all__ = ["Allow", "Decision", "Deny"]


class Allow(
    Struct,
    frozen=True,
    tag_field="behavior",
    tag="allow",
    rename="camel",
    omit_defaults=True,
):
    """Let it run, perhaps with other input; perhaps not ask again."""

    # The CLI takes a null here for an invalid answer and refuses the tool: absent means unchanged.
    updated_input: dict[str, Any] | None = None
    updated_permissions: list[dict[str, Any]] | None = None


class Deny(
    Struct, frozen=True, tag_field="behavior", tag="deny", rename="camel", omit_defaults=True
):
    """Refuse, tell the model why, and perhaps end the turn."""

    # The CLI takes a denial without a message for an invalid answer, so there is always one.
    message: str
    interrupt: bool = False


Decision = Allow | Deny
