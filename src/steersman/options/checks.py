"""What a value may be, said once.

A check names the argument, what was given and what is allowed, or says nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from steersman._json import is_mapping, is_sequence
from steersman.errors import UsageError
from steersman.options.servers import lowlevel_server

__all__ = [
    "KEY",
    "UUID",
    "Check",
    "as_tuple",
    "callable_",
    "count",
    "did_you_mean",
    "each",
    "effort",
    "effort_or_number",
    "filled",
    "flag",
    "flag_value",
    "header",
    "is_count",
    "is_path_or_json",
    "mapping",
    "mapping_of",
    "must_be",
    "name_of_tool",
    "not_negative",
    "one_of",
    "optional",
    "path",
    "permission_mode",
    "plain",
    "positive",
    "rule",
    "server",
    "skill_name",
    "text",
    "uuid",
    "variable_value",
    "whole",
    "word",
]

Check = Callable[[str, Any], None]

KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
LONGEST_WORD = 1000
LARGEST = 2**53
LONGEST_FLAG = 4096
EFFORTS = ("low", "medium", "high", "xhigh", "max")
SKILL = re.compile(r"[^\s(),*][^(),*]*(?<!\s)")
RULE = re.compile(r"(?P<tool>[A-Za-z0-9_*:.\-]+)(\((?P<content>.*)\))?", re.DOTALL)


def must_be(allowed: str, fits: Callable[[Any], bool], *, private: bool = False) -> Check:
    """Refuse what does not fit; a private value is not shown."""

    def check(name: str, given: Any) -> None:
        if not fits(given):
            raise UsageError(name, _kind_of(given) if private else given, allowed)

    return check


def each(check: Check) -> Check:
    """Check every item."""

    def check_all(name: str, given: Any) -> None:
        for position, value in enumerate(given or ()):
            check(f"{name}[{position}]", value)

    return check_all


def optional(check: Check) -> Check:
    """Let `None` pass."""

    def check_given(name: str, given: Any) -> None:
        if given is not None:
            check(name, given)

    return check_given


def one_of(*words: str) -> Check:
    """Allow just these."""
    return must_be("one of " + ", ".join(words), lambda given: given in words)


def mapping_of(keys: re.Pattern[str], allowed: str, value_check: Check) -> Check:
    """Check each key and each value of a mapping."""

    def check(name: str, given: Any) -> None:
        mapping(name, given)
        for key, value in cast("Mapping[Any, Any]", given).items():
            if not (isinstance(key, str) and keys.fullmatch(key)):
                raise UsageError(f"{name} key", key, allowed)
            value_check(f"{name}[{key!r}]", value)

    return check


def as_tuple(name: str, given: Any) -> Any:
    """A tuple of `given`, which may be any sequence but a text: that one is a usual mistake."""
    if _is_no_list(given):
        raise UsageError(name, given, "a list or tuple", hint=f"write {name}=[...]")
    return tuple(given)


def rule(name: str, given: Any) -> None:
    """One rule: `Read`, `Bash(git log:*)`, `mcp__calc__*`. A comma cannot make two of it."""
    match = RULE.fullmatch(given) if isinstance(given, str) else None
    if match is None or not _is_balanced(match["content"] or ""):
        raise UsageError(
            name,
            given,
            "one rule: a tool's name, or a name and (its content), with paired brackets",
        )


def did_you_mean(given: object, known: Sequence[str]) -> str:
    """A hint at the names that look most like `given`; empty if none does."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

    near = get_close_matches(str(given), known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else ""


def plain(name: str, given: Any) -> Any:
    """`given` as plain JSON values, copied; a `UsageError` names the place that is none."""
    if is_mapping(given):
        return {
            _text(f"a key of {name}", key): plain(f"{name}[{key!r}]", given[key]) for key in given
        }
    if is_sequence(given):
        return [plain(f"{name}[{position}]", each) for position, each in enumerate(given)]
    if given is None or isinstance(given, str | bool | int | float):
        return given
    raise UsageError(name, _kind_of(given), "a mapping, list, text, number, True, False or None")


def _text(name: str, given: object) -> str:
    if isinstance(given, str):
        return given
    raise UsageError(name, _kind_of(given), "a text")


def _kind_of(given: object) -> str:
    return f"a {type(given).__name__}"


def _is_no_list(given: object) -> bool:
    return isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable)


