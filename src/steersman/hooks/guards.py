"""Ready-made hooks about tools: `hooks.on(PreToolUse)(deny_tools("Bash"))`.

They check names and texts, without I/O. They stop mistakes. They do not stop an attacker who can
run programs: use a sandbox for that.
"""

from __future__ import annotations

import inspect
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from steersman._arguments import check_callback
from steersman._json import Json, JsonDict, is_array, is_object
from steersman._tool_names import BASH, COMMAND_FIELDS
from steersman.errors import Described, UsageError
from steersman.hooks.blocked_paths import Unreadable, find_blocked, parse_blocked
from steersman.hooks.events import HookEvent, PostToolUse, PreToolUse
from steersman.hooks.matchers import check_matcher, check_tool_names, fits_tool
from steersman.hooks.replies import PostToolUseOutput, Reply, deny

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

MOST_SESSIONS = 1000
"""Sessions whose first directory `block_paths` remembers."""


def deny_tools(*matchers: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny tools by matchers: a name, a list of names, or a pattern.

    A matcher of `Bash` denies every tool that runs commands, such as `Monitor`.
    """
    _check_matchers(matchers)
    denies_commands = any(fits_tool(each, BASH) for each in matchers)

    def guard(event: PreToolUse) -> Reply | None:
        runs_commands = event.tool_name in COMMAND_FIELDS
        named = any(fits_tool(each, event.tool_name) for each in matchers)
        if named or (denies_commands and runs_commands):
            return deny(reason or f"{event.tool_name} is not allowed here.")
        return None

    return guard


def only_tools(*matchers: str, reason: str | None = None) -> Callable[[PreToolUse], Reply | None]:
    """Deny every tool but these. The permissions of these tools do not change."""
    _check_matchers(matchers)

    def guard(event: PreToolUse) -> Reply | None:
        if any(fits_tool(each, event.tool_name) for each in matchers):
            return None
        return deny(reason or f"Only these tools are allowed here: {', '.join(matchers)}.")

    return guard


def validate(
    check: Callable[[str, JsonDict], Checked | Awaitable[Checked]],
) -> Callable[[PreToolUse], Awaitable[Reply | None]]:
    """Deny calls for which `check(tool_name, tool_input)` fails.

    The check returns True or None to allow; False, a reason, or `(False, reason)` to deny.
    """
    check_callback("check", check, "tool_name", "tool_input")

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
    check_callback("look", look, "the event")
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


def block_paths(
    *paths: str, reason: str | None = None, home: str = ""
) -> Callable[[PreToolUse], Reply | None]:
    """Deny tools whose input names one of these paths, or a path inside it.

    `/etc` and `~/.ssh` are absolute. `conf/keys` begins at the session's first directory, and also
    at the current one. `.env` or `*.pem`, without a slash, match a name in any directory. `home` is
    the home directory, if it is not `/root` or inside a directory called `home` or `Users`; names
    with a dot, such as `~/.ssh`, are blocked in every directory.

    Only the text is checked: `..` is resolved, links are not, and case is ignored. The guard reads
    path-like fields of every tool, MCP tools included, and the words of shell commands, with
    their quotes, wildcards, braces, `$HOME`, `$PWD` and `cd`. A command of more than 32,768
    characters is denied, and so is an input with too much to compare. The guard does not see paths
    that a program builds itself (a script, other variables), or files that a search from a parent
    directory finds. Use a sandbox against programs that try to get around it.
    """
    if not paths:
        raise UsageError("paths", Described("none"), "at least one path")
    for each in paths:
        if not (isinstance(each, str) and each.strip("/. ")) and each != "/":  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("paths", each, "texts such as /etc, ~/.ssh, conf/keys or *.pem")
    if not isinstance(home, str) or home[:1] not in ("", "/"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("home", home, "an absolute path")
    blocked = [parse_blocked(each, home) for each in paths]
    first: OrderedDict[str, str] = OrderedDict()

    def guard(event: PreToolUse) -> Reply | None:
        begun = first.setdefault(event.session_id, event.cwd)
        if len(first) > MOST_SESSIONS:
            first.popitem(last=False)
        cwds = tuple(dict.fromkeys((event.cwd, begun)))
        try:
            found = find_blocked(blocked, event.tool_input, cwds, home)
        except Unreadable as why:
            return deny(reason or f"Not checked for blocked paths: {why}.")
        return None if found is None else deny(reason or f"{found} is off limits.")

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
        raise UsageError("patterns", Described("none"), "at least one text or compiled pattern")
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
        raise UsageError("matchers", Described("none"), "at least one name or pattern")
    for each in matchers:
        if each is None:
            raise UsageError("matchers", each, "names and patterns")
        check_matcher(each)
        check_tool_names(str(each))
