"""Compares the texts of a tool's input with paths that are off limits; for `block_paths`.

No I/O: links are not followed, and home directories are recognized by their names. A text that can
be read in several ways is compared in all of them, so that too much is blocked rather than too
little.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from steersman._effort import Effort, fits_parts
from steersman._json import Json, is_array, is_object

LIMIT = 32 * 1024
"""Characters of a command or path; a longer one is not read, and is blocked."""
SHORT = 4096
"""Characters of a text in a field with another name; a longer one is no path."""
MOST_DIRECTORIES = 32
"""Directories that the `cd` commands of one line may lead to; a line with more is blocked."""
MOST_NAMES = 8192
"""Names of a path, with `.` and `..`; a text with more is no path, unless most are dots."""
DEEPEST = 8
"""Braces inside braces that are read."""
MOST_CELLS = 4000
"""Pairs of characters to compare two patterns of names; for longer ones the result is yes."""

EXPANDED = "?*"
"""`*` that the shell expands to all names without a leading dot."""
HOME = "~"
"""The first name of a path from a home directory."""
UNPLAIN = re.compile(r"[*?\[{$~\\%]|file:|proc\b|\bfd\b", re.IGNORECASE)
"""A text with one of these may name files whose names are not in it."""
PROCESS = re.compile(r"self|thread-self|\d+|.*[*?\[].*")
"""The second name of a path such as `/proc/self/cwd`, which leads elsewhere in each process."""
HOME_PARENTS = frozenset({"home", "users"})

# Compiled when a guard first needs them: most sessions have none of these guards.
PATH_FIELD = r"(?i)path|file|dir|folder|cwd|uri|url|root|source|target|dest"
COMMAND_FIELD = r"(?i)command|cmd|script|code|args|pattern|glob"
PATH_STARTS = ("/", "~", "./", "../", "file:", "$HOME", "${HOME", "$PWD", "${PWD")
WORD_ENDS = r"[\s;|&<>()'\"`=,{}]+"
PLAIN_WORD_ENDS = r"[\s;|&<>()`=,]+"
AT_HOME = r"(?:~[^/]*|\$HOME(?!\w)|\$\{HOME[^}]*\})(?=/|$)"
AT_CWD = r"(?:\$(?:OLD)?PWD(?!\w)|\$\{(?:OLD)?PWD[^}]*\}|~[+-])(?:/|$)"
UNKNOWN = r"\$\{[^}]*\}|\$\w+|\{[^{}\s]*\}"
QUOTED = r"'[^']*'|\"[^\"]*\""
OPTION = r"-+[\w-]*?([/~.$].*)"
CD = frozenset({"cd", "pushd", "chdir", "-C", "--directory", "--chdir"})

Names = tuple[str, ...]
_HOLDERS = (str, dict, list)
"""The types of values that are or contain texts."""


class Unreadable(ValueError):
    """A command is too long or too intricate to be compared with paths."""


@dataclass(frozen=True, slots=True)
class BlockedPath:
    """A path that is off limits, in the forms that the paths of a call are compared with."""

    text: str
    name: str = ""
    """A name, or a pattern of names, that is blocked in every directory."""
    from_root: tuple[Names, ...] = ()
    from_cwd: Names = ()
    from_home: Names = ()
    needed: str = ""
    """A name that is in every path that is covered; empty if there is no such name."""

    def covers(self, text: str, starts: Names, cwds: Names, home: str) -> bool:
        """Return whether a text may name this path, or one inside it.

        The text may begin at `starts`, and the blocked path at `cwds`.
        """
        if self.name:
            is_named = any(_may_be(each, self.name) for each in _names_in(text))
            return is_named or any(map(_is_of_process, _readings(text, starts, home)))
        blocked = [*self.from_root]
        if self.from_cwd:
            blocked += [_resolved((*cwd.casefold().split("/"), *self.from_cwd)) for cwd in cwds]
        return any(
            any(_begins(named, each) for each in blocked)
            or self._covers_from_home(named)
            or _is_of_process(named)
            for named in _readings(text, starts, home)
        )

    def _covers_from_home(self, named: Names) -> bool:
        if not self.from_home:
            is_all_of_home = (HOME,) in self.from_root
            return is_all_of_home and any(
                _is_home(named[max(0, at - 2) : at], at) for at in range(1, len(named) + 1)
            )
        # Home directories may be anywhere. A name with a dot is blocked wherever it is.
        is_dotted = self.from_home[0].startswith(".")
        return any(
            _begins(named, self.from_home, at)
            for at, name in enumerate(named)
            if _may_be(name, self.from_home[0]) or name == "**"
            if is_dotted or _is_home(named[max(0, at - 2) : at], at)
        )


def parse_blocked(text: str, home: str) -> BlockedPath:
    """Parse a path that is off limits: a name, or a path from the root, home or the directory."""
    path = text.replace("\\", "/").casefold()
    at_home = re.match(AT_HOME, path, re.IGNORECASE)
    if at_home:
        rest = _without_end(_resolved(path[at_home.end() :].split("/")))
        roots = [_resolved((*home.casefold().split("/"), *rest))] if home else []
        at_root = (*roots, (HOME, *rest))
        return BlockedPath(text, from_root=at_root, from_home=rest, needed=_needed(rest))
    if "/" not in path:
        return BlockedPath(text, name=path, needed=_needed((path,)))
    names = _without_end(_resolved(path.split("/")))
    if not path.startswith("/"):
        return BlockedPath(text, from_cwd=names, needed=_needed(names))
    within = [names[at:] for at in range(1, len(names)) if _is_home(names[max(0, at - 2) : at], at)]
    at_root = (names, *((HOME, *rest) for rest in within))
    return BlockedPath(text, from_root=at_root, needed=_needed(names))


def _needed(names: Names) -> str:
    """Return the last name without a wildcard; empty if one that is not known may replace it."""
    plain = [name for name in names if not _is_pattern(name) and not UNPLAIN.search(name)]
    return plain[-1] if plain else ""


def find_blocked(blocked: Sequence[BlockedPath], given: Json, cwds: Names, home: str) -> str | None:
    """Return the blocked path that a tool's input names, or None. Raises `Unreadable`.

    `cwds` are the directories at which relative paths may begin.
    """
    effort = Effort()
    by_name: dict[str, list[BlockedPath]] = {}
    for each in blocked:
        by_name.setdefault(each.needed, []).append(each)
    for text, starts in _possible_texts(given, cwds, effort):
        found = _candidates(text, starts, by_name, blocked)
        # A name is compared with a name in a few steps, and with a pattern in many.
        if not effort.spend(6 + len(found) * (24 + len(text) // 2)):
            raise Unreadable("there is too much to compare")
        for each in found:
            if each.covers(text, starts, cwds, home):
                return each.text
    return None


def _candidates(
    text: str,
    starts: Names,
    by_name: dict[str, list[BlockedPath]],
    blocked: Sequence[BlockedPath],
) -> Sequence[BlockedPath]:
    """Return the paths that a text may name, by the names in it."""
    if UNPLAIN.search(text):
        return blocked
    names = {*text.casefold().split("/"), *_names_of_all(starts), ""}
    if "proc" in names:
        # It may lead anywhere in another process.
        return blocked
    found = by_name.keys() & names
    if len(found) == 1:
        return by_name[found.pop()]
    return [each for name in found for each in by_name[name]]


@functools.lru_cache(maxsize=64)
def _names_of_all(starts: Names) -> frozenset[str]:
    names = {name for start in starts for name in start.casefold().split("/")}
    # A directory that is not known may have any name.
    return frozenset(names)


def _possible_texts(given: Json, cwds: Names, effort: Effort) -> Iterator[tuple[str, Names]]:
    """Yield every text that may be a path, and the directories at which it may begin."""
    for field, text in _texts_in(given):
        is_command, is_path = _kind_of(field)
        if not effort.spend(24 + len(text) // 16 if is_command else 1):
            raise Unreadable("there is too much to compare")
        if is_command:
            yield from _words_of(text, cwds, is_search=field in ("pattern", "glob"))
        yield from ((path, cwds) for path in _path_in(text, is_path=is_path))


def _texts_in(given: Json) -> Iterator[tuple[str, str]]:
    """Yield every text of a value, in order, and the field that it belongs to."""
    stack: list[tuple[str, Json]] = [("", given)]
    while stack:
        field, value = stack.pop()
        if isinstance(value, str):
            yield field, value
        elif is_object(value):
            kept = [pair for pair in value.items() if isinstance(pair[1], _HOLDERS)]
            stack += reversed(kept)
        elif is_array(value):
            stack += [(field, each) for each in reversed(value) if isinstance(each, _HOLDERS)]


@functools.lru_cache(maxsize=256)
def _kind_of(field: str) -> tuple[bool, bool]:
    """Return whether a field holds commands, and whether it holds paths."""
    return bool(re.search(COMMAND_FIELD, field)), bool(re.search(PATH_FIELD, field))


def _path_in(text: str, *, is_path: bool) -> Iterator[str]:
    if is_path:
        if len(text) > LIMIT or text.count("**") > MOST_DIRECTORIES:
            raise Unreadable("the path is too long")
        yield text
    elif text.startswith(PATH_STARTS):
        # Names that are only a dot are no work.
        text = re.sub(r"/(?:\./)+", "/", text) if "/./" in text else text
        if text.count("/") > MOST_NAMES:
            if text.count("/..") > MOST_NAMES // 2:
                raise Unreadable("the path is too long")
            return
        # A long text is no path, unless it is long only because of its `.` and `..`.
        path = text if len(text) < SHORT else "/" + "/".join(_resolved(text.split("/")))
        if len(path) < SHORT and path.count("**") <= MOST_DIRECTORIES:
            yield path


# --- Commands ---------------------------------------------------------------------------------


def _words_of(command: str, cwds: Names, *, is_search: bool) -> Iterator[tuple[str, Names]]:
    if len(command) > LIMIT:
        raise Unreadable("the command is too long")
    # Without quotes and escapes, as the shell passes the words on.
    unquoted = _without_braces(re.sub(r"\\\n|\$(?=['\"])|['\"]", "", command))
    words = [*re.split(PLAIN_WORD_ENDS, unquoted.replace("\\", ""))]
    starts = (*cwds, *itertools.islice(_directories(words, cwds), MOST_DIRECTORIES + 1))
    if max(len(starts), command.count("**")) > MOST_DIRECTORIES:
        raise Unreadable("the command has too many directories")
    # Between quotes, as a shell in the command reads them.
    words += re.split(WORD_ENDS, command)
    words += re.split(PLAIN_WORD_ENDS, unquoted)
    for word in dict.fromkeys(filter(None, words)):
        for form in _forms(word):
            # `*` alone is a search for every file, like `ls`, unless the shell expands it.
            if form.strip("*"):
                yield form, starts
    if not is_search:
        for word in re.split(PLAIN_WORD_ENDS, re.sub(QUOTED, "x", command)):
            if "*" in word.split("/"):
                yield word.replace("*", EXPANDED), starts


def _without_braces(text: str) -> str:
    """Replace `{a,b}` by `*`, also inside others."""
    for _ in range(DEEPEST):
        replaced = re.sub(r"(?<!\$)\{[^{}\s]*\}", "*", text)
        if replaced == text:
            break
        text = replaced
    return text


def _forms(word: str) -> Iterator[str]:
    yield word
    if "$" not in word:
        yield from filter(None, re.split(r"[:@%]", word)[1:])
    option = re.match(OPTION, word)
    if option:
        yield option[1]


def _directories(words: Iterable[str], cwds: Names) -> Iterator[str]:
    """Yield the directories that `cd` and similar commands may lead to."""
    follows, bases = False, cwds
    for word in filter(None, words):
        if follows and not word.startswith("-"):
            is_relative = not word.startswith(("/", "~", "$"))
            bases = tuple(f"{base}/{word}" for base in bases) if is_relative else (word,)
            yield from bases
            follows = False
        else:
            follows = follows or word in CD


# --- Paths ------------------------------------------------------------------------------------


def _cleaned(text: str) -> str:
    path = text.casefold()
    if path.startswith("file:"):
        path = "/" + unquote(path.removeprefix("file:").removeprefix("//localhost")).lstrip("/")
    return path.replace("\\", "/")


def _names_in(text: str) -> Iterator[str]:
    for name in _cleaned(text).split("/"):
        # A name that is only a variable is not known at all.
        if name not in ("", ".", "..", "*", "**") and not re.fullmatch(r"\$\w+|\$\{[^}]*\}", name):
            yield _known(name)


def _readings(text: str, starts: Names, home: str) -> Iterator[Names]:
    """Yield the names of every path that a text may mean, from the root or a home directory."""
    path = _cleaned(text)
    at_cwd = re.match(AT_CWD, path, re.IGNORECASE)
    path = path[at_cwd.end() :] if at_cwd else path
    at_home = re.match(AT_HOME, path, re.IGNORECASE)
    if at_home:
        yield from _home_readings(path[at_home.end() :], home)
    elif path.startswith("/"):
        yield _resolved(_known(path).split("/"))
    else:
        for start in starts:
            at_home = re.match(AT_HOME, start, re.IGNORECASE)
            if at_home:
                yield from _home_readings(f"{start[at_home.end() :]}/{path}", home)
            else:
                yield _resolved(_known(f"{start}/{path}").casefold().split("/"))


def _home_readings(rest: str, home: str) -> Iterator[Names]:
    names = _known(rest).casefold().split("/")
    yield (HOME, *_resolved(names))
    if home:
        yield _resolved((*home.casefold().split("/"), *names))
    if ".." in names:
        # The path may leave the home directory, whose depth is not known.
        for parent in ("/home/user", "/user", "/var/home/user"):
            yield _resolved((*parent.split("/"), *names))


def _known(path: str) -> str:
    """Replace what is not known, variables and braces, by `*`."""
    if "$" not in path and "{" not in path:
        return path
    # Behind the last `}`, a search for one from every `${` would take long.
    end = path.rfind("}") + 1
    return re.sub(UNKNOWN, "*", path[:end]) + re.sub(r"\$\w+", "*", path[end:])


def _is_of_process(named: Names) -> bool:
    """Return whether a path leads through links that each process has of its own."""
    if len(named) < 2:  # noqa: PLR2004 - two names
        return False
    is_process = _may_be(named[0], "proc") and PROCESS.fullmatch(named[1]) is not None
    return is_process or (_may_be(named[0], "dev") and _may_be(named[1], "fd"))


def _resolved(names: Iterable[str]) -> Names:
    kept: list[str] = []
    for name in names:
        if name == "..":
            del kept[-1:]
        elif name not in ("", "."):
            kept.append(name)
    return tuple(kept)


def _without_end(names: Names) -> Names:
    return names[:-1] if names[-1:] == ("**",) else names


def _is_home(last: Names, depth: int) -> bool:
    """Return whether a directory may be a home directory: `/root`, `/home/ann`, `/x/home/ann`.

    `last` are its last two names, and `depth` is the number of all.
    """
    if depth == 1 and last in ((HOME,), ("root",)):
        return True
    return any(each in HOME_PARENTS for each in last)


def _begins(named: Names, blocked: Names, start: int = 0) -> bool:
    """Return whether a path with wildcards may be `blocked`, or a path inside it."""
    states, seen = [(start, 0)], {(start, 0)}
    while states:
        at, blocked_at = states.pop()
        if blocked_at == len(blocked):
            return True
        if at == len(named):
            # `conf/*` may be a directory that contains the blocked path.
            if any(map(_is_pattern, named[max(start, 1) :])):
                return True
            continue
        following: list[tuple[int, int]] = []
        if "**" in (named[at], blocked[blocked_at]):
            following += [(at + 1, blocked_at), (at, blocked_at + 1)]
        if _may_be(named[at], blocked[blocked_at]):
            following.append((at + 1, blocked_at + 1))
        states += [each for each in following if each not in seen]
        seen.update(following)
    return False


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name or "[" in name


def _may_be(name: str, other: str) -> bool:
    """Return whether a name can fit both patterns."""
    if name == other:
        return True
    if name == EXPANDED:
        return not other.startswith(".")
    if not (_is_pattern(name) or _is_pattern(other)):
        return False
    return _meet(_without_sets(name), _without_sets(other))


def _without_sets(name: str) -> str:
    """Replace sets such as `[ab]` by `?`."""
    # Behind the last `]`, a search for one from every `[` would take long.
    end = name.rfind("]") + 1
    return re.sub(r"\[[^\]]*\]", "?", name[:end]) + name[end:] if end else name


@functools.lru_cache(maxsize=4096)
def _meet(one: str, other: str) -> bool:
    for pattern, name in ((one, other), (other, one)):
        if "?" not in pattern and not _is_pattern(name):
            return fits_parts(tuple(pattern.split("*")), name)
    if len(one) * len(other) > MOST_CELLS:
        return True
    # For each end of `other`, whether both patterns can have read the same text so far.
    reached = [True] + [False] * len(other)
    for at, each in enumerate(other):
        reached[at + 1] = reached[at] and each == "*"
    for letter in one:
        before = reached
        reached = [before[0] and letter == "*"]
        for at, each in enumerate(other):
            fits = letter == each or "?" in (letter, each)
            reached.append(
                (before[at] and (fits or "*" in (letter, each)))
                or (letter == "*" and (before[at + 1] or reached[at]))
                or (each == "*" and (reached[at] or before[at + 1]))
            )
    return reached[-1]
