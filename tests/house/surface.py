"""The public surface: every public name, what it is, and how it is called.

`surface.json` holds it as it was promised, and `test_surface` compares. After adding to it:

    python -m tests.house.surface --update

adds what is new. It refuses to remove or change a promise; that takes `--break-promises`.
`--journals NAME` prints the journal of a kept scenario, and `--update-journals` writes all of them.

A room is a package without an underscore in its path, or a module that a page names.
Annotations are not compared: equal types have several names.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import json
import logging
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin

import steersman

__all__ = ["broken_promises", "documented", "kept_surface", "surface"]

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "surface.json"

PAGES = "pages"
"""The room of what pages name and no other room has."""

Description = str | dict[str, Any]
Surface = dict[str, dict[str, Description]]

ROOMS = ("agent", "errors", "ports", "prompts")
"""Public rooms that are one file."""

NAMED_ALONE = tuple(
    f"steersman.{path}"
    for path in (
        *("journal.decisions", "journal.files", "journal.replaying", "tools.mcp_remote"),
        *("testing.cassettes", "testing.executable", "testing.faults", "testing.older_cli"),
        *("testing.script", "testing.scripted.cli", "sessions.aio"),
    )
)
"""Modules inside a room that a page names as a whole."""

NOT_PROMISED: Mapping[str, str] = {
    "steersman.cli": "a command; what it prints is promised elsewhere",
    "steersman_conformance": "becomes a distribution of its own",
}
"""Rooms, with all that is below them, that are left out."""

MADE_BY_US = frozenset({"Session", "Turn", "Checkpoint", "Query", "Snapshot"})
"""Classes whose constructors only this library calls."""

PRIVATE_IN_ALL_BUT_NAME = frozenset(
    {
        # Set where a message was read from.
        *("came_from", "came_on", "stands_at", "stands_on", "adopt", "place"),
        # How a struct is read, and what a verb is answered with.
        *("READERS", "ANSWER"),
    }
)
BETWEEN_PARTS: Mapping[str, frozenset[str]] = {
    "TaskRegistry": frozenset({"hear", "record", "lose"}),
    "Watch": frozenset({"tell", "notify"}),
    "Journal": frozenset({"append_partials", "append_pieces", "forgotten"}),
}
"""Names that parts of this library use with each other, and no page names."""

RENAMED = frozenset({"snapshot_of"})
"""Names in an `__all__` that no page names, and that are being renamed."""

ALSO_PROMISED = (
    *("messages.builtin", "messages.streaming", "journal.blocks", "journal.calls"),
    *("journal.decisions", "journal.files", "journal.replaying", "journal.snapshot"),
    *("journal.tasks", "transports.command", "transports.memory", "transports.subprocess"),
    *("transports.memory.MemoryTransport", "transports.subprocess.SubprocessTransport"),
    *("tools.mcp_instance", "tools.mcp_remote", "observe.record", "testing.cassettes"),
    *("testing.faults", "testing.older_cli", "testing.script", "testing.scripted.cli"),
)
"""Paths that the pages name by their last part."""

PROTOCOLS = (
    *("__call__", "__await__", "__aiter__", "__anext__", "__iter__", "__next__", "__len__"),
    *("__contains__", "__getitem__", "__enter__", "__exit__", "__aenter__", "__aexit__"),
    *("__bool__", "__add__", "__or__", "__and__"),
)


# --- Rooms and pages ---------------------------------------------------------------------


def documented() -> list[str]:
    """Every public dotted path that a page names, or that a program on it imports."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {path for page in pages for path in _paths_in(page.read_text(encoding="utf-8"))}
    found |= {f"steersman.{path}" for path in ALSO_PROMISED}
    return sorted(path for path in found if "._" not in path and not _is_left_out(path))


def _paths_in(text: str) -> Iterator[str]:
    yield from re.findall(r"(?<![\w/.-])steersman(?:\.[A-Za-z_]\w*)+", text)
    for module, names in re.findall(
        r"^\s*from (steersman[\w.]*) import (\([^)]*\)|[^#\n]*)", text, re.MULTILINE
    ):
        for name in re.findall(r"(\w+)(?: as \w+)?", names):
            yield f"{module}.{name}"


def _is_left_out(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}.") for each in NOT_PROMISED)


