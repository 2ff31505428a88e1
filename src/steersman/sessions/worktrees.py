"""The worktrees of a git repository, read from its files. Runs no git."""

from __future__ import annotations

import os
from contextlib import suppress

LONGEST = 4096
"""Bytes of a file of git that names a path."""


def worktrees_of(directory: str) -> list[str]:
    """Return the top directories of all worktrees of the repository that `directory` is in.

    The main worktree comes first. Empty outside of a repository, or if it cannot be read.
    """
    found = _git_of(directory)
    if found is None:
        return []
    top, git = found
    common = _common(git)
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else top
    linked: list[str] = []
    with suppress(OSError):
        for name in sorted(os.listdir(os.path.join(common, "worktrees"))):
            place = _read(os.path.join(common, "worktrees", name, "gitdir"))
            if place:
                full = os.path.join(common, "worktrees", name, place)
                linked.append(os.path.dirname(os.path.realpath(full)))
    return list(dict.fromkeys([os.path.realpath(main), *linked]))


def _git_of(directory: str) -> tuple[str, str] | None:
    """Return the top directory of the worktree, and its git directory."""
    top = directory
    while True:
        git = os.path.join(top, ".git")
        if os.path.isdir(git):
            return top, git
        named = _read(git).removeprefix("gitdir:").strip() if os.path.isfile(git) else ""
        if named:
            return top, os.path.join(top, named)
        above = os.path.dirname(top)
        if above == top:
            return None
        top = above


def _common(git: str) -> str:
    named = _read(os.path.join(git, "commondir"))
    return os.path.realpath(os.path.join(git, named) if named else git)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(LONGEST).strip()
    except OSError:
        return ""
