"""Path patterns of rules, read as the CLI reads them: like lines of a .gitignore.

`src/**` and `/src/**` begin at the session's directory, `//tmp/**` at the root, `~/notes/**` at the
home directory. A pattern without a slash matches at any depth. Case is ignored. Links are not
followed, because this module does not access the file system; the CLI follows them.
"""

from __future__ import annotations

import functools
import posixpath
import re
from dataclasses import dataclass

__all__ = ["Place", "is_protected", "matches_path"]


@dataclass(frozen=True, slots=True)
class Place:
    """The directories at which relative paths and patterns begin."""

    cwd: str = "/"
    home: str = ""


def is_protected(path: str) -> bool:
    """Return whether the CLI may restrict writing to a path although a rule allows it.

    The CLI guards `.git`, `.claude`, `.bashrc` and others. Here every name that begins with a dot
    counts as protected.
    """
    return any(part.startswith(".") and part not in (".", "..") for part in path.split("/"))


def matches_path(pattern: str, path: str, place: Place) -> bool:
    """Return whether a rule's pattern covers the file, or a directory that contains it."""
    base, rest = _based(pattern, place)
    full = posixpath.normpath(posixpath.join(place.cwd, _at_home(path, place)))
    root = posixpath.normpath(base) if base else ""
    if not root or not (full == root or full.startswith(root.rstrip("/") + "/")):
        return False
    relative = full[len(root.rstrip("/")) + 1 :]
    return _compiled(rest).fullmatch(relative) is not None


def _based(pattern: str, place: Place) -> tuple[str, str]:
    """Return the directory at which a pattern begins, and the rest of the pattern.

    A leading slash in the rest anchors the pattern at that directory.
    """
    if pattern.startswith("//"):
        return "/", pattern[1:]
    if pattern.startswith("~/"):
        return place.home, pattern[1:]
    return place.cwd, pattern.removeprefix("./")


def _at_home(path: str, place: Place) -> str:
    return place.home + path[1:] if path.startswith("~/") else path


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    is_folder = pattern.endswith("/")
    body = pattern.strip("/")
    is_anchored = pattern.startswith("/") or "/" in body
    start = "" if is_anchored else "(?:.*/)?"
    end = "/.+" if is_folder else "(?:/.*)?"
    return re.compile(start + _body_pattern(body) + end, re.IGNORECASE | re.DOTALL)


_TOKEN = re.compile(
    r"^\*\*/|/\*\*/|/\*\*$|^\*\*$|\*+|\?|\[[^\]/]+\]|\\.|[^*?\[\\/]+|/|.", re.DOTALL
)
_PATTERNS = {
    "**/": "(?:.*/)?",
    "/**/": "/(?:.*/)?",
    "/**": "/.+",
    "**": ".+",
    "?": "[^/]",
}


def _body_pattern(body: str) -> str:
    return "".join(_token_pattern(each) for each in _TOKEN.findall(body))


def _token_pattern(token: str) -> str:
    if token in _PATTERNS:
        return _PATTERNS[token]
    if token.startswith("*"):
        return "[^/]*"
    if token.startswith("[") and token.endswith("]"):
        inside = token[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return re.escape(token[1:] if len(token) > 1 and token.startswith("\\") else token)
