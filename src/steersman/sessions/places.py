"""Where the CLI keeps its sessions: `<config>/projects/<key of the directory>/<id>.jsonl`.

The subagents of a session are beside it: `<id>/subagents/**/agent-<agent>.jsonl`, each with a
`.meta.json`. The sessions of a git repository are in the folders of all its worktrees.

Paths are strings, because a list looks at ten thousand of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from steersman import _json
from steersman._json import JsonObject
from steersman.errors import SessionNotFound, UsageError
from steersman.sessions.changes import read_note
from steersman.transcripts.entries import AgentInfo
from steersman.transcripts.keys import LONGEST_KEY, is_safe_subpath, is_session_id, project_key

SUFFIX = ".jsonl"
DEFAULT_DAYS = 30.0
"""Days after which the CLI deletes a session, unless `cleanupPeriodDays` is set."""
DAY = 24 * 60 * 60 * 1000


class SessionFile(NamedTuple):
    """The file of one session, as it was when it was looked at."""

    session_id: str
    path: str
    size: int
    mtime_ns: int
    number: int
    """The number of the file in its file system: another one if the file was replaced."""
    has_folder: bool
    """Whether there is a folder beside the file, for subagents and notes about the session."""

    @property
    def folder(self) -> str:
        """The folder beside the file; may be missing."""
        return self.path.removesuffix(SUFFIX)

    def part(self, subpath: str) -> str:
        """Return the path of the session's file, or of a part such as `subagents/agent-<id>`."""
        return os.path.join(self.folder, subpath) + SUFFIX if subpath else self.path

    @property
    def mtime(self) -> int:
        """When the file was last written to, in milliseconds since the epoch."""
        return self.mtime_ns // 1_000_000


PATH, MTIME = SessionFile._fields.index("path"), SessionFile._fields.index("mtime_ns")


def config_directory(given: str | os.PathLike[str] | None, env: Mapping[str, str]) -> str:
    """Return the configuration directory of the CLI."""
    if given is not None:
        return os.fspath(given)
    named = env.get("CLAUDE_CONFIG_DIR")
    return named or os.path.join(env.get("HOME") or str(Path.home()), ".claude")


def cache_directory(env: Mapping[str, str]) -> str:
    """Return the directory for what can be made again."""
    base = env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME") or str(Path.home()), ".cache")
    return os.path.join(base, "steersman")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one project, or of all projects."""

    config: str
    project: str | None = None
    """The directory of the project, as a real path; None for all projects."""
    fixed_name: str = ""
    """The name of the project's folder, if CLAUDE_CODE_PROJECT_DIR_NAME sets one."""

    @property
    def root(self) -> str:
        """The folder with the folders of all projects."""
        return os.path.join(self.config, "projects")

    @property
    def key(self) -> str | None:
        """The name of the project's folder; None for all projects."""
        if self.project is None:
            return None
        return self.fixed_name or project_key(self.project)

    def folders(self, *, worktrees: bool = True) -> list[str]:
        """Return the folders that exist; with `worktrees`, also of other worktrees."""
        if self.project is None:
            return [each.path for each in _scanned(self.root) if _is_folder(each)]
        names = [self.key or ""]
        if worktrees and not self.fixed_name:
            names += [project_key(each) for each in worktrees_of(self.project)]
        found = (self._named(name) for name in dict.fromkeys(names))
        return list(dict.fromkeys(each for group in found for each in group))

    def _named(self, name: str) -> list[str]:
        """Return the folder of a project, or those that may be, if its name was cut and hashed."""
        path = os.path.join(self.root, name)
        if os.path.isdir(path):
            return [path]
        if len(name) <= LONGEST_KEY:
            return []
        # Releases of the CLI have hashed long paths in different ways.
        begins = name[: LONGEST_KEY + 1]
        return [
            each.path
            for each in _scanned(self.root)
            if each.name.startswith(begins) and _is_folder(each)
        ]

    def files(self, *, worktrees: bool = True) -> list[SessionFile]:
        """Return the files of all sessions, newest first."""
        found = [each for folder in self.folders(worktrees=worktrees) for each in _files_in(folder)]
        found.sort(key=itemgetter(MTIME, PATH), reverse=True)
        return found

    def file(self, session_id: str) -> SessionFile:
        """Return the file of a session. Raises `SessionNotFound`."""
        if not is_session_id(session_id):
            raise UsageError("session_id", session_id, "the id of a session, which is a UUID")
        found: list[SessionFile] = []
        for folder in self.folders():
            with suppress(OSError):
                path = os.path.join(folder, session_id + SUFFIX)
                about = os.stat(path)
                if stat.S_ISREG(about.st_mode) and about.st_size:
                    has_folder = os.path.isdir(os.path.join(folder, session_id))
                    found.append(_file(session_id, path, about, has_folder))
        if not found:
            raise SessionNotFound(session_id, self._where())
        return max(found, key=lambda each: each.mtime_ns)

    def _where(self) -> str:
        of = "" if self.project is None else f" of {self.project}"
        return f"in the sessions{of} below {self.root}"

    def cleanup_days(self) -> float:
        """Return after how many days the CLI deletes a session."""
        for path in self._settings():
            with suppress(OSError, ValueError):
                with open(path, "rb") as file:
                    found = _json.loads(file.read())
                days = found.get("cleanupPeriodDays") if _json.is_object(found) else None
                if isinstance(days, int | float) and not isinstance(days, bool) and days >= 0:
                    return float(days)
        return DEFAULT_DAYS

    def _settings(self) -> Iterator[str]:
        """Yield the files of settings, those that win first."""
        if self.project is not None:
            yield os.path.join(self.project, ".claude", "settings.local.json")
            yield os.path.join(self.project, ".claude", "settings.json")
        yield os.path.join(self.config, "settings.json")


