"""The base of every message: a value that is a whole line."""

from __future__ import annotations

from msgspec.structs import force_setattr

from steersman._json import JsonDict
from steersman._struct import WireStruct, source_of

# The attribute that holds the line of a message once `raw` has been decoded from it.
LINE = "_line"


class MessageWire(WireStruct, frozen=True, kw_only=True):
    """A value that is a whole line, and can be written again byte for byte."""

    @property
    def type(self) -> str:
        """The CLI's word for a message of this class, such as `assistant` or `system`."""
        return str(self.__struct_config__.tag)

    @property
    def subtype(self) -> str | None:
        """The CLI's word for the kind of a `system` message or a result; `None` for others."""
        return None

    @property
    def raw(self) -> JsonDict:
        """The JSON object as the CLI sent it, including fields that this release does not know."""
        source = source_of(self)
        if isinstance(source, bytes):
            force_setattr(self, LINE, source)
        return super().raw


def line_of(message: MessageWire) -> bytes | None:
    """Return the line that `message` was decoded from, or None if it was made in this process."""
    line = getattr(message, LINE, None) or source_of(message)
    return line if isinstance(line, bytes) else None
