"""Entries for things that are not here under their official names: a replacement, or a reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMPAT", "KINDS", "STORES", "TRACES", "WARM", "Elsewhere"]

KINDS = (
    "needs login",
    "Windows",
    "hosted only",
    "JavaScript runtime",
    "not yet: ",
    "not declared: ",
    "kept as data: ",
    "done differently: ",
)
"""The beginnings of all reasons."""

STORES = "not yet: session functions and stores"
COMPAT = "not yet: a module with the official names"
WARM = "not yet: many sessions, and prestarted processes"
TRACES = "not yet: traces"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A replacement: a dotted name of ours, and the marks that show it."""

    ours: str
    marks: tuple[str, ...] = ()
    """Marks to use instead of those of `ours`."""
    by: str = ""
    """A dotted name of ours that returns or takes `ours`. A test of it counts too."""
