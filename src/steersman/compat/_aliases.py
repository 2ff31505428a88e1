"""Lets `claude_agent_sdk` mean `steersman.compat` in this process, for every import from now on.

An import hook, which comes before all others. Each module of the official package is a module of
its own here, with the official names and specs, over one of ours: what is read of it is ours, and
what is set on it is set on ours. Private modules that are not in `PRIVATE` raise
`ModuleNotFoundError`, also where the official package is installed: a program with half of each
would fail later, and worse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import FunctionType, ModuleType
from typing import Any, cast

import steersman.compat
from steersman.compat._warnings import warn

OFFICIAL = "claude_agent_sdk"
DISTRIBUTION = "claude-agent-sdk"
QUERY = f"{OFFICIAL}.query"
"""A module and a function of one name: `claude_agent_sdk.query` is the function."""
PUBLIC = {
    OFFICIAL: "steersman.compat",
    f"{OFFICIAL}.types": "steersman.compat.types",
    f"{OFFICIAL}.client": "steersman.compat.client",
    QUERY: "steersman.compat.client",
    f"{OFFICIAL}.testing": "steersman.compat.testing",
    f"{OFFICIAL}.testing.session_store_conformance": "steersman.compat.testing",
}
"""The modules of the official package whose names have no underscore, and where ours are."""
PRIVATE = {
    # `MessageParseError`, which the package itself does not name.
    f"{OFFICIAL}._errors": "steersman.compat._errors",
    f"{OFFICIAL}._internal": "",
    # `parse_message`, which Braintrust calls and which programs replace.
    f"{OFFICIAL}._internal.message_parser": "steersman.compat.parsing",
    # `InternalClient.process_query`, which Weave and Respan wrap.
    f"{OFFICIAL}._internal.client": "steersman.compat.client",
    # `Transport`, the base of transports that were written before it was public.
    f"{OFFICIAL}._internal.transport": "steersman.compat.transport",
    f"{OFFICIAL}._internal.transport.subprocess_cli": "steersman.compat.transport",
    # `fold_session_summary`, which stores of their own call.
    f"{OFFICIAL}._internal.session_summary": "steersman.compat.sessions",
}
"""Private modules that published programs use, and why. One comes in when a program is named."""
MODULES = {**PUBLIC, **PRIVATE}
PACKAGES = frozenset(name.rpartition(".")[0] for name in MODULES) - {QUERY}
HOMES = {
    "steersman.compat._errors": f"{OFFICIAL}._errors",
    "steersman.compat.client": f"{OFFICIAL}.client",
    "steersman.compat.transport": f"{OFFICIAL}._internal.transport",
    "query": QUERY,
    "InternalClient": f"{OFFICIAL}._internal.client",
}
"""The official module of a name, or of what a module of ours defines; others are of the package."""
LOCAL = frozenset(
    {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__path__", "__file__"}
)
"""What a module has of its own."""


def install() -> None:
    """Let imports of the official package give ours, from now on. A second call changes nothing.

    Warns if the official package was imported before: what has its names keeps them.
    """
    if any(isinstance(each, OfficialNames) for each in sys.meta_path):
        return
    sys.meta_path.insert(0, OfficialNames())
    before = [each for each in sys.modules if each.partition(".")[0] == OFFICIAL]
    if OFFICIAL in before:
        warn(f"{OFFICIAL} was imported before steersman.compat.install(), which comes first")
    for name in before:
        del sys.modules[name]


class OfficialNames(MetaPathFinder):
    """Finds the modules of the official package in ours."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the signature of all such hooks
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None for what is not of the official package."""
        if fullname.partition(".")[0] != OFFICIAL:
            return None
        if fullname not in MODULES:
            raise ModuleNotFoundError(_refusal(fullname), name=fullname)
        return ModuleSpec(fullname, _Loader(), is_package=fullname in PACKAGES)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """Return what instrumentation asks for: the release whose names these are."""
        wanted = None if context is None else context.name
        if wanted is not None and wanted.lower().replace("_", "-") == DISTRIBUTION:
            return [_Release()]
        return []


class _Loader(Loader):
    """Makes a module that is named as an official one and has the names of ours."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return Alias(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Load our module, and give the classes of messages their official one."""
        if MODULES[module.__name__]:
            module.__file__ = import_module(MODULES[module.__name__]).__file__
        if module.__name__ == OFFICIAL:
            types = import_module(MODULES[f"{OFFICIAL}.types"])
            for name in types.__all__:
                _rename(getattr(types, name), f"{OFFICIAL}.types")
            # Before anything imports it: an import binds the name in the package otherwise.
            import_module(QUERY)


class Alias(ModuleType):
    """A module of the official package: names of ours, and what is set on it is set on ours."""

    def __getattr__(self, name: str) -> Any:
        below = f"{self.__name__}.{name}"
        if below in MODULES and below != QUERY:
            # The official package imports all of its modules at once.
            return import_module(below)
        found = _lookup(self._ours(), self.__name__, name)
        home = getattr(found, "__module__", None)
        if isinstance(home, str) and home.startswith("steersman.compat."):
            _rename(found, HOMES.get(name) or HOMES.get(home, OFFICIAL))
        return found

    def __setattr__(self, name: str, value: object) -> None:
        if name in LOCAL:
            super().__setattr__(name, value)
        elif not isinstance(value, Alias):
            # An import sets the module below, which `__getattr__` finds.
            setattr(self._ours(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ours(), name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._ours()), *self._own()})

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """What `vars` and `mock` see: the names of ours that are loaded, under this name."""
        return {**vars(self._ours()), **self._own()}

    def _ours(self) -> ModuleType:
        name = MODULES[self.__name__]
        return import_module(name) if name else _NOTHING

    def _own(self) -> dict[str, Any]:
        return cast("dict[str, Any]", vars(ModuleType)["__dict__"].__get__(self))


_NOTHING = ModuleType(f"{OFFICIAL}._internal")
"""The names of a module that has only modules below it."""


def _lookup(ours: ModuleType, official: str, name: str) -> Any:
    try:
        is_special = name.startswith("__")
        return vars(ours)[name] if is_special else getattr(ours, name)
    except (AttributeError, KeyError) as error:
        text = f"module {official!r} has no attribute {name!r}"
        raise AttributeError(text, name=name) from error


def _rename(found: Any, module: str) -> None:
    """Make a class or a function one of an official module."""
    if isinstance(found, type | FunctionType):
        found.__module__ = module


class _Release(Distribution):
    """The metadata of the official package, of the release whose names these are."""

    def read_text(self, filename: str) -> str | None:
        """Return a file of the metadata; None if there is none of that name."""
        if filename != "METADATA":
            return None
        version = steersman.compat.__version__
        return f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"

    def locate_file(self, path: Any) -> Any:
        """Return the path itself: there are no files."""
        return path


def _refusal(fullname: str) -> str:
    return (
        f"{fullname} is a private module of the official package, and steersman.compat has none"
        " of those. What is public is in claude_agent_sdk and claude_agent_sdk.types; for more,"
        " client.session is the steersman session, and raw_of(message) what the CLI sent"
    )
