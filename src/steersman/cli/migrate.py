"""`steersman migrate`: rewrites imports of the official SDK, and lists what it cannot decide."""

from __future__ import annotations

import difflib
import fnmatch
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from steersman._terminal import printable
from steersman.cli.output import complain
from steersman.cli.statuses import COMPLETED, FAILED
from steersman.compat.migrating import (
    Migrated,
    migrate_notebook,
    migrate_requirements,
    migrate_source,
)
from steersman.errors import UsageError

Migrate = Callable[[bytes], Migrated]

PYTHON = ("*.py", "*.pyi", "*.pyw")
NAMING_PACKAGES = (
    "requirements*.txt",
    "requirements*.in",
    "constraints*.txt",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "mypy.ini",
    "Pipfile",
    "environment*.yml",
    "environment*.yaml",
    "Dockerfile*",
)
NOT_ENTERED = frozenset({"node_modules", "site-packages", "__pycache__", "__pypackages__"})


def migrate(*, paths: list[str], write: bool) -> int:
    """Rewrite imports, or show how; list what cannot be decided on stderr."""
    left = changed = 0
    unread: list[OSError] = []
    for path in _files(paths, unread):
        try:
            data = path.read_bytes()
            found = _migrate_of(path)(data)
            if found.data != data:
                changed += 1
                if write:
                    _write(path, found.data)
                    print(printable(f"changed {path}"))
                else:
                    _show(path, data, found.data)
        except OSError as error:
            left += 1
            complain(f"{path}: {error.strerror or error}")
            continue
        for note in found.notes:
            left += 1
            print(printable(f"{path}:{note.line}: {note.text}"), file=sys.stderr)
    for each in unread:
        left += 1
        complain(f"{each.filename}: {each.strerror or each}")
    done = "changed" if write else "to change with --write"
    print(f"files {done}: {changed}; places for you to decide: {left}", file=sys.stderr)
    return FAILED if left else COMPLETED


def _files(paths: list[str], unread: list[OSError]) -> Iterator[Path]:
    """Yield the files to look at, each once; add folders that cannot be read to `unread`.

    Raises `UsageError` for a path that is not there.
    """
    seen: set[Path] = set()
    for given in paths:
        path = Path(given)
        if not path.exists():
            raise UsageError("PATH", given, "a file or a directory that exists")
        for each in _inside(path, unread) if path.is_dir() else [path]:
            real = each.resolve()
            if real not in seen:
                seen.add(real)
                yield each


def _inside(folder: Path, unread: list[OSError]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, onerror=unread.append):
        folders[:] = sorted(each for each in folders if _is_entered(Path(place, each)))
        for name in sorted(names):
            path = Path(place, name)
            # A link may lead out of the folder that was named.
            if _is_known(name) and path.is_file() and not path.is_symlink():
                yield path


def _is_entered(folder: Path) -> bool:
    """Return whether a folder may have sources of the program: not those of what it installed."""
    is_hidden = folder.name.startswith(".") or folder.name in NOT_ENTERED
    return not is_hidden and not (folder / "pyvenv.cfg").exists()


def _is_known(name: str) -> bool:
    patterns = (*PYTHON, *NAMING_PACKAGES, "*.ipynb")
    return any(fnmatch.fnmatchcase(name, each) for each in patterns)


def _migrate_of(path: Path) -> Migrate:
    if path.suffix == ".ipynb":
        return migrate_notebook
    if any(fnmatch.fnmatchcase(path.name, each) for each in NAMING_PACKAGES):
        return migrate_requirements
    return migrate_source


def _show(path: Path, before: bytes, after: bytes) -> None:
    """Write a diff that `patch` and `git apply` take."""
    old, new = (_split(each.decode("utf-8", "surrogateescape")) for each in (before, after))
    shown = path.as_posix().lstrip("/")
    for line in difflib.unified_diff(old, new, f"a/{shown}", f"b/{shown}"):
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        _raw_out(whole.encode("utf-8", "surrogateescape"))


def _split(text: str) -> list[str]:
    """Return the lines of a text; only a newline ends one, as in `diff`."""
    lines = text.split("\n")
    return [*(f"{each}\n" for each in lines[:-1]), *([lines[-1]] if lines[-1] else [])]


def _raw_out(data: bytes) -> None:
    """Write bytes of a source as they are to a file or a pipe, and printable on a terminal."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None or sys.stdout.isatty():
        text = data.decode("utf-8", "backslashreplace").removesuffix("\n")
        print(printable(text))
    else:
        sys.stdout.flush()
        buffer.write(data)


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole, with the mode that it had; a link stays one."""
    real = path.resolve()
    number, made = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        shutil.copymode(real, made)
        Path(made).replace(real)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
