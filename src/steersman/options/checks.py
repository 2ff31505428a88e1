"""Checks of values that a caller gives, and the words that some options accept.

A `Check` takes the argument's name and the value. It raises `UsageError`, which names the argument,
what was given and what is allowed; or it returns nothing. Values are `object` here, also where the
argument has a narrower type: callers without a type checker pass anything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeGuard, get_args

from steersman._json import Json, JsonObject, is_mapping, is_sequence
from steersman._tool_names import near_miss
from steersman.errors import Described, UsageError
from steersman.options.servers import is_server

PermissionMode = Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]
SettingSource = Literal["user", "project", "local"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]

Check = Callable[[str, object], None]

KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
LONGEST_WORD = 1000
LARGEST = 2**53
LONGEST_FLAG = 4096
SKILL = re.compile(r"[^\s(),*][^(),*]*(?<!\s)")
RULE = re.compile(r"(?P<tool>[A-Za-z0-9_*:.\-]+)(\((?P<content>.*)\))?", re.DOTALL)


def must_be(allowed: str, fits: Callable[[object], bool], *, private: bool = False) -> Check:
    """Return a check that refuses values for which `fits` is false.

    `allowed` describes the allowed values in the error. With `private` the error shows the type of
    the value instead of the value, which may hold secrets.
    """

    def check(name: str, given: object) -> None:
        if not fits(given):
            raise UsageError(name, Described.kind_of(given) if private else given, allowed)

    return check


def instance_of(kind: type, allowed: str) -> Check:
    """Return a check that refuses everything but instances of `kind`."""
    return must_be(allowed, lambda given: isinstance(given, kind))


def each(check: Check) -> Check:
    """Return a check that applies `check` to every item; `None` has none."""

    def check_all(name: str, given: object) -> None:
        for position, value in enumerate(() if given is None else as_tuple(name, given)):
            check(f"{name}[{position}]", value)

    return check_all


def optional(check: Check) -> Check:
    """Return a check that applies `check` to everything but `None`."""

    def check_given(name: str, given: object) -> None:
        if given is not None:
            check(name, given)

    return check_given


def callback(*called_with: str) -> Check:
    """Return a check that refuses what cannot be called with these arguments."""

    def check(name: str, given: object) -> None:
        from steersman._arguments import check_callback  # noqa: PLC0415 - most options have none

        check_callback(name, given, *called_with)

    return check


def one_of(*allowed: str) -> Check:
    """Return a check that refuses everything but these strings."""
    return must_be("one of " + ", ".join(allowed), lambda given: given in allowed)


def mapping_of(keys: re.Pattern[str], allowed: str, value_check: Check) -> Check:
    """Return a check of a mapping: `keys` must match each key, `value_check` passes each value."""

    def check(name: str, given: object) -> None:
        for key, value in as_mapping(name, given).items():
            if not _matches(key, keys):
                raise UsageError(f"{name} key", key, allowed)
            value_check(f"{name}[{key!r}]", value)

    return check


def as_mapping(name: str, given: object) -> JsonObject:
    """Return `given`, which must be a mapping; the error does not show the value."""
    mapping(name, given)
    assert is_mapping(given)
    return given


def as_tuple(name: str, given: object) -> tuple[object, ...]:
    """Return the items of `given` as a tuple.

    Any iterable will do, except a string or a mapping: passing one of those is a common mistake.
    """
    if _is_list_like(given):
        return tuple(given)
    raise UsageError(name, given, "a list or tuple", hint=f"write {name}=[...]")


def rule(name: str, given: object) -> None:
    """Check one permission rule: `Read`, `Bash(git log:*)`, `mcp__calc__*`.

    A comma outside brackets is refused, because the CLI would read two rules.
    """
    match = RULE.fullmatch(given) if isinstance(given, str) else None
    if match is None or not _is_balanced(match["content"] or ""):
        raise UsageError(
            name,
            given,
            "one rule: a tool's name, or a name and (content), with matching brackets",
        )
    _refuse_near_miss(name, match["tool"])


def tool_name(name: str, given: object) -> None:
    """Check the name of a tool; a misspelt built-in tool is refused."""
    name_of_tool(name, given)
    _refuse_near_miss(name, str(given))


def _refuse_near_miss(name: str, tool: str) -> None:
    meant = near_miss(tool)
    if meant is not None:
        raise UsageError(name, tool, "a tool's name", hint=f"did you mean {meant}?")


def did_you_mean(given: object, known: Sequence[str]) -> str:
    """Return a hint that lists up to three names similar to `given`; empty if none is similar."""
    from steersman import _arguments  # noqa: PLC0415 - only for a mistake

    return _arguments.did_you_mean(given, known)


def plain(name: str, given: object) -> Json:
    """Return a copy of `given` made of plain JSON values.

    Raises `UsageError` with the place of a value that JSON cannot represent.
    """
    if is_mapping(given):
        return {
            _text(f"a key of {name}", key): plain(f"{name}[{key!r}]", given[key]) for key in given
        }
    if is_sequence(given):
        return [plain(f"{name}[{position}]", each) for position, each in enumerate(given)]
    if given is None or isinstance(given, str | bool | int | float):
        return given
    raise UsageError(
        name, Described.kind_of(given), "a mapping, list, string, number, True, False or None"
    )


def _text(name: str, given: object) -> str:
    if isinstance(given, str):
        return given
    raise UsageError(name, Described.kind_of(given), "a string")


def _is_list_like(given: object) -> TypeGuard[Iterable[object]]:
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


def _matches(given: object, pattern: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(given, str) and pattern.fullmatch(given) is not None


def _is_balanced(content: str) -> bool:
    depth = 0
    for character in content:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0 and (content == "" or content.isprintable())


def _is_number(given: object) -> TypeGuard[float]:
    return isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= LARGEST


def is_count(given: object) -> bool:
    """Whether `given` is a whole number above 0."""
    return isinstance(given, int) and _is_number(given) and given > 0


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and _is_number(given) and given >= 0


def _is_skill(given: object) -> bool:
    return _is_word(given) and SKILL.fullmatch(given) is not None


def _is_header(given: object) -> bool:
    return (
        isinstance(given, str)
        and len(given) <= LONGEST_WORD
        and given.isprintable()
        and (not given or max(given) <= "\xff")
    )


def _is_word(given: object) -> TypeGuard[str]:
    return isinstance(given, str) and 0 < len(given) <= LONGEST_WORD and given.isprintable()


def _is_path(given: object) -> bool:
    is_one = isinstance(given, str) or is_path(given)
    return is_one and str(given) != "" and _can_be_passed(str(given))


def is_path(given: object) -> bool:
    """Whether `given` is a `pathlib.Path`."""
    # Importing `pathlib` is slow. A caller that has a `Path` has already imported it.
    pathlib = sys.modules.get("pathlib")
    return pathlib is not None and isinstance(given, pathlib.Path)


def is_path_or_json(given: object) -> bool:
    """Whether `given` is a path, or a string that begins like a JSON object."""
    return _is_path(given) or (isinstance(given, str) and given.lstrip().startswith("{"))


def _can_be_passed(text: str) -> bool:
    """Whether the operating system can pass `text` to a process, as an argument or a variable.

    Bytes that are not UTF-8 are allowed: Python represents them as lone surrogates.
    """
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _is_flag_value(given: object) -> bool:
    return given is None or (
        isinstance(given, str) and len(given) <= LONGEST_FLAG and _can_be_passed(given)
    )


def _is_server(given: object) -> bool:
    if not is_mapping(given):
        return is_server(given)
    kind = given.get("type", "stdio")
    if kind == "stdio":
        return isinstance(given.get("command"), str)
    return kind in ("http", "sse") and isinstance(given.get("url"), str)


text = must_be("a string", lambda given: isinstance(given, str))
non_empty = must_be(
    "a string that is not empty", lambda given: isinstance(given, str) and given != ""
)
word = must_be("a printable string of 1 to 1000 characters", _is_word)
flag = must_be("True or False", lambda given: isinstance(given, bool))
count = must_be("a whole number above 0", is_count)
whole = must_be("a whole number, 0 or more", _is_whole)
positive = must_be("a number above 0", lambda given: _is_number(given) and given > 0)
not_negative = must_be("a number, 0 or more", lambda given: _is_number(given) and given >= 0)
path = must_be("a path (a string or a pathlib.Path), without NUL", _is_path)
callable_ = must_be("a function or another callable", callable)
uuid = must_be("a UUID, such as str(uuid.uuid4())", lambda given: _matches(given, UUID))
mapping = must_be("a mapping", lambda given: isinstance(given, Mapping), private=True)
name_of_tool = must_be("a tool's name", lambda given: _matches(given, KEY))
permission_mode = one_of(*get_args(PermissionMode))
setting_source = one_of(*get_args(SettingSource))
effort = one_of(*get_args(Effort))
effort_or_number = must_be(
    f"one of {', '.join(get_args(Effort))}, or a whole number above 0",
    lambda given: given in get_args(Effort) or is_count(given),
)
skill_name = must_be(
    "a skill's exact name, or plugin:skill; without brackets, commas and wildcards", _is_skill
)
header = must_be("a printable string of at most 1000 characters, each at most U+00FF", _is_header)
variable_value = must_be(
    "a string without NUL",
    lambda given: isinstance(given, str) and _can_be_passed(given),
    private=True,
)
flag_value = must_be(
    "a string of at most 4096 characters without NUL, or None for a flag without a value",
    _is_flag_value,
    private=True,
)
server = must_be(
    "a Toolbox or another ToolServer, a server of the mcp package, or a configuration:"
    ' {"command": ..., "args": [...]},'
    ' {"type": "http", "url": ...}, {"type": "sse", "url": ...} or {"type": "sdk", ...}',
    _is_server,
    private=True,
)
