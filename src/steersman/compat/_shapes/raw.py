"""Where a message keeps the JSON object that it was made from.

In a slot, and not in the message's `__dict__`: programs print and store `vars(message)`.
"""

from typing import Final

__all__ = ["RAW", "SLOTS"]

RAW: Final = "_raw"
"""The attribute with the object; a message that a program made has none."""

SLOTS: Final = (RAW, "__dict__", "__weakref__")
"""The `__slots__` of a message, which has all its fields in its `__dict__` nevertheless."""
