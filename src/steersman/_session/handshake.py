"""The CLI's answer to the initialize request, as far as every start needs it."""

from __future__ import annotations

from msgspec import field, structs

from steersman._struct import read_leniently, set_source
from steersman.control.handshake import Initialized
from steersman.control.verbs import Answer


class Handshake(Answer, frozen=True, kw_only=True):
    """A few fields of `Initialized`. The others are long lists, which few programs read."""

    claude_code_version: str = field(default="", name="claude_code_version")
    current_permission_mode: str = field(default="", name="current_permission_mode")
    capabilities: list[str] = []
    hooks_applied: bool | None = field(default=None, name="hooks_applied")

    def whole(self) -> Initialized:
        """Return the whole answer, with the version of this one, which may have been found out."""
        fields, version = self.raw, self.claude_code_version
        whole = read_leniently(Initialized, fields)
        return set_source(structs.replace(whole, claude_code_version=version), fields)
