"""The permission mode that the CLI was given, and whether what it reports agrees with that. Pure.

Defaults of the CLI change with its releases: some start in `auto` mode if no mode is given. So the
mode is always given, and each report is compared: in the answer to initialize, in `system/init` and
in `system/status`.
"""

from __future__ import annotations

from collections.abc import Iterator

from steersman import _json

DEFAULT, PLAN = "default", "plan"
MAY_BE_REFUSED = frozenset({"auto", "bypassPermissions"})
"""Modes that a model or managed settings can switch off; the CLI then uses `default`, and asks."""


class ModeCheck:
    """Follows the permission mode of one CLI. Its methods return whether a report is right.

    The CLI may change its mode to one that it is given, may enter plan mode and leave it, and may
    fall back from a mode that is not available to `default`.
    """

    def __init__(self, given: str, *, others_decide: bool = False) -> None:
        self.given = given
        """The mode that the CLI must be in, unless it has entered plan mode."""
        self.is_reported = False
        """Whether a report without a mode is wrong: the release of the CLI always has one."""
        self._current = given
        self._before_plan = DEFAULT if given == PLAN else given
        self._asked_for: set[str] = set()
        """Modes that were sent, and that the CLI has not reported yet."""
        self._others_decide = others_decide
        """Whether an MCP tool answers permission requests, which may change the mode unseen."""

    def asks_for(self, mode: str) -> None:
        """Record that a mode was sent, with a control request or in an answer."""
        self._asked_for.add(mode)

    def was_refused(self, mode: str) -> None:
        """Record that the CLI has refused a mode."""
        self._asked_for.discard(mode)

    def is_set(self, mode: str) -> None:
        """Record that the CLI has accepted a mode."""
        self._take(mode, is_given=True)

    def starts_in(self, reported: str) -> bool:
        """Handle the answer to initialize, and each `system/init`: nothing was changed unseen."""
        if not reported and not self.is_reported:
            return True
        falls_back = reported == DEFAULT and self._current in MAY_BE_REFUSED
        if reported != self._current and reported not in self._asked_for and not falls_back:
            return False
        self._take(reported, is_given=reported in self._asked_for)
        return True

    def changes_to(self, reported: str) -> bool:
        """Handle `system/status`, with which the CLI reports a change of its mode."""
        is_given = reported in self._asked_for or self._others_decide
        leaves_plan = self._current == PLAN and reported in (DEFAULT, self._before_plan)
        falls_back = reported == DEFAULT and self._current in MAY_BE_REFUSED
        is_known = reported in (self._current, PLAN, self._before_plan)
        if not (is_given or is_known or leaves_plan or falls_back):
            return False
        self._take(reported, is_given=is_given)
        return True

    def _take(self, mode: str, *, is_given: bool) -> None:
        self._asked_for.discard(mode)
        self._current = mode
        if is_given:
            self.given = mode
            if mode != PLAN:
                self._before_plan = mode


def modes_in(response: object) -> Iterator[str]:
    """Yield the modes that an answer to a permission request or a hook sets."""
    if not _json.is_mapping(response):
        return
    output = response.get("hookSpecificOutput")
    decision = output.get("decision") if _json.is_mapping(output) else None
    for place in (response, decision):
        updates = place.get("updatedPermissions") if _json.is_mapping(place) else None
        for each in updates if _json.is_array(updates) else ():
            if _json.is_mapping(each) and each.get("type") == "setMode":
                yield str(each.get("mode"))
