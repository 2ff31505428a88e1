"""`steersman.compat` has the names of the installed official package, and they look the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import steersman.compat
from steersman import Session
from steersman.compat import types
from tests.house.official import Facts, facts

OFFICIAL = pytest.importorskip("claude_agent_sdk")

MODULES = ("types", "_errors", "client", "query", "testing")
"""Official modules that programs import from. `_errors` is the only home of `MessageParseError`."""

PENDING: frozenset[str] = frozenset()
"""Names that are being written in another branch. Must be empty."""

CLIENT: Mapping[str, str] = {
    "property session": "the native session, for those who move on step by step",
    "function __aenter__ returns": "a subclass of a client gives itself",
    "function __aexit__ returns": "says that no exception is swallowed",
    **{
        f"function __aexit__({name})": "says what Python passes"
        for name in ("exc_type", "exc_val", "exc_tb")
    },
}
"""What differs in the client, and why."""

MODEL: Mapping[str, str] = {
    f"function __init__{what}": "pydantic's own takes the same, by name only"
    for what in (" is", " parameters", "(self)", "(data)")
}
"""What differs in `ToolAnnotations`, and why."""

DIFFERENT: Mapping[tuple[str, str], str] = {
    ("compat.query.query", "is there"): "`migrate` writes `from steersman.compat import query`",
    **{("compat.ClaudeSDKClient", what): why for what, why in CLIENT.items()},
    **{("compat.ToolAnnotations", what): why for what, why in MODEL.items()},
    **{("compat.client.ClaudeSDKClient", what): why for what, why in CLIENT.items()},
}
"""What differs on purpose, by name and by what differs: the reason."""

HEAVY = ("mcp", "pydantic", "anyio", "claude_agent_sdk")
"""What makes the official package slow to import, and that package itself."""

IN_ANNOTATIONS = (
    "ClaudeSDKClient",
    "Transport",
    "SdkMcpTool",
    "ToolAnnotations",
    "ForkSessionResult",
)
"""Names that annotations use and that the module `types` does not have."""


def own_names(module: ModuleType) -> Iterator[str]:
    """Iterate over the public names that `module` has and does not import."""
    for name, value in vars(module).items():
        is_own = getattr(value, "__module__", "") == module.__name__
        # Aliases and constants say nothing of their home; only this module has any of its own.
        is_alias = module is OFFICIAL.types and (
            isinstance(value, frozenset) or hasattr(value, "__args__")
        )
        if not name.startswith("_") and (is_own or is_alias):
            yield name


def official_names() -> Iterator[tuple[str, Any]]:
    """Iterate over everything that programs can import, by its path here."""
    for name in OFFICIAL.__all__:
        yield f"compat.{name}", getattr(OFFICIAL, name)
    for name in MODULES:
        module = import_module(f"claude_agent_sdk.{name}")
        for each in getattr(module, "__all__", None) or own_names(module):
            yield f"compat.{name}.{each}", getattr(module, each)


OFFICIAL_NAMES = dict(official_names())
NAMES_THERE: dict[str, Any] = {**vars(OFFICIAL), **vars(OFFICIAL.types)}


def names_here() -> dict[str, Any]:
    """Return what annotations of ours may name, also if only type checkers import it."""
    every = {name: getattr(steersman.compat, name) for name in IN_ANNOTATIONS}
    return {name: getattr(types, name) for name in types.__all__} | every | {"Session": Session}


def ours(path: str) -> Any:
    module, _, name = f"steersman.{path}".rpartition(".")
    return getattr(import_module(module), name)


def is_there(path: str) -> bool:
    try:
        ours(path)
    except (ImportError, AttributeError):
        return False
    return True


def differences(path: str) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    """Return what `path` is in the official package and here, where that differs."""
    official = OFFICIAL_NAMES[path]
    if not is_there(path):
        return {(path, "is there"): ("yes", "no")}
    if ours(path) is official:
        return {}
    there: Facts = facts(official, NAMES_THERE)
    here: Facts = facts(ours(path), names_here())
    return {
        (path, what): (there.get(what), here.get(what))
        for what in {**there, **here}
        if there.get(what) != here.get(what)
    }


def test_every_official_name_is_here_and_looks_the_same() -> None:
    found = {
        key: value
        for path in OFFICIAL_NAMES
        if path not in PENDING
        for key, value in differences(path).items()
        if key not in DIFFERENT
    }

    assert found == {}


def test_no_difference_is_excused_that_is_none() -> None:
    found = {key for path, _ in DIFFERENT for key in differences(path)}

    assert sorted(set(DIFFERENT) - found) == []


def test_no_name_is_called_pending_that_is_here() -> None:
    assert [path for path in sorted(PENDING) if is_there(path)] == []


def test_a_star_import_gives_the_official_names() -> None:
    assert sorted(steersman.compat.__all__) == sorted(OFFICIAL.__all__)
    assert len(set(steersman.compat.__all__)) == len(steersman.compat.__all__)
    assert steersman.compat.__version__ == OFFICIAL.__version__


def test_the_walk_sees_what_it_should() -> None:
    """Without names there would be no differences either."""
    assert len([path for path in OFFICIAL_NAMES if path.startswith("compat.types.")]) == 154
    assert "compat._errors.MessageParseError" in OFFICIAL_NAMES
    assert "compat.types.HookEvent" in OFFICIAL_NAMES


@pytest.mark.process
def test_neither_the_package_nor_its_names_import_what_the_official_one_does() -> None:
    names = sorted({path.removeprefix("compat.") for path in OFFICIAL_NAMES} - {"ToolAnnotations"})
    names = [name for name in names if "." not in name and f"compat.{name}" not in PENDING]
    code = (
        "import sys, steersman.compat as compat\n"
        "first = {name for name in sys.modules if name.startswith('steersman')}\n"
        f"for name in {names}: getattr(compat, name)\n"
        f"print(sorted(first), [name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )

    light = ["steersman", "steersman._lazy", "steersman.compat"]
    assert done.stdout.strip() == f"{light} []"
