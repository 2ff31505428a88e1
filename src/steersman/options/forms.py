"""Options whose values have a form of their own: how they are checked and how they are stored.

`table` lists which option uses which function. Stored values are immutable where that is possible,
so a list is stored as a tuple.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeGuard

from steersman import _json
from steersman._json import JsonObject, is_mapping, is_sequence
from steersman.errors import Described, UsageError
from steersman.options import checks
from steersman.options.servers import read_server

if TYPE_CHECKING:
    from steersman.hooks.registry import Hooks

KEY_ALLOWED = "up to 64 letters, digits, - and _"
PRESET = {"type": "preset", "preset": "claude_code"}
DISPLAYS = ("summarized", "omitted", "highlights")

_MODEL = re.compile(r"[^\s,]+")
_DEBUG = re.compile(r"[\w!,:-]{1,200}")
_THINKING_KEYS: Mapping[str, tuple[str, ...]] = {
    "adaptive": ("display",),
    "enabled": ("budget_tokens", "display"),
    "disabled": (),
}
_QUESTION_SWITCHES = ("extendedQuestions", "optionalDescriptions")
_PREVIEWS = (("previewFormat", "markdown"), ("previewFormat", "html"))


# Stored forms


def tuple_unless(*kinds: type) -> Callable[[str, object], object]:
    """Return a normalizer that makes a tuple of everything but `None` and instances of `kinds`."""

    def normalize(name: str, given: object) -> object:
        return given if given is None or isinstance(given, kinds) else checks.as_tuple(name, given)

    return normalize


def tuple_if_list(_name: str, given: object) -> object:
    """Return a list as a tuple, and everything else unchanged."""
    return tuple(given) if is_sequence(given) else given


def tuple_unless_all(name: str, given: object) -> object:
    """Return `None` and `"all"` unchanged, and everything else as a tuple."""
    return given if given is None or given == "all" else checks.as_tuple(name, given)


def read_servers(name: str, given: object) -> object:
    """Return the servers in a JSON text or a mapping, and the path of a file unchanged."""
    if is_mapping(given):
        return {key: read_server(f"{name}[{key!r}]", each) for key, each in given.items()}
    if not (isinstance(given, str) and given.lstrip().startswith("{")):
        return given
    try:
        found = _json.loads(given.encode("utf-8", "surrogatepass"))
        servers: object = found["mcpServers"]
    except (ValueError, KeyError):
        raise UsageError(
            name,
            Described("JSON of another form"),
            'JSON of the form {"mcpServers": {...}}, a mapping, or the path of a file',
        ) from None
    return servers


def empty_hooks() -> Hooks:
    """Return a registry without hooks."""
    return _hooks_class()()


def read_hooks(name: str, given: object) -> Hooks:
    """Return a `Hooks` unchanged, and a mapping in the official SDKs' form as a `Hooks`."""
    if _is_hooks(given):
        return given
    from steersman.hooks.registry import hooks_from  # noqa: PLC0415 - for the official SDKs' form

    return hooks_from(name, given)


def _hooks_class() -> type[Hooks]:
    from steersman.hooks.registry import Hooks  # noqa: PLC0415 - large: read with the first options

    return Hooks


def _is_hooks(given: object) -> TypeGuard[Hooks]:
    return isinstance(given, _hooks_class())


# Checks


def check_fallback(name: str, given: object) -> None:
    """Check `fallback_model`: one model, or a list of at least one."""
    if isinstance(given, str):
        checks.word(name, given)
    elif not given:
        raise UsageError(name, given, "a model's name, or a list of at least one name")
    else:
        checks.each(model_name)(name, given)


def check_thinking(name: str, given: object) -> None:
    """Check `thinking`: its type, and the keys that this type has."""
    if not is_mapping(given) or given.get("type") not in tuple(_THINKING_KEYS):
        raise UsageError(name, given, "a mapping whose type is adaptive, enabled or disabled")
    allowed = ("type", *_THINKING_KEYS[given["type"]])
    for key in given:
        if key not in allowed:
            raise UsageError(f"{name} key", key, ", ".join(allowed))
    if given["type"] == "enabled":
        checks.count(f"{name}['budget_tokens']", given.get("budget_tokens"))
    if "display" in given:
        checks.one_of(*DISPLAYS)(f"{name}['display']", given["display"])


def check_tools(name: str, given: object) -> None:
    """Check `tools`: names of tools, or the preset of the CLI."""
    if not is_mapping(given):
        checks.each(checks.tool_name)(name, given)
    elif given != PRESET:
        raise UsageError(name, dict(given), f"a list of tool names, or {PRESET}")


def check_servers(name: str, given: object) -> None:
    """Check `mcp_servers`: servers by key, or the path of a configuration file."""
    if is_mapping(given):
        checks.mapping_of(checks.KEY, KEY_ALLOWED, checks.server)(name, given)
    elif not checks.is_path_or_json(given):
        raise UsageError(
            name, Described.kind_of(given), "a mapping, or the path of a configuration file"
        )


def check_skills(name: str, given: object) -> None:
    """Check `skills`: names, `"all"`, or `None`."""
    if given not in (None, "all"):
        checks.each(checks.skill_name)(name, given)


def check_agent(place: str, given: object) -> None:
    """Check one value of `agents`."""
    from steersman.options.agents import agent_of  # noqa: PLC0415 - most programs have none

    agent_of(place, given)


