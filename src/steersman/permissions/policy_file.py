"""A policy written in TOML.

available = ["Bash", "Edit", "Read"]
forbid = ["WebFetch"]

[[rules]]
deny = ["Bash(rm *)"]
because = "files are removed by hand here"

[[rules]]
allow = "Edit(docs/**)"
agents = ["writer"]
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from steersman._json import JsonObject, is_array, is_mapping
from steersman.errors import Described, UsageError
from steersman.permissions.updates import Behavior

BEHAVIORS: tuple[Behavior, ...] = ("allow", "deny", "ask")
LISTS = ("available", "auto_approve", "forbid", "repeatable")
CHOICES = ("otherwise", "remember")


@dataclass(frozen=True, slots=True)
class TableRule:
    """One entry of `[[rules]]`."""

    behavior: Behavior
    rules: tuple[str, ...]
    because: str
    agents: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PolicyTable:
    """The contents of the text: its rules, and the keyword arguments of `Policy`."""

    rules: tuple[TableRule, ...]
    fields: JsonObject


def read_table(text: str) -> PolicyTable:
    """Read a policy from TOML. Raises `UsageError` if the text is not TOML or not a policy."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("text", text, "a text of TOML")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError("text", text, "a text of TOML", what=f"not TOML: {error}") from None
    except RecursionError:
        raise UsageError("text", Described("values nested too deeply"), "a text of TOML") from None
    for name in found:
        if name not in ("rules", *LISTS, *CHOICES):
            raise UsageError("policy key", name, ", ".join(("rules", *LISTS, *CHOICES)))
    entries = found.get("rules", [])
    if not is_array(entries):
        raise UsageError("rules", entries, "tables: [[rules]]")
    rules = tuple(_rule(f"rules[{n}]", each) for n, each in enumerate(entries))
    lists = {name: _texts(name, found[name]) for name in LISTS if name in found}
    return PolicyTable(rules, {**lists, **{name: found[name] for name in CHOICES if name in found}})


def _rule(place: str, entry: object) -> TableRule:
    if not is_mapping(entry):
        raise UsageError(place, entry, "a table")
    behaviors: list[Behavior] = [each for each in BEHAVIORS if each in entry]
    if len(behaviors) != 1:
        raise UsageError(place, sorted(entry), "exactly one of allow, deny, ask")
    for name in entry:
        if name not in (*BEHAVIORS, "because", "agents"):
            raise UsageError(f"{place} key", name, "allow, deny or ask, because, agents")
    because = entry.get("because", "")
    if not isinstance(because, str):
        raise UsageError(f"{place}.because", because, "a text")
    agents = _texts(f"{place}.agents", entry["agents"]) if "agents" in entry else None
    return TableRule(
        behaviors[0], _texts(f"{place}.{behaviors[0]}", entry[behaviors[0]]), because, agents
    )


def _texts(place: str, given: object) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given
    if not (is_array(listed) and all(isinstance(each, str) for each in listed)):
        raise UsageError(place, given, "a text, or a list of texts")
    return tuple(listed)
