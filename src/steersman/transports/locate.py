"""Finds the CLI on this machine.

From an explicit path, the environment and the usual places of installation to the path of an
executable file. Runs nothing, and imports nothing of what it finds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import cast

from steersman.errors import (
    CliNotExecutable,
    CliNotFound,
    UsageError,
    WorkingDirectoryMissing,
)

VARIABLE = "STEERSMAN_CLI"
PROGRAM = "claude"

USUAL_PLACES = (
    "~/.claude/local/claude",
    "~/.local/bin/claude",
    "/usr/local/bin/claude",
    "/opt/homebrew/bin/claude",
    "/home/linuxbrew/.linuxbrew/bin/claude",
    "/usr/bin/claude",
    "~/.npm-global/bin/claude",
    "~/node_modules/.bin/claude",
    "~/.bun/bin/claude",
    "~/.volta/bin/claude",
    "~/.yarn/bin/claude",
    "~/.local/share/pnpm/claude",
    "~/Library/pnpm/claude",
)

BUNDLE = "claude_agent_sdk"
"""The official package, whose wheels carry the CLI."""


def locate(
    explicit: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> str:
    """Return the path of the CLI: the one named, else the first that is found.

    A CLI is named by `explicit`, or else by `STEERSMAN_CLI`: a path, or a bare name to look up in
    `PATH`. Without a name the search covers `PATH`, the usual places and the official wheel.
    Raises `CliNotFound` or `CliNotExecutable`, and never replaces a named CLI by another.
    """
    if not (explicit is None or isinstance(explicit, str | os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("explicit", explicit, "a path, a name to look up in PATH, or None")
    named = os.fspath(explicit or environ.get(VARIABLE, ""))
    path = environ.get("PATH", os.defpath)
    if os.sep in named:
        return _named(_absolute(_expand(named, environ)))
    if named:
        return first_runnable(_in_path(named, path))
    usual = (_expand(place, environ) for place in USUAL_PLACES)
    return first_runnable((*_in_path(PROGRAM, path), *usual, *_in_bundle()))


def first_runnable(places: Iterable[Path]) -> str:
    """Return the first of `places` that is executable. Raises `CliNotFound` with all of them."""
    looked_in: list[str] = []
    for place in dict.fromkeys(places):
        if _is_runnable(place):
            return str(place)
        looked_in.append(f"{place} (not executable)" if place.is_file() else str(place))
    raise CliNotFound(looked_in)


def _named(path: Path) -> str:
    if not path.exists():
        raise CliNotFound((str(path),))
    if path.is_dir():
        raise CliNotExecutable(str(path), "it is a directory")
    if not _is_runnable(path):
        raise CliNotExecutable(str(path), "its mode does not allow it")
    return str(path)


def _in_path(name: str, path: str) -> Iterator[Path]:
    for folder in path.split(os.pathsep):
        # An empty entry means the current directory, which is no place for installed programs.
        if folder:
            yield _absolute(Path(folder)) / name


def _in_bundle() -> Iterator[Path]:
    folders = wheel_folders(BUNDLE)
    if not folders:
        yield Path(f"{BUNDLE} (not installed)")
    for folder in folders:
        yield Path(folder, "_bundled", PROGRAM)


def wheel_folders(package: str) -> list[str]:
    """Return where a package is installed; nothing of it is imported."""
    if cast(object, sys.modules.get(package, sys)) is None:
        # This is how Python forbids an import.
        return []
    # Not by its name: `python -m steersman.compat` has another module under that of the wheel.
    spec = PathFinder.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def _expand(place: str, environ: Mapping[str, str]) -> Path:
    if not place.startswith("~/"):
        return Path(place)
    home = environ.get("HOME")
    return Path(home, place[2:]) if home else Path(place).expanduser()


def _absolute(path: Path) -> Path:
    """Return the path from the root. Raises `WorkingDirectoryMissing` if that cannot be known."""
    try:
        return path.absolute()
    except OSError as error:
        raise WorkingDirectoryMissing(".", error.strerror or str(error)) from None


def _is_runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
