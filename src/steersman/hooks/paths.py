"""Keep tools away from paths, as far as their input names them.

Decides on the text alone: `..` is followed, links are not. Seen are path-like fields of every
tool, MCP tools included, and the words of a shell command. Not seen is what a program puts
together itself (`cd /etc; cat pass*d`, a script, a variable), and what a search from a directory
above finds. Use a sandbox against a program that wants in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from steersman._json import is_array, is_object
from steersman.errors import UsageError
from steersman.hooks.events.tools import PreToolUse
from steersman.hooks.replies import Reply, deny

__all__ = ["block_paths"]

PATH_FIELD = re.compile(r"path|file|dir|folder|cwd|uri|url|root|source|target|dest", re.IGNORECASE)
COMMAND_FIELD = re.compile(r"command|cmd|script|code|args|pattern|glob", re.IGNORECASE)
WORD_ENDS = re.compile(r"[\s;|&<>()'\"`=,{}]+")
HOMES = re.compile(r"^(?:~[^/]*|\$HOME|\$\{HOME\}|/root|/home/[^/]+|/Users/[^/]+)(?=/|$)")
GLOB = re.compile(r"[*?\[]")


def block_paths(*paths: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny tools whose input names one of these paths, or something inside.

    `/etc` and `~/.ssh` are meant as they stand, `conf/keys` from the session's directory, and
    `.env` or `*.pem`, without a slash, wherever such a name occurs.
    """
    if not paths:
        raise UsageError("paths", "none", "at least one path")
    for each in paths:
        if not (isinstance(each, str) and each.strip("/. ")) and each != "/":  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("paths", each, "texts such as /etc, ~/.ssh, conf/keys or *.pem")

    def guard(event: PreToolUse) -> Reply | None:
        for named in _named(event.tool_input, ""):
            for path in paths:
                if _is_inside(_whole(named, event.cwd), path, event.cwd):
                    return deny(reason or f"{path} is off limits.")
        return None

    return guard


def _named(value: Any, field: str) -> Iterator[str]:
    """Every text of an input that may be a path."""
    if is_object(value):
        for name, each in value.items():
            yield from _named(each, name)
    elif is_array(value):
        for each in value:
            yield from _named(each, field)
    elif isinstance(value, str):
        if COMMAND_FIELD.search(field):
            yield from filter(None, WORD_ENDS.split(value))
        if PATH_FIELD.search(field) or value.startswith(("/", "~", "./", "../", "file:")):
            yield value


def _whole(named: str, cwd: str) -> str:
    """A path from the root, or from a home, without `.` and `..`."""
    path = named.removeprefix("file://").replace("\\", "/")
    at_home = HOMES.match(path)
    if at_home:
        path = "~" + path[at_home.end() :]
    elif not path.startswith("/"):
        path = f"{cwd}/{path}"
    return _straight(path)


def _straight(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            # Nothing is above the root; above a home is where we cannot follow.
            parts = parts[:-1] if parts and parts[-1] != "~" else parts
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) if parts and parts[0] == "~" else "/" + "/".join(parts)


def _is_inside(named: str, blocked: str, cwd: str) -> bool:
    if "/" not in blocked and not blocked.startswith("~"):
        return any(fnmatchcase(part, blocked) for part in named.split("/"))
    within = _whole(blocked, cwd).rstrip("/")
    if named == within or named.startswith(within + "/"):
        return True
    # What a pattern of the shell may become: all that begins like it.
    glob = GLOB.search(named)
    start = named[: glob.start()] if glob else None
    return bool(start) and start != "/" and f"{within}/".startswith(str(start))
