"""Ready-made hooks about tools: `hooks.on(PreToolUse)(deny_tools("Bash"))`.

They check names and texts, without I/O. They stop mistakes. They do not stop an attacker who can
run programs: use a sandbox for that.
"""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

from steersman._command_tools import BASH, COMMAND_FIELDS
from steersman._json import Json, JsonDict, is_array, is_object
from steersman.errors import UsageError
from steersman.hooks.events import HookEvent, PostToolUse, PreToolUse
from steersman.hooks.matchers import check_matcher, matches
from steersman.hooks.outputs import PostToolUseOutput
from steersman.hooks.replies import Reply, deny

__all__ = [
    "Log",
    "block_paths",
    "deny_tools",
    "log",
    "only_tools",
    "rate_limit",
    "redact",
    "validate",
]

EventT = TypeVar("EventT", bound=HookEvent)

Pattern = re.Pattern[str]
Redactor = Callable[[str], str]

Checked = bool | str | tuple[bool, str] | None
"""True or None allows; False or a reason denies."""

# Compiled when a guard first needs them: most sessions have none of these guards.
PATH_FIELD = r"(?i)path|file|dir|folder|cwd|uri|url|root|source|target|dest"
COMMAND_FIELD = r"(?i)command|cmd|script|code|args|pattern|glob"
WORD_ENDS = r"[\s;|&<>()'\"`=,{}]+"
HOMES = r"^(?:~[^/]*|\$HOME|\$\{HOME\}|/root|/home/[^/]+|/Users/[^/]+)(?=/|$)"
GLOB = r"[*?\[]"


