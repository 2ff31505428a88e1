"""Names that are imported on first use.

For a package `__init__` that only gathers names. Type checkers see its names as plain imports under
`TYPE_CHECKING`; at run time it has `__getattr__` and `__dir__` from here. Knows no package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

ModuleHooks = tuple[Callable[[str], object], Callable[[], list[str]]]
"""A module's `__getattr__` and `__dir__`."""


def by_name(module: str, homes: Mapping[str, tuple[str, ...]], *, below: str = "") -> ModuleHooks:
    """Return the `__getattr__` and `__dir__` of a module that imports each name on first use.

    `homes` maps a submodule to the names that come from it. Submodules are those of `module`, or of
    the package `below`.
    """
    room = vars(sys.modules[module])
    home_of = {name: home for home, names in homes.items() for name in names}

    def look_up(name: str) -> object:
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
