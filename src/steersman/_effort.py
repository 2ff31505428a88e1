"""A limit for the work that one decision may take, whatever the input and the number of rules.

Guards run in the event loop, so one decision must not take long. Each comparison is counted
first. When nothing is left, an approval does not cover, and a denial does. `fits_parts` compares
with wildcards in time that is linear in the string.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_STEPS = 12_000
"""Steps of about half a microsecond for one decision."""


@dataclass(slots=True, eq=False)
class Effort:
    """The steps that are left for one decision."""

    left: int = MOST_STEPS

    def spend(self, steps: int) -> bool:
        """Count steps that are about to be done; False if there are not as many left."""
        self.left -= steps
        return self.left >= 0


def fits_parts(parts: tuple[str, ...], text: str) -> bool:
    """Return whether `text` is these parts, in order, with anything between them."""
    first, *middle = parts
    if not middle:
        return text == first
    last = middle.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
