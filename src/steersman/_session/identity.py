"""New ids for conversations and prompts."""

from __future__ import annotations

import os

__all__ = ["new_uuid"]


def new_uuid() -> str:
    """A random UUID, version 4.

    Made by hand: importing `uuid` costs more than all of this package's own modules.
    """
    number = bytearray(os.urandom(16))
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    digits = number.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