def rooms() -> list[str]:
    """The modules whose `__all__` is a promise: packages, and modules that a page names alone."""
    packages = [
        each.name
        for each in pkgutil.walk_packages(steersman.__path__, "steersman.")
        if each.ispkg and "._" not in each.name and not _is_left_out(each.name)
    ]
    files = [f"steersman.{name}" for name in ROOMS]
    return sorted({"steersman", *packages, *files, *NAMED_ALONE})


def _resolved(path: str) -> object:
    """What a path leads to; None if it leads nowhere."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None


def surface(promised_rooms: Iterable[str] = ()) -> Surface:
    """Describe every public name of every room, and what pages name outside of rooms.

    A promised room that is no longer there is left out.
    """
    found: Surface = {}
    modules = {name: _resolved(name) for name in sorted({*rooms(), *promised_rooms} - {PAGES})}
    for room, module in modules.items():
        if module is not None:
            public = sorted(set(getattr(module, "__all__", ())) - RENAMED)
            found[room] = {name: describe(_public(module, name)) for name in public}
    found[PAGES] = {
        path: describe(thing)
        for path in documented()
        if path.rpartition(".")[0] not in modules and path not in modules
        if not isinstance(thing := _resolved(path), types.ModuleType)
        if not isinstance(_resolved(path.rpartition(".")[0]), type)
    }
    return found


def _public(module: Any, name: str) -> object:
    """Return what a name is, which for that of a module and of a function depends on imports."""
    path = f"{module.__name__}.{name}"
    return importlib.import_module(path) if path in NAMED_ALONE else getattr(module, name)


@cache
def public_classes() -> frozenset[type[Any]]:
    """Every class that some room names."""
    modules = [importlib.import_module(name) for name in rooms()]
    return frozenset(
        thing
        for module in modules
        for name in getattr(module, "__all__", ())
        if isinstance(thing := getattr(module, name), type)
    )


# --- One name ----------------------------------------------------------------------------


def describe(thing: object) -> Description:
    """What it is, and how it is called or what it consists of."""
    if isinstance(thing, types.ModuleType):
        return "module"
    if isinstance(thing, type) and get_origin(thing) is None:
        return _class(thing)
    if inspect.isroutine(thing):
        return _function(thing)
    if (alias := _alias(thing)) is not None:
        return alias
    return f"value {_value(thing)}"


def _function(function: Callable[..., Any]) -> str:
    asynchronous = inspect.iscoroutinefunction(function)
    return f"{'async ' if asynchronous else ''}def {_signature(function)}"


def _signature(call: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return "(...)"
    plain = [
        each.replace(
            name=NOT_BY_NAME.get(each.kind, each.name),
            annotation=inspect.Parameter.empty,
            default=each.default
            if each.default is inspect.Parameter.empty
            else _Shown(_value(each.default)),
        )
        for each in signature.parameters.values()
        if not each.name.startswith("_") or each.kind in NOT_BY_NAME
    ]
    return str(inspect.Signature(plain)).replace(" = ", "=")


NOT_BY_NAME: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}
"""Parameters that no caller names."""


class _Shown:
    """A default in the way it is compared."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _value(value: object) -> str:
    """A plain value as it is written; a path of this machine, and anything else, by its type."""
    match value:
        case str() if value.startswith(sys.prefix):
            return "<path>"
        case None | bool() | int() | float() | str() | bytes() if not isinstance(value, enum.Enum):
            return repr(value)
        case enum.Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple():
            return f"({', '.join(map(_value, cast('tuple[object, ...]', value)))})"
        case frozenset():
            return f"{{{', '.join(sorted(map(_value, cast('frozenset[object]', value))))}}}"
        case _:
            name: str = getattr(value, "__name__", type(value).__name__)
            return "<...>" if name.startswith("_") else f"<{name}>"


def _alias(thing: object) -> str | None:
    """A union or a `Literal` by its members; another alias by its origin."""
    origin = get_origin(thing)
    if origin is Literal:
        return f"Literal[{', '.join(sorted(map(repr, get_args(thing))))}]"
    if origin in (Union, types.UnionType):
        members = sorted({_member(each) for each in get_args(thing)})
        return f"Union[{', '.join(members)}]"
    if origin is not None:
        return f"alias of {getattr(origin, '__name__', origin)}"
    if isinstance(thing, typing.TypeVar):
        return "TypeVar"
    return "Any" if thing is Any else None


