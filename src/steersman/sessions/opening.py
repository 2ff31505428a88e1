"""Makes the backend of a front."""

from __future__ import annotations

import os

from steersman.errors import UsageError
from steersman.ports import SessionStore
from steersman.sessions.backends import Backend
from steersman.sessions.files import FileSessions
from steersman.sessions.index import Database
from steersman.sessions.places import Places, cache_directory, config_directory
from steersman.sessions.stored import StoredSessions
from steersman.transcripts.keys import project_key

PathLike = str | os.PathLike[str]


def open_backend(
    store: SessionStore | None,
    config: PathLike | None,
    project: PathLike | None,
    *,
    index: bool,
) -> Backend:
    """Return the backend for the CLI's own files, or for a store. Reads and writes nothing."""
    _check_path("config", config)
    _check_path("project", project)
    if store is not None:
        for name in ("append", "load"):
            if not callable(getattr(store, name, None)):
                raise UsageError("store", store, f"a SessionStore, which has {name}()")
        if config is not None:
            hint = "leave config= out, or leave the store out"
            raise UsageError("config", str(config), "None with a store", hint=hint)
        return StoredSessions(store, project_key(os.path.realpath(project or os.getcwd())))
    env = os.environ
    # As the CLI: only together with the variable for its configuration directory.
    name = env.get("CLAUDE_CODE_PROJECT_DIR_NAME", "") if env.get("CLAUDE_CONFIG_DIR") else ""
    places = Places(
        config_directory(config, env),
        None if project is None else os.path.realpath(project),
        name if config is None else "",
    )
    return FileSessions(places, Database(cache_directory(env)) if index else None)


def _check_path(name: str, given: object) -> None:
    if given is not None and not isinstance(given, str | os.PathLike):
        raise UsageError(name, given, "a path, as a string or as a pathlib.Path")
    if isinstance(given, str) and (not given or "\0" in given):
        raise UsageError(name, given, "the path of a directory")
