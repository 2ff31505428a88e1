"""Values inside values: how a field that holds some is read, and how they learn where they stand.

Knows no message and no block. A class that holds one value of a kind, or many, names the reader
of its field in `READERS`, and calls `adopt_inside` in `adopt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from steersman import _json
from steersman._values import Wire, read_leniently

__all__ = ["Reader", "adopt_inside", "by_tag", "many", "named", "one"]

Reader = Callable[[Any], list[Any]]
"""What is made of a field that does not fit its type: a list with the value, or an empty one."""


def one(cls: type[Wire]) -> Reader:
    """Read one `cls`, each of its fields that fits; nothing where there is no object."""
    return lambda found: [read_leniently(cls, found)] if _json.is_object(found) else []


def many(cls: type[Wire]) -> Reader:
    """Read a list of `cls`. What is no object becomes one of defaults, so that places are kept."""
    return lambda found: [[_one_of(cls, each) for each in found]] if _json.is_array(found) else []


def named(cls: type[Wire]) -> Reader:
    """Read an object whose values are each a `cls`."""
    return lambda found: (
        [{name: _one_of(cls, each) for name, each in found.items()}]
        if _json.is_object(found)
        else []
    )


def by_tag(classes: Iterable[type[Wire]]) -> dict[str, type[Wire]]:
    """Make a table: the CLI's word to the class."""
    return {str(cls.__struct_config__.tag): cls for cls in classes}


def adopt_inside(parent: Wire) -> None:
    """Tell every value in the fields of `parent` where it stands; look at all of them."""
    for name, wire_name in zip(
        parent.__struct_fields__, parent.__struct_encode_fields__, strict=True
    ):
        _adopt(parent, getattr(parent, name), wire_name)


def _adopt(parent: Wire, held: object, place: str) -> None:
    if isinstance(held, Wire):
        held.came_from((parent, (place,)))
        return
    inside = (
        held.items() if _json.is_object(held) else enumerate(held) if _json.is_array(held) else ()
    )
    for step, each in cast("Any", inside):
        if isinstance(each, Wire):
            each.came_from((parent, (place, step)))


def _one_of(cls: type[Wire], found: Any) -> Wire:
    return read_leniently(cls, found if _json.is_object(found) else {})
