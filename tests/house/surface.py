"""The public surface: every public name, what it is, and how it is called.

`surface.txt` holds it in a form that a person reviews, and `test_surface` compares. After a change:

    python -m tests.house.surface --update

writes it anew. A name that is gone or is called in another way must be named in `changelog.d`.
`--journals NAME` prints the journal of a kept scenario, and `--update-journals` writes all of them.

A room is a package without an underscore in its path, or a module that a page names.
Annotations are not compared: equal types have several names.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import logging
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin

import steersman

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "surface.txt"
FRAGMENTS = ROOT / "changelog.d"

HEAD = """\
# Every public name, room by room: how it is made and what it is, its attributes, its methods.
# Parameters of the constructor and what a public base class has are not repeated.
# Written by `python -m tests.house.surface --update`; never by hand."""

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
        *("testing.cli_releases", "testing.script", "testing.scripted.cli", "sessions.aio"),
    )
)
"""Modules inside a room that a page names as a whole."""

NOT_PROMISED: Mapping[str, str] = {
    "steersman.cli": "a command; what it prints is promised elsewhere",
    "steersman.mirror": "a part of a session with a store; callers have `session_store=`",
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

ALSO_PROMISED = (
    *("messages.builtin", "messages.streaming", "journal.blocks", "journal.calls"),
    *("journal.decisions", "journal.files", "journal.replaying", "journal.snapshot"),
    *("journal.tasks", "transports.command", "transports.memory", "transports.subprocess"),
    *("transports.memory.MemoryTransport", "transports.subprocess.SubprocessTransport"),
    *("tools.mcp_instance", "tools.mcp_remote", "observe.record", "testing.cassettes"),
    *("testing.faults", "testing.older_cli", "testing.script", "testing.scripted.cli"),
    "testing.cli_releases",
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


def surface() -> Surface:
    """Describe every public name of every room, and what pages name outside of rooms."""
    found: Surface = {}
    modules = {name: importlib.import_module(name) for name in rooms()}
    for room, module in modules.items():
        public = sorted(getattr(module, "__all__", ()))
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
    """Return the object of a name; of a module and a function it depends on imports."""
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
    """The nearest classes that an `except` or an `isinstance` may name: ours, and Python's own."""
    named = [
        each
        for each in cls.__mro__[1:]
        if each in public_classes() or (each.__module__ == "builtins" and each is not object)
    ]
    return [
        each.__name__
        for at, each in enumerate(named)
        if not any(each in nearer.__mro__ for nearer in named[:at])
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


# --- Written down, and compared ----------------------------------------------------------

Inherited = Callable[[Iterable[str]], set[tuple[str, str]]]


def written(found: Surface) -> str:
    """Return the surface as text: a room, its names, and what each has, a line for each call.

    A name that an earlier room has as well stands there; the other room lists it.
    """
    lines, seen = [HEAD], dict[str, str]()
    classes = {
        name: described["members"]
        for names in found.values()
        for name, described in names.items()
        if isinstance(described, dict) and "members" in described
    }

    def inherited(bases: Iterable[str]) -> set[tuple[str, str]]:
        return {member for base in bases for member in classes.get(base, {}).items()}

    for room, names in found.items():
        lines += ["", f"[{room}]"]
        same: dict[str, list[str]] = {}
        for name, described in names.items():
            block = "\n".join(_block(name.removeprefix("steersman."), described, inherited))
            if (first := seen.setdefault(f"{name} {block}", room)) == room:
                lines.append(block)
            else:
                same.setdefault(first, []).append(name)
        for first, shared in same.items():
            lines += _wrapped(f"from {first}: ", shared)
    return "\n".join((*lines, ""))


def _block(name: str, described: Description, inherited: Inherited) -> Iterator[str]:
    if isinstance(described, str):
        yield _called(name, described)
        return
    if "required" in described:
        optional = (f"{key}?" for key in described["optional"])
        yield from _wrapped(f"{name}: keys ", (*described["required"], *optional))
        return
    above = inherited(described["is"])
    members: dict[str, str] = {
        member: kind
        for member, kind in described["members"].items()
        if (member, kind) not in above and not member.startswith("__")
    }
    new: str = described.get("new", "")
    given = set(re.findall(r"\w+", new))
    plain = [
        member if kind in {"attribute", "field"} else f"{member}={kind.removeprefix('value ')}"
        for member, kind in members.items()
        if not _is_call(kind) and member not in given
    ]
    plain += [f"{member}={value!r}" for member, value in described.get("values", {}).items()]
    bases = f" is {', '.join(described['is'])}" if described["is"] else ""
    yield from _wrapped(f"{name}{new}{bases}{': ' if plain else ''}", plain)
    for member, kind in members.items():
        if _is_call(kind):
            yield f"  {_called(member, kind)}"


def _is_call(kind: str) -> bool:
    return "def (" in kind


def _called(name: str, described: str) -> str:
    """Return `name(parameters)` for a callable, with what kind of callable it is before it."""
    kind, is_call, parameters = described.partition("def ")
    return (
        f"{kind}{name}{parameters.replace('(self, ', '(').replace('(self)', '()')}"
        if is_call
        else f"{name} = {described}"
    )


def _wrapped(begin: str, words: Iterable[str]) -> list[str]:
    return textwrap.wrap(
        begin + ", ".join(words),
        width=140,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def described_in(text: str) -> dict[tuple[str, str], list[str]]:
    """Return the lines of each name of each room, as `written` wrote them."""
    found: dict[tuple[str, str], list[str]] = {}
    room, name = "", ""
    for line in text.splitlines():
        if line.startswith("["):
            room = line.strip("[]")
        elif line.startswith("from "):
            shared, name = line.partition(": ")[2].rstrip(",").split(", "), "from"
            found |= {(room, each): [] for each in shared}
        elif line.startswith("    ") and name == "from":
            found |= {(room, each): [] for each in line.strip().rstrip(",").split(", ")}
        elif line.startswith(" "):
            found[room, name].append(line)
        elif line and not line.startswith("#"):
            (name,) = re.findall(r"[\w.]+(?=$|[(:]| is | = )", line.removeprefix("async def "))[:1]
            found[room, name] = [line]
    return found


def unannounced(before: str, now: str, fragments: str) -> list[str]:
    """Return the names that are gone or described otherwise, and that no fragment names.

    A name that only gained something, such as a parameter with a default, is not among them.
    """
    had, has = described_in(before), described_in(now)
    changed = {
        f"{room}.{name}": name.rpartition(".")[2]
        for (room, name), lines in had.items()
        if (room, name) not in has or not _pieces(lines) <= _pieces(has[room, name])
    }
    return [path for path, name in changed.items() if not re.search(rf"\b{name}\b", fragments)]


def _pieces(lines: Iterable[str]) -> set[str]:
    return set(re.split(r"[,:()\s]+", "".join(f"{line.strip()} " for line in lines)))


def missing(paths: Iterable[str]) -> list[str]:
    """Paths that lead nowhere."""
    return [path for path in paths if _resolved(path) is None]


def update() -> int:
    """Write the surface of now, unless the changelog does not name what was lost."""
    now = written(surface())
    before = DATA.read_text(encoding="utf-8") if DATA.exists() else ""
    fragments = "\n".join(each.read_text(encoding="utf-8") for each in FRAGMENTS.glob("*.md"))
    if lost := unannounced(before, now, fragments):
        sys.stdout.write(f"No fragment in {FRAGMENTS.name} names what is gone or changed:\n")
        sys.stdout.write("\n".join((*lost, "")))
        return 1
    DATA.write_text(now, encoding="utf-8")
    return 0


def main(arguments: list[str]) -> int:
    """Update the data, or print what it would be."""
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
        return update()
    sys.stdout.write(written(surface()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