def _files_in(folder: str) -> list[SessionFile]:
    entries = _scanned(folder)
    folders = {each.name for each in entries if "." not in each.name}
    found: list[SessionFile] = []
    for each in entries:
        name = each.name
        session_id = name[: -len(SUFFIX)]
        if not name.endswith(SUFFIX) or not is_session_id(session_id):
            continue
        try:
            about = each.stat()
        except OSError:
            # Deleted in the meantime, or a link to nothing.
            continue
        if about.st_size and stat.S_ISREG(about.st_mode):
            found.append(_file(session_id, each.path, about, session_id in folders))
    return found


def _file(
    session_id: str,
    path: str,
    about: os.stat_result,
    has_folder: bool,  # noqa: FBT001 - a name takes longer, ten thousand times
) -> SessionFile:
    return SessionFile(session_id, path, about.st_size, about.st_mtime_ns, about.st_ino, has_folder)


def _scanned(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


LONGEST_GIT_FILE = 4096
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
            place = _git_file(os.path.join(common, "worktrees", name, "gitdir"))
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
        named = _git_file(git).removeprefix("gitdir:").strip() if os.path.isfile(git) else ""
        if named:
            return top, os.path.join(top, named)
        above = os.path.dirname(top)
        if above == top:
            return None
        top = above


def _common(git: str) -> str:
    named = _git_file(os.path.join(git, "commondir"))
    return os.path.realpath(os.path.join(git, named) if named else git)


def _git_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(LONGEST_GIT_FILE).strip()
    except OSError:
        return ""


FOLDER = "subagents"
PREFIX = "agent-"
META = ".meta.json"


def agents_in(folder: str) -> list[AgentInfo]:
    """Return the subagents in the folder of a session."""
    found = [
        agent_info(subpath, read_note(os.path.join(folder, subpath) + META))
        for subpath in _subpaths(folder)
    ]
    return sorted(found, key=lambda each: each.subpath)


def agents_of(subpaths: list[str]) -> list[str]:
    """Return those of a store's subpaths that are subagents."""
    return [
        each
        for each in subpaths
        if is_safe_subpath(each) and each.rpartition("/")[2].startswith(PREFIX)
    ]


def agent_named(agents: Sequence[AgentInfo], agent_id: str) -> AgentInfo:
    """Return the subagent with this id. Raises `UsageError`."""
    for each in agents:
        if each.agent_id == agent_id:
            return each
    known = ", ".join(each.agent_id for each in agents) or "it has none"
    raise UsageError("agent", agent_id, f"the id of a subagent of this session: {known}")


def agent_info(subpath: str, meta: JsonObject) -> AgentInfo:
    """Return what is known of a subagent."""
    return AgentInfo(
        agent_id=subpath.rpartition("/")[2].removeprefix(PREFIX),
        agent_type=_text(meta, "agentType"),
        description=_text(meta, "description"),
        parent_tool_use_id=_text(meta, "toolUseId"),
        parent_agent_id=_text(meta, "parentAgentId"),
        subpath=subpath,
    )


def _subpaths(folder: str) -> list[str]:
    found: list[str] = []
    for place, _, names in os.walk(os.path.join(folder, FOLDER)):
        inside = os.path.relpath(place, folder).replace(os.sep, "/")
        for name in names:
            subpath = f"{inside}/{name.removesuffix(SUFFIX)}"
            is_agent = name.startswith(PREFIX) and name.endswith(SUFFIX)
            if is_agent and is_safe_subpath(subpath):
                found.append(subpath)
    return found


def _text(meta: JsonObject, name: str) -> str | None:
    found = meta.get(name)
    return found if isinstance(found, str) and found else None
