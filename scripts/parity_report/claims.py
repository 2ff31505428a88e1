"""Which name of ours corresponds to an official one, and which marks show that it is tested."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from fnmatch import fnmatchcase

from scripts.parity_report import ours
from scripts.parity_report.marks import mark_of
from scripts.parity_report.reasons import ELSEWHERE
from steersman._launch.environment import ALWAYS, INHERITED, MARKS
from steersman.hooks.registry import NEVER_CALLED
from steersman.options import Options

__all__ = [
    "Claim",
    "class_claim",
    "elsewhere_claim",
    "event_claim",
    "member_claim",
    "official_claim",
    "public_claim",
    "resolved_claim",
    "variable_claim",
    "verb_claim",
]

LAUNCH = "steersman._launch."
"""Where the variables of the CLI are set."""


LOOKS_THE_SAME = "tests/house/test_compat.py::test_every_official_name_is_here_and_looks_the_same"
"""The test that compares each name of `steersman.compat` with that of the official package."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Something of ours, and the marks of a test that exercises it."""

    ours: str
    marks: tuple[str, ...]

    def shown_also_by(self, mark: str) -> Claim:
        """Return this claim with one more mark."""
        return Claim(self.ours, (*self.marks, mark))


def class_claim(cls: type | None) -> Claim | None:
    """Return the claim for a class, if there is one."""
    if cls is None:
        return None
    return Claim(f"`{ours.dotted_name(cls)}`", (mark_of(cls), f"each:{mark_of(cls)}"))


def event_claim(cls: type | None) -> Claim | None:
    """Return the claim for a hook event, unless `Hooks.on` refuses it."""
    return None if cls in NEVER_CALLED else class_claim(cls)


def verb_claim(cls: type, subtype: str) -> Claim:
    """Return the claim for a verb, shown by its class or by the session method that sends it."""
    methods = ours.methods_that_call(cls, subtype)
    names = [ours.dotted_name(cls), *(f"steersman.Session.{each}" for each in methods)]
    marks = (mark_of(cls), f"each:{mark_of(cls)}", *(f".{each}" for each in methods))
    return Claim(", ".join(f"`{each}`" for each in names), marks)


def member_claim(owner: type, name: str) -> Claim:
    """Return the claim for an option, a method or a property."""
    dotted = f"{ours.dotted_name(owner)}.{name}"
    return Claim(f"`{dotted}`", (f"option:{name}" if owner is Options else f".{name}",))


def public_claim(*names: str) -> Claim | None:
    """Return the claim for the first of `names` that is a public class or function."""
    found = [each for name in names for each in ours.public().get(name, [])]
    return Claim(f"`{ours.dotted_name(found[0])}`", (mark_of(found[0]),)) if found else None


def resolved_claim(dotted: str) -> Claim | None:
    """Return the claim for a dotted name, which may be a field or a property."""
    owner_name, _, name = dotted.rpartition(".")
    try:
        owner, thing = pkgutil.resolve_name(owner_name), pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return None
    if isinstance(owner, type):
        return member_claim(owner, name)
    if isinstance(thing, type):
        return class_claim(thing)
    return Claim(f"`{dotted}`", (mark_of(thing),))


def official_claim(dotted: str) -> Claim | None:
    """Return the claim for an official name in `steersman.compat`.

    One test compares every such name with the official package. Aliases and constants have no mark
    of their own.
    """
    try:
        thing = pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return None
    is_ours = str(getattr(thing, "__module__", "")).startswith("steersman.")
    marks = (mark_of(thing),) if is_ours else ()
    return Claim(f"`{dotted}`", (*marks, f"test:{LOOKS_THE_SAME}"))


def elsewhere_claim(section: str, key: str) -> Claim | None:
    """Return the claim for the replacement in the hand-kept table."""
    found = ELSEWHERE.get(section, {}).get(key)
    claim = None if found is None else resolved_claim(found.ours)
    if found is None or claim is None:
        return None
    giver = resolved_claim(found.by) if found.by else None
    more = () if giver is None else giver.marks
    return Claim(claim.ours, (*(found.marks or claim.marks), *more))


def variable_claim(name: str) -> Claim | None:
    """Return the claim for what happens to an environment variable."""
    marks = (f"text:{name}", f"option:{name}")
    home = "name:steersman._launch.environment."
    if name in ALWAYS:
        return Claim("always set", (*marks, f"{home}ALWAYS"))
    if name in MARKS:
        return Claim("never passed on", (*marks, f"{home}MARKS"))
    if any(fnmatchcase(name, pattern) for pattern in INHERITED):
        return Claim("passed on", marks)
    return Claim("set when needed", marks) if name in ours.texts_in_source(LAUNCH) else None
