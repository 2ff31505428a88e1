"""What is said of a thing that we do not have under its official name: ours instead, or why not."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMPAT", "KINDS", "STORES", "TRACES", "WARM", "Elsewhere"]

KINDS = (
    "needs login",
    "Windows",
    "hosted only",
    "JavaScript runtime",
    "later issue: ",
    "not declared: ",
    "kept as data: ",
    "otherwise here: ",
)
"""How every reason begins."""

STORES = "later issue: session functions and stores"
COMPAT = "later issue: the official names, in a module of their own"
WARM = "later issue: many sessions, and processes kept warm"
TRACES = "later issue: traces"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What we have instead: a dotted name of ours, and what shows it."""

    ours: str
    marks: tuple[str, ...] = ()
    """Marks that show it, in the place of its own."""
    by: str = ""
    """A dotted name of ours that gives or takes it: whatever exercises that shows this too."""
