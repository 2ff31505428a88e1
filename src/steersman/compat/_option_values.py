"""The values of single options, from the official form to that of a session."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._json import JsonDict, is_mapping, is_sequence
from steersman._tool_names import BASH, near_miss
from steersman.compat._runtime import Call, call_here
from steersman.compat._warnings import warn
from steersman.options.agents import AgentDefinition
from steersman.options.checks import UUID, plain
from steersman.options.fields import Options

if TYPE_CHECKING:
    from steersman.compat._shapes.options import ClaudeAgentOptions

ALL_SOURCES = ("user", "project", "local")
SKILL_SOURCES = ("user", "project")
PRESET: Mapping[str, str] = {"type": "preset", "preset": "claude_code"}

_NOT_IN_SKILLS = re.compile("[(),\x00-\x1f\x7f\ufeff]")


def check(options: ClaudeAgentOptions) -> None:
    """Refuse what the official SDK refuses. Raises `ValueError`."""
    if options.can_use_tool is not None and options.permission_prompt_tool_name:
        raise ValueError("pass can_use_tool or permission_prompt_tool_name, not both")
    store = options.session_store
    if store is None:
        return
    if options.enable_file_checkpointing:
        raise ValueError(
            "session_store: pass no store with enable_file_checkpointing=True; copies of files stay"
            " on this machine"
        )
    listing = getattr(store, "list_sessions", None)
    if options.continue_conversation and not options.resume and not _is_written(listing):
        raise ValueError(
            "continue_conversation needs a session_store with list_sessions(), which finds the"
            " latest conversation"
        )


def _is_written(method: object) -> bool:
    from steersman.ports import SessionStore  # noqa: PLC0415 - few sessions have a store

    return callable(method) and getattr(method, "__func__", None) is not SessionStore.list_sessions


# The prompt and the model


def system_prompt(given: Any) -> Any:
    """Return the system prompt; None is the empty one, not that of the CLI."""
    if given is None:
        return ""
    if not is_mapping(given):
        return given if isinstance(given, str) else tuple(given)
    if given.get("type") == "custom":
        return _only(given, "type", "prompt", "snapshot")
    if given.get("type") == "file":
        return _only(given, "type", "path")
    if given.get("type") != "preset" or given.get("preset") != "claude_code":
        warn(f"system_prompt: {dict(given)!r} is no known form; the CLI uses its own prompt")
    known = _only(given, "append", "exclude_dynamic_sections", "snapshot")
    return {**PRESET, **known} if known else None


def _only(given: Mapping[str, Any], *keys: str) -> JsonDict:
    return {key: given[key] for key in keys if given.get(key) is not None}


def thinking(given: Any, tokens: int | None) -> dict[str, Any]:
    """Return `thinking` and `max_thinking_tokens`; if both are given, the first counts."""
    if given is None:
        return {"thinking": None, "max_thinking_tokens": tokens}
    kind = given["type"]
    if tokens is not None:
        warn("max_thinking_tokens has no effect with thinking; leave it out")
    if kind not in ("adaptive", "enabled", "disabled"):
        warn(f"thinking: {kind!r} is no known type; the CLI decides")
        return {"thinking": None, "max_thinking_tokens": None}
    keys = {"adaptive": ("display",), "enabled": ("budget_tokens", "display"), "disabled": ()}
    if kind == "enabled" and given.get("budget_tokens") is None:
        raise ValueError("thinking: pass budget_tokens with the type 'enabled', or use 'adaptive'")
    return {"thinking": _only(given, "type", *keys[kind]), "max_thinking_tokens": None}


def output_format(given: Any) -> JsonDict | None:
    """Return the JSON schema of the output; None for other forms, which have no effect."""
    if given is None:
        return None
    if is_mapping(given) and given.get("type") == "json_schema" and is_mapping(given.get("schema")):
        return dict(given)
    warn('output_format has no effect: it is not {"type": "json_schema", "schema": {...}}')
    return None


def settle_models(words: dict[str, Any]) -> None:
    """Remove the main model from the fallbacks, where it cannot help."""
    given, model = words["fallback_model"], words["model"]
    if not given:
        return
    names = [each.strip() for each in given.split(",")] if isinstance(given, str) else [*given]
    others = [name for name in names if name != model]
    if len(others) < len(names):
        warn(f"fallback_model: {model!r} is the main model too, and is left out")
        words["fallback_model"] = ",".join(others) or None


# Tools


def tools(given: Any) -> Any:
    """Return the built-in tools; what is no list is the CLI's default set."""
    if given is None:
        return None
    if is_sequence(given):
        names = tuple(map(str, given))
        _warn_of_spelling("tools", names)
        return names
    if given != PRESET:
        warn(f"tools: {given!r} is no list of names; the CLI uses its default set")
    return dict(PRESET)


def rules(option: str, given: Any) -> tuple[str, ...]:
    """Return single rules; the CLI splits a text at commas and spaces outside brackets."""
    if isinstance(given, str):
        warn(f"{option}: pass a list of rules, not a text")
        given = [given]
    found = tuple(rule for text in given or () for rule in _split(str(text)))
    _warn_of_spelling(option, found)
    return found


def _warn_of_spelling(option: str, given: Iterable[str]) -> None:
    for rule in given:
        meant = near_miss(rule.partition("(")[0])
        if meant is not None:
            warn(f"{option}: there is no tool for {rule!r}; did you mean {meant}?")


