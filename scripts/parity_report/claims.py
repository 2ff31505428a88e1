"""Which name of ours corresponds to an official one, and which marks show that it is tested."""

from __future__ import annotations

import dataclasses
import pkgutil
from dataclasses import dataclass, is_dataclass
from fnmatch import fnmatchcase

from scripts.parity_report import ours
from scripts.parity_report.instead import Elsewhere
from scripts.parity_report.marks import mark_of
from scripts.parity_report.reasons import ELSEWHERE
from steersman._launch.environment import ALWAYS, INHERITED, MARKS
from steersman.hooks.registry import NEVER_CALLED
from steersman.options import Options
from steersman.options.table import TABLE, EnvVariable

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
    names: tuple[str, ...] = ()
    """Marks of the row's own field. A test must have one of them, beside one of `marks`."""


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
        names = field_marks(owner, name)
        claim = member_claim(owner, name)
        return Claim(claim.ours, (mark_of(owner),), names) if names else claim
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
    marks = (*(found.marks or claim.marks), *more)
    return Claim(claim.ours, marks, found.names or claim.names or _own(found, claim, more))


def _own(found: Elsewhere, claim: Claim, more: tuple[str, ...]) -> tuple[str, ...]:
    """Return the marks of a replacement that a test must have which does not follow from it.

    A test that is named by hand must name the replacement; one of what returns it, a field of it.
    """
    if any(mark.startswith("test:") for mark in found.marks):
        return (*claim.marks, *more)
    thing = pkgutil.resolve_name(found.ours)
    fields = attributes_of(thing) if more and isinstance(thing, type) else ()
    return (*claim.marks, *fields) if fields else ()


def attributes_of(cls: type) -> tuple[str, ...]:
    """Return the marks of the fields of a class; none if it has none."""
    return tuple(f".{each}" for each in getattr(cls, "__struct_fields__", ()) or _fields(cls))


def field_marks(owner: type, name: str) -> tuple[str, ...]:
    """Return the marks of one field: as an attribute and as a keyword; none if it is no field."""
    known = getattr(owner, "__struct_fields__", ()) or _fields(owner)
    if owner is Options or name not in known:
        return ()
    return (f".{name}", f"field:{mark_of(owner)}.{name}")


def _fields(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(cls)) if is_dataclass(cls) else ()


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
    option = next((each for each, spec in TABLE.items() if spec.travels == EnvVariable(name)), None)
    if option is not None:
        return Claim(f"set by `steersman.Options.{option}`", (f"option:{option}",))
    return Claim("set when needed", marks) if name in ours.texts_in_source(LAUNCH) else None