def _is_balanced(content: str) -> bool:
    depth = 0
    for character in content:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0 and (content == "" or content.isprintable())


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= LARGEST


def is_count(given: Any) -> bool:
    """Whether it is a whole number above 0."""
    return isinstance(given, int) and _is_number(given) and given > 0


def _is_whole(given: Any) -> bool:
    return isinstance(given, int) and _is_number(given) and given >= 0


def _is_skill(given: Any) -> bool:
    return _is_word(given) and SKILL.fullmatch(given) is not None


def _is_header(given: Any) -> bool:
    return (
        isinstance(given, str)
        and len(given) <= LONGEST_WORD
        and given.isprintable()
        and (not given or max(given) <= "\xff")
    )


def _is_word(given: Any) -> bool:
    return isinstance(given, str) and 0 < len(given) <= LONGEST_WORD and given.isprintable()


def _is_path(given: Any) -> bool:
    is_one = isinstance(given, str) or is_path(given)
    return is_one and str(given) != "" and _can_be_passed(str(given))


def is_path(given: object) -> bool:
    """Whether it is a `Path`."""
    # Slow to load; whoever has one has loaded it.
    pathlib = sys.modules.get("pathlib")
    return pathlib is not None and isinstance(given, pathlib.Path)


def is_path_or_json(given: Any) -> bool:
    """Whether it is a path, or the text of a JSON object."""
    return _is_path(given) or (isinstance(given, str) and given.lstrip().startswith("{"))


def _can_be_passed(text: str) -> bool:
    """Whether the system can hand `text` to a process.

    It may hold bytes that are no UTF-8, which Python writes as lone surrogates of their own.
    """
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _is_flag_value(given: Any) -> bool:
    return given is None or (
        isinstance(given, str) and len(given) <= LONGEST_FLAG and _can_be_passed(given)
    )


def _is_server(given: Any) -> bool:
    if not isinstance(given, Mapping):
        return callable(getattr(given, "handle", None)) or lowlevel_server(given) is not None
    config = cast("Mapping[str, Any]", given)
    kind = config.get("type", "stdio")
    return bool(
        (kind == "stdio" and isinstance(config.get("command"), str))
        or (kind in ("http", "sse") and isinstance(config.get("url"), str))
    )


text = must_be("a text", lambda given: isinstance(given, str))
filled = must_be("a text that says something", lambda given: isinstance(given, str) and given != "")
word = must_be("a printable text of 1 to 1000 characters", _is_word)
flag = must_be("True or False", lambda given: isinstance(given, bool))
count = must_be("a whole number above 0", is_count)
whole = must_be("a whole number, 0 or more", _is_whole)
positive = must_be("a number above 0", lambda given: _is_number(given) and given > 0)
not_negative = must_be("a number, 0 or more", lambda given: _is_number(given) and given >= 0)
path = must_be("a path, without NUL", _is_path)
callable_ = must_be("a function", callable)
uuid = must_be(
    "a UUID, such as str(uuid.uuid4())",
    lambda given: isinstance(given, str) and UUID.fullmatch(given) is not None,
)
mapping = must_be("a mapping", lambda given: isinstance(given, Mapping), private=True)
name_of_tool = must_be(
    "a tool's name", lambda given: isinstance(given, str) and bool(KEY.fullmatch(given))
)
permission_mode = one_of("default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan")
effort = one_of(*EFFORTS)
effort_or_number = must_be(
    f"one of {', '.join(EFFORTS)}, or a whole number above 0",
    lambda given: given in EFFORTS or is_count(given),
)
skill_name = must_be(
    "a skill's exact name, or plugin:skill; without brackets, commas and wildcards", _is_skill
)
header = must_be("a printable text of at most 1000 characters up to U+00FF", _is_header)
variable_value = must_be(
    "a text without NUL",
    lambda given: isinstance(given, str) and _can_be_passed(given),
    private=True,
)
flag_value = must_be(
    "a text of at most 4096 characters without NUL, or None for a bare flag",
    _is_flag_value,
    private=True,
)
server = must_be(
    "a Toolbox or another ToolServer, a server of the mcp package, or a configuration:"
    ' {"command": ..., "args": [...]},'
    ' {"type": "http", "url": ...} or {"type": "sse", "url": ...}',
    _is_server,
    private=True,
)
