"""UUIDs for conversations and prompts."""

from __future__ import annotations

import os


def new_uuid() -> str:
    """Return a random UUID, version 4.

    Does not use `uuid`, whose import costs more than all of this package's own modules.
    """
    return _written(os.urandom(16), version=4)


def uuid_of(space: str, name: str) -> str:
    """Return the UUID of `name` in `space`: version 8, computed from a digest."""
    import hashlib  # noqa: PLC0415 - few conversations are named

    digest = hashlib.sha256(f"{space}\0{name}".encode("utf-8", "surrogatepass")).digest()
    return _written(digest[:16], version=8)


def _written(number: bytes, version: int) -> str:
    marked = bytearray(number)
    marked[6] = marked[6] & 0x0F | version << 4
    marked[8] = marked[8] & 0x3F | 0x80
    digits = marked.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