def _member(member: object) -> str:
    if (alias := _alias(member)) is not None:
        return alias
    name = getattr(member, "__name__", type(member).__name__)
    return "..." if name.startswith("_") else name


# --- A class -----------------------------------------------------------------------------


def _class(cls: type[Any]) -> Description:
    found: dict[str, Any] = {"is": _ancestors(cls)}
    if issubclass(cls, enum.Enum):
        found["values"] = {name: each.value for name, each in cls.__members__.items()}
    elif typing.is_typeddict(cls):
        keys = {key: getattr(cls, f"__{key}_keys__") for key in ("required", "optional")}
        return {key: sorted(names) for key, names in keys.items()}
    elif _is_made_by_callers(cls):
        found["new"] = _signature(cls)
    members = {name: _attribute(cls, name) for name in _member_names(cls)}
    found["members"] = dict.fromkeys(_set_at_birth(cls), "attribute") | members
    return found


def _ancestors(cls: type[Any]) -> list[str]:
    """What an `except` or an `isinstance` may rely on: public classes of ours, and Python's own."""
    return [
        each.__name__
        for each in cls.__mro__[1:]
        if each in public_classes() or (each.__module__ == "builtins" and each is not object)
    ]


def _is_ours(cls: type[Any]) -> bool:
    return cls.__module__.partition(".")[0] == "steersman"


def _is_made_by_callers(cls: type[Any]) -> bool:
    if cls.__name__ in MADE_BY_US or getattr(cls, "_is_protocol", False):
        return False
    makers = [base for base in cls.__mro__ if {"__init__", "__new__"} & vars(base).keys()]
    return hasattr(cls, "__struct_fields__") or bool(makers and _is_ours(makers[0]))


def _member_names(cls: type[Any]) -> list[str]:
    names = {
        name
        for base in cls.__mro__
        if _is_ours(base)
        for name in vars(base)
        if not name.startswith("_") or name in PROTOCOLS
    }
    if issubclass(cls, enum.Enum):
        names -= set(cls.__members__)
        names -= {"__hash__", "__str__"}
    if _is_value(cls):
        names -= {"__eq__", "__hash__"}
    return sorted(name for name in names if not _is_private(cls, name))


def _is_value(cls: type[Any]) -> bool:
    return hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__struct_fields__")


def _is_private(cls: type[Any], name: str) -> bool:
    inside = BETWEEN_PARTS.get(cls.__name__, frozenset())
    return name in PRIVATE_IN_ALL_BUT_NAME or name in inside


def _attribute(cls: type[Any], name: str) -> str:
    raw = inspect.getattr_static(cls, name)
    if isinstance(raw, property):
        return "attribute"
    if isinstance(raw, classmethod | staticmethod):
        kind = "classmethod" if isinstance(raw, classmethod) else "staticmethod"
        return f"{kind} {_function(getattr(cls, name))}"
    if inspect.isroutine(raw) and callable(raw):
        return _function(raw)
    if _is_value(cls) and (name in _fields(cls)):
        return "field"
    if inspect.isdatadescriptor(raw):
        return "attribute"
    return f"value {_value(raw)}"


def _fields(cls: type[Any]) -> set[str]:
    fields: Iterable[str] = getattr(cls, "__dataclass_fields__", ())
    return {*fields, *getattr(cls, "__struct_fields__", ())}


def _set_at_birth(cls: type[Any]) -> list[str]:
    """Public attributes that `__init__` sets."""
    found: set[str] = set()
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if _is_ours(base) and isinstance(init, types.FunctionType):
            found |= set(_assigned(init))
    return sorted(name for name in found if not _is_private(cls, name))


def _assigned(init: types.FunctionType) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
    except OSError:  # a dataclass writes its own
        return
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and not node.attr.startswith("_")
        ):
            yield node.attr


# --- Kept and compared -------------------------------------------------------------------


