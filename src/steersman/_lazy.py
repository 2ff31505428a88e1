"""Rooms whose files are read when somebody asks for what is in them.

For an `__init__` that only gathers. It tells type checkers what there is by plain imports under
`TYPE_CHECKING`, and takes its `__getattr__` and `__dir__` from here. Knows no room.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["by_name"]

Doors = tuple[Callable[[str], Any], Callable[[], list[str]]]
"""A module's `__getattr__` and `__dir__`."""


def by_name(module: str, homes: Mapping[str, tuple[str, ...]], *, below: str = "") -> Doors:
    """For a module that says which file each name comes from: only that file is read.

    The files are its own, or those `below` another package.
    """
    room = vars(sys.modules[module])
    home_of = {name: home for home, names in homes.items() for name in names}

    def look_up(name: str) -> Any:
        if name in home_of:
            home = import_module(f"{below or module}.{home_of[name]}")
            value = room[name] = getattr(home, name)
            return value
        if name in homes:
            return import_module(f"{below or module}.{name}")
        raise _no_attribute(module, name)

    def list_names() -> list[str]:
        return sorted({*room, *home_of})

    return look_up, list_names


def _no_attribute(package: str, name: str) -> AttributeError:
    return AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