def _split(text: str) -> list[str]:
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")" and depth > 0)
        if depth == 0 and character in ", ":
            found.append("")
        else:
            found[-1] += character
    return [rule for rule in found if rule]


def settle_denials(words: dict[str, Any]) -> None:
    """Pass denials as they are: steersman's option also removes tools like Bash with Bash."""
    denied = words["disallowed_tools"]
    if BASH in denied and "disallowedTools" not in words["extra_args"]:
        words["extra_args"]["disallowedTools"] = ",".join(denied)
        words["disallowed_tools"] = ()


def servers(given: Any, call: Call = call_here) -> Any:
    """Return the MCP servers by key, or the path of a configuration file.

    `call` calls the functions of tools in this process.
    """
    if not given:
        return {}
    if not is_mapping(given):
        return given
    return {str(key): _server(config, call) for key, config in given.items()}


def _server(config: Any, call: Call) -> Any:
    if not (is_mapping(config) and config.get("type") == "sdk" and "instance" in config):
        return config
    instance, bind = config["instance"], getattr(config["instance"], "bound", None)
    if bind is None:
        from steersman.tools.mcp_instance import as_tool_server  # noqa: PLC0415 - few programs

        # As with the official package, the session runs without a server that does not start.
        return as_tool_server(instance, is_required=False)
    return instance if call is call_here else bind(call)


def agents(given: Any) -> dict[str, WrittenAgent]:
    """Return the subagents in the CLI's form, without the fields that are None."""
    named: Mapping[str, Any] = given or {}
    return {str(name): _agent(agent) for name, agent in named.items()}


def _agent(given: Any) -> WrittenAgent:
    fields = dict(given) if is_mapping(given) else dataclasses.asdict(given)
    form = {key: value for key, value in fields.items() if value is not None}
    return WrittenAgent(
        description=form.get("description", ""), prompt=form.get("prompt", ""), form=form
    )


def skills(given: Any) -> Any:
    """Return the skills. Raises `ValueError` for a name that the CLI would read as a rule."""
    if given is None or given == "all":
        return given
    if not is_sequence(given):
        raise TypeError(f'skills: pass a list of names or "all", not {given!r}')
    for name in given:
        if not isinstance(name, str) or not name:
            raise ValueError("skills: names are strings that are not empty")
        if name == "*":
            raise ValueError("skills: '*' is no name; skills=\"all\" allows every skill")
        if _NOT_IN_SKILLS.search(name):
            raise ValueError(
                f"skills: {name!r} is no name; it has brackets, commas or control characters"
            )
    return tuple(given)


def sources(given: Iterable[str] | None, wanted_skills: object) -> tuple[str, ...]:
    """Return the settings files to read: all, or with `skills` those that have skills."""
    if given is not None:
        return tuple(given)
    return ALL_SOURCES if wanted_skills is None else SKILL_SOURCES


def plugins(given: Iterable[Mapping[str, Any]] | None) -> tuple[JsonDict, ...]:
    """Return the plugins. Raises `ValueError` for one that is not in a local directory."""
    found: list[JsonDict] = []
    for plugin in given or ():
        if plugin.get("type") != "local":
            raise ValueError(f"plugins: {plugin.get('type')!r} is no type; there is only 'local'")
        found.append({"type": "local", "path": str(plugin["path"])})
    return tuple(found)


# Settings and the conversation


def settings(given: Any, sandbox: Any) -> Any:
    """Return the settings; with `sandbox` those of a text or file, with that sandbox."""
    if sandbox is None:
        return given or None
    return {**_read(given), "sandbox": dict(sandbox)}


def _read(given: Any) -> JsonDict:
    """Return the settings in a JSON text or in a file. Raises `CLIConnectionError`."""
    if not given:
        return {}
    if is_mapping(given):
        return dict(given)
    found = _json_in(str(given))
    if found is None:
        from steersman.compat._errors import CLIConnectionError  # noqa: PLC0415 - only to raise it

        try:
            with open(given, encoding="utf-8-sig") as file:  # noqa: PTH123 - `pathlib` is slow
                found = _json_in(file.read())
        except (OSError, ValueError) as error:
            raise CLIConnectionError(f"settings: the file cannot be read: {error}") from error
        if found is None:
            raise CLIConnectionError("settings: the file has no JSON object")
    return found


def _json_in(text: str) -> JsonDict | None:
    try:
        found: object = _json.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return found if _json.is_object(found) else None


def settle_conversation(words: dict[str, Any]) -> None:
    """Settle options that name a conversation. Raises `ValueError` for what the CLI refuses."""
    given = words["session_id"]
    resumes = bool(words["resume"] or words["continue_conversation"])
    if given is not None and not UUID.fullmatch(str(given)):
        raise ValueError(f"session_id: {given!r} is no UUID; pass str(uuid.uuid4())")
    if words.setdefault("fork_session", False) and not resumes:
        warn("fork_session has no effect without resume or continue_conversation")
        words["fork_session"] = False
    if given is not None and resumes and not words["fork_session"]:
        raise ValueError(
            "session_id: pass fork_session=True to resume under a new id, or no session_id"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LenientOptions(Options):
    """Options whose values and combinations are not checked: `translate` has made them."""

    @property
    def is_checked(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenAgent(AgentDefinition):
    """A subagent in the CLI's own form."""

    form: JsonDict = field(repr=False)

    def __post_init__(self) -> None:
        """Check nothing."""

    def written(self, place: str = "agent") -> JsonDict:
        """Return the form. Raises `UsageError` for a value that is not JSON."""
        written: JsonDict = plain(place, self.form)
        return written
