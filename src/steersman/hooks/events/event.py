"""What all events have."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman._struct import WireStruct
from steersman.hooks.outputs import Output

__all__ = ["HookEvent"]


class HookEvent(WireStruct, frozen=True, kw_only=True, tag_field="hook_event_name"):
    """What every hook is told; `raw` has the fields that a class does not name."""

    OUTPUT: ClassVar[type[Output] | None] = None
    """What a reply may say about this event beside the common fields."""
    MATCHED: ClassVar[str] = ""
    """The field that matchers are held against; the CLI looks at none if it is empty."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    prompt_id: str = ""
    permission_mode: str = ""
    agent_id: str | None = None
    agent_type: str | None = None
    effort: dict[str, Any] | None = None

    @classmethod
    def event_name(cls) -> str:
        """The CLI's name for the event."""
        return str(cls.__struct_config__.tag)

    @property
    def matched(self) -> str:
        """What a matcher is held against."""
        return str(getattr(self, self.MATCHED)) if self.MATCHED else ""