def kept_surface() -> dict[str, Any]:
    """The data: `rooms`, and `documented` paths."""
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def broken_promises(kept: Surface, now: Surface) -> list[str]:
    """Names that were promised and are no longer there, or no longer do what they did."""
    return [
        f"{room}.{name}: {_difference(described, now.get(room, {}).get(name))}"
        for room, names in kept.items()
        for name, described in names.items()
        if not is_kept(described, now.get(room, {}).get(name))
    ]


def additions(kept: Surface, now: Surface) -> list[str]:
    """Public names that the data does not have, or not with all that they have now."""
    return [
        f"{room}.{name}: {_difference(before, described)}" if before else f"{room}.{name}"
        for room, names in now.items()
        for name, described in names.items()
        if (before := kept.get(room, {}).get(name)) != described
        and (before is None or is_kept(before, described))
    ]


def is_kept(before: Any, now: Any) -> bool:
    """Whether a description only grew: members, optional parameters, values of an enum."""
    if isinstance(before, dict) and isinstance(now, dict):
        promise, given = cast("dict[str, Any]", before), cast("dict[str, Any]", now)
        return promise.get("required") == given.get("required") and all(
            is_kept(each, given.get(name)) for name, each in promise.items()
        )
    if isinstance(before, list) and isinstance(now, list):
        return set(cast("list[str]", before)) <= set(cast("list[str]", now))
    if isinstance(before, str) and isinstance(now, str) and before.endswith(")"):
        return before.partition("(")[0] == now.partition("(")[0] and _accepts(
            _parameters(before), _parameters(now)
        )
    return bool(before == now)


def _parameters(signature: str) -> list[str]:
    """The parameters as they are written, with `*` and `/`."""
    inside = signature.partition("(")[2][:-1]
    return [each.strip() for each in re.findall(r"(?:[^,(\[{]|[(\[{][^)\]}]*[)\]}])+", inside)]


def _accepts(before: list[str], now: list[str]) -> bool:
    """Whether every call of before still works: new parameters are optional and come later."""
    new = [each for each in now if each not in before]
    if any("=" not in each and not each.startswith("*") for each in new if each != "*"):
        return False
    by_position = before[: _first_star(before)]
    kept = [each for each in now if each in before]
    return kept == before and now[: _first_star(now)][: len(by_position)] == by_position


def _first_star(parameters: list[str]) -> int:
    starred = [at for at, each in enumerate(parameters) if each.startswith("*")]
    return min(starred, default=len(parameters))


def _difference(before: Description, now: Description | None) -> str:
    if now is None:
        return "is no longer there"
    one, other = (json.dumps(each, indent=1).splitlines() for each in (before, now))
    changed = [line for line in unified_diff(one, other, n=0, lineterm="") if line[:2] != "@@"]
    return " ".join(changed[2:])


def missing(paths: Iterable[str]) -> list[str]:
    """Paths that lead nowhere."""
    return [path for path in paths if _resolved(path) is None]


def update(*, may_break: bool) -> int:
    """Write the surface of now; only additions unless promises may be broken."""
    kept: dict[str, Any] = kept_surface() if DATA.exists() else {"rooms": {}, "documented": []}
    now, pages = surface(kept["rooms"]), documented()
    if not may_break:
        # A page may stop naming something; the promise stays.
        now[PAGES] = {**kept["rooms"].get(PAGES, {}), **now[PAGES]}
    broken = broken_promises(kept["rooms"], now) + missing(kept["documented"])
    if broken and not may_break:
        sys.stdout.write("\n".join(("These promises would be broken:", *broken, "")))
        return 1
    paths: list[str] = pages if may_break else sorted({*kept["documented"], *pages})
    data: dict[str, Any] = {"rooms": now, "documented": paths}
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    return 0


def main(arguments: list[str]) -> int:
    """Update the data, or print what is not in it."""
    logging.disable()
    if "--journals" in arguments:
        from tests.house.scenario_journals import played  # noqa: PLC0415

        sys.stdout.write("\n".join((*played(arguments[-1]), "")))
        return 0
    if "--update-journals" in arguments:
        from tests.house.scenario_journals import keep  # noqa: PLC0415

        keep()
        return 0
    if "--update" in arguments:
        return update(may_break="--break-promises" in arguments)
    kept = kept_surface()["rooms"]
    now = surface(kept)
    sys.stdout.write("\n".join((*broken_promises(kept, now), *additions(kept, now), "")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
