"""Lets `claude_agent_sdk` mean `steersman.compat` in this process, for every import from now on.

An import hook, which comes before all others. Private modules raise `ModuleNotFoundError`, also
where the official package is installed: a program with half of each would fail later, and worse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

import steersman.compat

OFFICIAL = "claude_agent_sdk"
DISTRIBUTION = "claude-agent-sdk"
PUBLIC = {
    "types": "steersman.compat.types",
    "client": "steersman.compat.client",
    "testing": "steersman.compat.testing",
    "testing.session_store_conformance": "steersman.compat.testing",
}
"""The modules of the official package whose names have no underscore, and where ours are."""
QUERY = f"{OFFICIAL}.query"
"""A module and a function of one name: `claude_agent_sdk.query` is the function."""


def install() -> None:
    """Let imports of the official package give ours. A second call changes nothing."""
    if any(isinstance(each, OfficialNames) for each in sys.meta_path):
        return
    sys.meta_path.insert(0, OfficialNames())
    for name in [each for each in sys.modules if each.partition(".")[0] == OFFICIAL]:
        del sys.modules[name]
    sys.modules[OFFICIAL] = steersman.compat
    # Not found by the hook: that would set the attribute `query`, which is the function.
    sys.modules[QUERY] = _QueryModule(QUERY)


class OfficialNames(MetaPathFinder):
    """Finds the modules of the official package in ours."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the signature of all such hooks
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None for what is not of the official package."""
        if fullname == OFFICIAL:
            return ModuleSpec(fullname, _Loader("steersman.compat"), is_package=True)
        if not fullname.startswith(f"{OFFICIAL}."):
            return None
        name = fullname.removeprefix(f"{OFFICIAL}.")
        if name in PUBLIC:
            return ModuleSpec(fullname, _Loader(PUBLIC[name]), is_package=name == "testing")
        raise ModuleNotFoundError(_refusal(fullname), name=fullname)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """Return what instrumentation asks for: the release whose names these are."""
        wanted = None if context is None else context.name
        if wanted is not None and wanted.lower().replace("_", "-") == DISTRIBUTION:
            return [_Release()]
        return []


class _Loader(Loader):
    """Puts a module of ours in the place of an official one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:  # noqa: ARG002
        """Return None: a module is made, and replaced below."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the module; the import system returns what is here after this call."""
        found = import_module(self._name)
        if module.__spec__ is not None and module.__spec__.submodule_search_locations is not None:
            # A package, so that imports below it come to the hook.
            found.__dict__.setdefault("__path__", [])
        sys.modules[module.__name__] = found


class _QueryModule(ModuleType):
    """`claude_agent_sdk.query` for those who import it as a module."""

    def __getattr__(self, name: str) -> Any:
        if name == "query":
            return steersman.compat.query
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


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