def check_plugin(place: str, given: object) -> None:
    """Check one item of `plugins`."""
    from steersman.options.plugins import plugin_of  # noqa: PLC0415 - most programs have none

    plugin_of(place, given)


def check_journal(name: str, given: object) -> None:
    """Check `journal`: a path, or a `Sink`."""
    if isinstance(given, str) or checks.is_path(given):
        checks.path(name, given)
    elif not _is_sink(given):
        hint = "pass the path of the file instead" if isinstance(given, io.IOBase) else ""
        allowed = "a path, or a Sink: an object with write() and close()"
        raise UsageError(name, given, allowed, hint=hint)


def _is_sink(given: object) -> bool:
    """Whether `given` has the methods of a `Sink`. Classes and open files have them too."""
    return (
        not isinstance(given, type | io.IOBase)
        and callable(getattr(given, "write", None))
        and callable(getattr(given, "close", None))
    )


def session_store(name: str, given: object) -> None:
    """Check `session_store`: an object with the methods of a `SessionStore`."""
    if isinstance(given, type) or not _has_methods("append", "load")(given):
        hint = "pass an instance of the class" if isinstance(given, type) else ""
        allowed = "a SessionStore: an object with append(key, entries) and load(key)"
        raise UsageError(name, given, allowed, hint=hint)


def _has_methods(*names: str) -> Callable[[object], bool]:
    return lambda given: all(callable(getattr(given, name, None)) for name in names)


def _are_texts(given: object) -> bool:
    return is_sequence(given) and all(isinstance(each, str) for each in given)


def _are_keys(given: object) -> bool:
    return is_sequence(given) and all(
        isinstance(each, str) and checks.KEY.fullmatch(each) for each in given
    )


def _may_have(given: JsonObject, **kinds: type) -> bool:
    """Whether `given` has no keys but `type` and these, each with a value of its kind."""
    return all(
        key == "type" or (key in kinds and isinstance(given[key], kinds[key])) for key in given
    )


def _is_prompt_text(given: object) -> bool:
    return isinstance(given, str) or (_are_texts(given) and bool(given))


def _is_prompt(given: object) -> bool:
    if not is_mapping(given):
        return _is_prompt_text(given)
    if given.get("preset") == "claude_code" and given.get("type", "preset") == "preset":
        return _may_have(
            given, preset=str, append=str, exclude_dynamic_sections=bool, snapshot=bool
        )
    if given.get("type") == "custom":
        is_prompt = _is_prompt_text(given.get("prompt"))
        return is_prompt and _may_have(given, prompt=object, snapshot=bool)
    path = given.get("path")
    is_file = given.get("type") == "file" and isinstance(path, str) and path != ""
    return is_file and _may_have(given, path=str)


def _is_tool_config(given: object) -> bool:
    question = given.get("askUserQuestion") if is_mapping(given) and len(given) == 1 else None
    return is_mapping(question) and all(
        isinstance(value, bool) if key in _QUESTION_SWITCHES else (key, value) in _PREVIEWS
        for key, value in question.items()
    )


def _is_task_budget(given: object) -> bool:
    return is_mapping(given) and list(given) == ["total"] and checks.is_count(given["total"])


def _is_output_format(given: object) -> bool:
    return (
        is_mapping(given) and given.get("type") == "json_schema" and is_mapping(given.get("schema"))
    )


def _is_model(given: object) -> bool:
    return (
        isinstance(given, str)
        and _MODEL.fullmatch(given) is not None
        and given.isprintable()
        and len(given) <= checks.LONGEST_WORD
    )


def _is_policy(given: object) -> bool:
    # Importing the policy is slow. A caller that has a `Policy` has already imported it.
    module = sys.modules.get("steersman.permissions.policy")
    return module is not None and isinstance(given, module.Policy)


def _is_debug(given: object) -> bool:
    if isinstance(given, str):
        return _DEBUG.fullmatch(given) is not None
    return isinstance(given, bool)


system_prompt = checks.must_be(
    'a string, a list of strings, {"type": "preset", "preset": "claude_code", "append": ...},'
    ' {"type": "custom", "prompt": ...} or {"type": "file", "path": ...}',
    _is_prompt,
)
beta_name = checks.must_be("a beta's name, without commas and spaces", _is_model)
model_name = checks.must_be("a model's name, without commas and spaces", _is_model)
task_budget = checks.must_be('{"total": N}, with N a whole number above 0', _is_task_budget)
output_format = checks.must_be('{"type": "json_schema", "schema": {...}}', _is_output_format)
tool_config = checks.must_be(
    '{"askUserQuestion": {...}} with previewFormat ("markdown" or "html"), extendedQuestions or'
    " optionalDescriptions (True or False)",
    _is_tool_config,
)
require = checks.must_be(
    "True, False, or a list of keys of mcp_servers",
    lambda given: isinstance(given, bool) or _are_keys(given),
)
policy = checks.must_be("a Policy value", _is_policy)
inbox = checks.must_be("an Inbox", _has_methods("open", "close"))
hooks = checks.must_be("a Hooks value", _is_hooks)
inherit_env = checks.must_be(
    "None, True, False, or a list of names of variables",
    lambda given: given is None or isinstance(given, bool) or _are_texts(given),
)
settings = checks.must_be(
    "a path, a JSON object as a string, or a mapping",
    lambda given: is_mapping(given) or checks.is_path_or_json(given),
    private=True,
)
debug = checks.must_be("True, False, or categories such as 'hooks,mcp'", _is_debug)
sink = checks.must_be("a Sink: an object with write() and close()", _is_sink)
