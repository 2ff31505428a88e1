"""The results of a scripted CLI: one per turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.testing.scripted.output import Output

__all__ = ["Results"]

NO_SUBAGENTS: Mapping[str, Any] = {
    "spawned": 0,
    "requested": {"background": 0, "foreground": 0, "unset": 0},
    "started_in_background": 0,
    "max_depth": 0,
    "spawned_by_subagents": 0,
    "completed": 0,
    "failed": 0,
    "killed": {"parent": 0, "user": 0, "system": 0},
    "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
    "by_type": {},
}


class Results:
    """Numbers the results, and remembers how the last one ended."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._count = 0
        self.last_was_error = False

    def tell(self, subtype: str, fields: Mapping[str, Any]) -> None:
        """Say how a turn ended."""
        self.last_was_error = bool(fields["is_error"])
        # The CLI's own order: `type` stands near the end.
        self._output.frame(
            {
                "duration_api_ms": 0,
                **fields,
                "fast_mode_state": "off",
                "fast_mode_disabled_reason": "sdk_opt_in_required",
                "subagent_stats": NO_SUBAGENTS,
                "subtype": subtype,
                "type": "result",
                "duration_ms": 0,
                "queued_turn_count": 0,
                "result_index": self._count,
            }
        )
        self._count += 1
