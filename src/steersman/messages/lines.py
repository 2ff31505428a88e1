"""What every message has, beside its fields: the line it came on."""

from __future__ import annotations

from typing import Any, Self

from msgspec.structs import force_setattr

from steersman._values import Wire, source_of

__all__ = ["MessageWire", "line_of"]

# Where a message keeps its line once `raw` has been decoded from it.
LINE = "_line"


class MessageWire(Wire, frozen=True, kw_only=True):
    """A value that is a line of its own, and can be given back byte for byte."""

    def came_on(self, line: bytes) -> Self:
        """Remember `line`, of which nothing could be decoded."""
        force_setattr(self, LINE, line)
        return self.came_from({})

    def stands_on(self, line: bytes) -> None:
        """Remember `line`, which this was decoded from."""
        self.came_from(line)

    @property
    def raw(self) -> dict[str, Any]:
        """The object exactly as it came, with the fields that this release does not know."""
        source = source_of(self)
        if isinstance(source, bytes):
            force_setattr(self, LINE, source)
        return super().raw


def line_of(message: MessageWire) -> bytes | None:
    """The line that `message` came on; None if it was made by hand."""
    line = getattr(message, LINE, None) or source_of(message)
    return line if isinstance(line, bytes) else None