def deny_tools(*matchers: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny tools by matchers: a name, a list of names, or a pattern.

    A matcher of `Bash` denies every tool that runs commands, such as `Monitor`.
    """
    _check_matchers(matchers)
    denies_commands = any(matches(each, BASH) for each in matchers)

    def guard(event: PreToolUse) -> Reply | None:
        runs_commands = event.tool_name in COMMAND_FIELDS
        named = any(matches(each, event.tool_name) for each in matchers)
        if named or (denies_commands and runs_commands):
            return deny(reason or f"{event.tool_name} is not allowed here.")
        return None

    return guard


def only_tools(*matchers: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny every tool but these. The permissions of these tools do not change."""
    _check_matchers(matchers)

    def guard(event: PreToolUse) -> Reply | None:
        if any(matches(each, event.tool_name) for each in matchers):
            return None
        return deny(reason or f"Only these tools are allowed here: {', '.join(matchers)}.")

    return guard


def validate(
    check: Callable[[str, JsonDict], Checked | Awaitable[Checked]],
) -> Callable[[PreToolUse], Awaitable[Reply | None]]:
    """Deny calls for which `check(tool_name, tool_input)` fails.

    The check returns True or None to allow; False, a reason, or `(False, reason)` to deny.
    """
    if not callable(check):
        raise UsageError("check", check, "a function of a tool's name and input")

    async def guard(event: PreToolUse) -> Reply | None:
        given = check(event.tool_name, event.tool_input)
        found: object = await given if inspect.isawaitable(given) else given
        return _check_reply(event.tool_name, found)

    return guard


def _check_reply(tool: str, found: object) -> Reply | None:
    match found:
        case None | True | (True, str()):
            return None
        case str(reason) | (False, str(reason)) if reason:
            return deny(reason)
        case False | "" | (False, ""):
            return deny(f"This use of {tool} did not pass a check.")
        case _:
            raise TypeError(f"a check returned {type(found).__name__}")


@dataclass(frozen=True, slots=True)
class Log:
    """A hook that only observes; made by `log`."""

    look: Callable[[Any], object]
    hook_kind: Literal["observe"] = "observe"

    def __call__(self, event: HookEvent) -> Any:
        """Call `look` with the event. The session ignores what it returns."""
        return self.look(event)


def log(look: Callable[[EventT], object]) -> Log:
    """Call `look(event)`, sync or async. What it returns or raises does not affect the session."""
    if not callable(look):
        raise UsageError("look", look, "a function of the event")
    return Log(look)


def redact(
    *patterns: str | Pattern, replacement: str = "[redacted]"
) -> Callable[[PostToolUse], Reply | None]:
    """Replace texts in the result of a tool before the model reads it; for `PostToolUse`.

    A `str` is replaced where it occurs literally, a compiled pattern where it matches. The result
    of a tool that failed cannot be changed. Files and processes keep the original text.
    """
    redactor = make_redactor(patterns, replacement)

    def hook(event: PostToolUse) -> Reply | None:
        shown = _redacted(event.tool_response, redactor)
        if shown == event.tool_response:
            return None
        return Reply(hook_specific_output=PostToolUseOutput(updated_tool_output=shown))

    return hook


def block_paths(*paths: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny tools whose input names one of these paths, or a path inside it.

    `/etc` and `~/.ssh` are absolute, `conf/keys` begins at the session's directory, and `.env` or
    `*.pem`, without a slash, match a name in any directory.

    Only the text is checked: `..` is resolved, links are not. The guard reads path-like fields of
    every tool, MCP tools included, and the words of shell commands. It does not see paths that a
    program builds itself (`cd /etc; cat pass*d`, a script, a variable), or files that a search from
    a parent directory finds. Use a sandbox against programs that try to get around it.
    """
    if not paths:
        raise UsageError("paths", "none", "at least one path")
    for each in paths:
        if not (isinstance(each, str) and each.strip("/. ")) and each != "/":  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("paths", each, "texts such as /etc, ~/.ssh, conf/keys or *.pem")

    def guard(event: PreToolUse) -> Reply | None:
        for named in _possible_paths(event.tool_input, ""):
            for path in paths:
                if _is_inside(_absolute(named, event.cwd), path, event.cwd):
                    return deny(reason or f"{path} is off limits.")
        return None

    return guard


def rate_limit(
    calls: int, *, per: float, clock: Callable[[], float]
) -> Callable[[PreToolUse], Reply | None]:
    """Deny tool calls beyond `calls` within `per` seconds of `clock`.

    Use `time.monotonic` as the clock. Calls that this guard denied do not count.
    """
    if isinstance(calls, bool) or not isinstance(calls, int) or calls < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("calls", calls, "a whole number above 0")
    if isinstance(per, bool) or not isinstance(per, int | float) or not per > 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("per", per, "seconds above 0")
    if not callable(clock):
        raise UsageError("clock", clock, "a function that returns seconds, such as time.monotonic")
    taken: deque[float] = deque()

    def guard(_event: PreToolUse) -> Reply | None:
        now = clock()
        while taken and taken[0] <= now - per:
            taken.popleft()
        if len(taken) < calls:
            taken.append(now)
            return None
        wait = taken[0] + per - now
        return deny(f"Too many tool calls: {calls} in {per:g} s. Try again in {wait:.1f} s.")

    return guard


def make_redactor(patterns: tuple[str | Pattern, ...], replacement: str) -> Redactor:
    """Return a function that replaces every match of the patterns in a text."""
    if not patterns:
        raise UsageError("patterns", "none", "at least one text or compiled pattern")
    for each in patterns:
        if not (isinstance(each, re.Pattern) or (isinstance(each, str) and each)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("patterns", each, "texts that are not empty, or compiled patterns")
    if not isinstance(replacement, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("replacement", replacement, "a text")
    found = [re.compile(re.escape(each)) if isinstance(each, str) else each for each in patterns]

    def redactor(text: str) -> str:
        for pattern in found:
            text = pattern.sub(lambda _: replacement, text)
        return text

    return redactor


def _redacted(value: Json, redactor: Redactor) -> Json:
    if isinstance(value, str):
        return redactor(value)
    if is_object(value):
        return {name: _redacted(each, redactor) for name, each in value.items()}
    return [_redacted(each, redactor) for each in value] if is_array(value) else value


def _check_matchers(matchers: tuple[object, ...]) -> None:
    if not matchers:
        raise UsageError("matchers", "none", "at least one name or pattern")
    for each in matchers:
        if each is None:
            raise UsageError("matchers", each, "names and patterns")
        check_matcher(each)


def _possible_paths(value: Json, field: str) -> Iterator[str]:
    """Yield every text of a tool's input that may be a path."""
    if is_object(value):
        for name, each in value.items():
            yield from _possible_paths(each, name)
    elif is_array(value):
        for each in value:
            yield from _possible_paths(each, field)
    elif isinstance(value, str):
        if re.search(COMMAND_FIELD, field):
            yield from filter(None, re.split(WORD_ENDS, value))
        if re.search(PATH_FIELD, field) or value.startswith(("/", "~", "./", "../", "file:")):
            yield value


def _absolute(named: str, cwd: str) -> str:
    """Return the path from the root, or from a home directory as `~`, without `.` and `..`."""
    path = named.removeprefix("file://").replace("\\", "/")
    at_home = re.match(HOMES, path)
    if at_home:
        path = "~" + path[at_home.end() :]
    elif not path.startswith("/"):
        path = f"{cwd}/{path}"
    return _normalized(path)


def _normalized(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            # The root has no parent. The parent of a home directory is not known here.
            parts = parts[:-1] if parts and parts[-1] != "~" else parts
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) if parts and parts[0] == "~" else "/" + "/".join(parts)


def _is_inside(named: str, blocked: str, cwd: str) -> bool:
    if "/" not in blocked and not blocked.startswith("~"):
        return any(fnmatchcase(part, blocked) for part in named.split("/"))
    within = _absolute(blocked, cwd).rstrip("/")
    if named == within or named.startswith(within + "/"):
        return True
    # A shell pattern may expand to any path that begins with the text before the wildcard.
    glob = re.search(GLOB, named)
    start = named[: glob.start()] if glob else None
    return bool(start) and start != "/" and f"{within}/".startswith(str(start))
