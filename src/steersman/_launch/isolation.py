"""What is closed for every agent unless an option opens it: memory, transcripts, skill commands.

The CLI reads its memory into the prompt, and changes it without a permission request. Its tools
read, without one, what other sessions of the project have left: results of tools, summaries, output
of commands. It runs the commands in a skill's text without any hook. All are closed by settings of
the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from steersman._json import JsonDict, JsonObject
from steersman._launch.builder import LaunchBuilder
from steersman.errors import UsageError

NO_MEMORY = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
"""The variable with which the CLI reads no memory."""

NO_SKILL_COMMANDS = "disableSkillShellExecution"
"""The setting with which the CLI does not run commands in the text of skills."""

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz._-"
"""The characters of the names of sessions; the CLI ignores the case of paths."""

DEFAULT_ROOT = "~/.claude"
_PRIVATE = (
    "Read({root}/projects/**/memory/**)",
    "Read({root}/projects/**/*.jsonl)",
    "Edit({root}/projects/**)",
    "Read({root}/steersman/**/*.jsonl)",
    "Edit({root}/steersman/**)",
    "Read({root}/projects/**/session-memory/**)",
    "Read({root}/agent-memory/**)",
    "Edit({root}/agent-memory/**)",
    "Read({root}/tasks/**)",
    "Read({root}/teams/**)",
)
"""Rules about files of the CLI. Long results of tools are there too, and must stay readable."""
_IN_PROJECTS = (
    "Read(//**/.claude/agent-memory/**)",
    "Edit(//**/.claude/agent-memory/**)",
    "Read(//**/.claude/agent-memory-local/**)",
    "Edit(//**/.claude/agent-memory-local/**)",
)
"""Rules about memories of agents that the CLI keeps in a project."""

_SPECIAL = re.compile(r"[\\*?\[\]!#]")


def closed_settings(
    builder: LaunchBuilder, env: Mapping[str, str], sessions: Iterable[str]
) -> JsonDict:
    """Return the settings that close what no option opens. `env` is the CLI's environment.

    `sessions` are the ids of this conversation; without one, those of other sessions are not known.
    """
    closed: JsonDict = {}
    if not builder.options.memory:
        _refuse_agents_with_memory(builder)
        closed["permissions"] = {"deny": [*_rules(env), *_rules_for_others(env, [*sessions])]}
    if not builder.options.skill_commands:
        closed[NO_SKILL_COMMANDS] = True
    return closed


def _rules(env: Mapping[str, str]) -> list[str]:
    roots = list(dict.fromkeys((DEFAULT_ROOT, _root(env))))
    return [*(rule.format(root=root) for root in roots for rule in _PRIVATE), *_IN_PROJECTS]


def _rules_for_others(env: Mapping[str, str], sessions: list[str]) -> list[str]:
    """Return rules about the directories of all sessions but these."""
    named = [env[each] for each in ("CLAUDE_CODE_TMPDIR", "TMPDIR") if env.get(each)]
    tmps = named[:1] if "CLAUDE_CODE_TMPDIR" in env else [*named, "/tmp"]  # noqa: S108 - a pattern
    places = [f"{_root(env)}/projects/*", *(f"{_pattern_of(each)}/claude-*/*" for each in tmps)]
    others = names_of_others(sessions)
    return [f"Read({place}/{name}/**)" for place in dict.fromkeys(places) for name in others]


def names_of_others(names: list[str]) -> list[str]:
    """Return patterns for every name that is none of these and does not begin like one.

    A deny rule of the CLI cannot make an exception, and it knows no negated sets. So there is a
    pattern for each beginning of a name: that beginning, and every character but the next ones.
    """
    next_of: dict[str, set[str]] = {}
    for name in names:
        for at, character in enumerate(name.lower()):
            next_of.setdefault(name[:at], set()).add(character)
    sets = {at: "".join(each for each in ALPHABET if each not in next_of[at]) for at in next_of}
    return [f"{before}[{characters}]*" for before, characters in sets.items()]


def _root(env: Mapping[str, str]) -> str:
    """Return the CLI's directory as the beginning of a pattern."""
    given = env.get("CLAUDE_CONFIG_DIR") or ""
    return _pattern_of(given) if given.startswith("/") else DEFAULT_ROOT


def _pattern_of(path: str) -> str:
    return "/" + _SPECIAL.sub(r"\\\g<0>", path.rstrip("/"))


def _refuse_agents_with_memory(builder: LaunchBuilder) -> None:
    agents: Mapping[str, JsonObject] = builder.initialize.get("agents", {})
    for name, agent in agents.items():
        if agent.get("memory") is not None:
            raise UsageError(
                f"agents[{name!r}].memory",
                agent["memory"],
                "no memory, unless memory=True",
                hint="memory=True lets agents read and change files of the CLI's memory",
            )
