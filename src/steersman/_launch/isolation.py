"""What is closed for every agent unless an option opens it: memory, transcripts, skill commands.

The CLI reads its memory into the prompt, and changes it without a permission request. It runs the
commands in a skill's text without any hook. Both are closed by settings of the session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from steersman._json import JsonDict, JsonObject
from steersman._launch.builder import LaunchBuilder
from steersman.errors import UsageError

__all__ = ["NO_MEMORY", "closed_settings"]

NO_MEMORY = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
"""The variable with which the CLI reads no memory."""

NO_SKILL_COMMANDS = "disableSkillShellExecution"
"""The setting with which the CLI does not run commands in the text of skills."""

DEFAULT_ROOT = "~/.claude"
_PRIVATE = (
    "Read({root}/projects/**/memory/**)",
    "Read({root}/projects/**/*.jsonl)",
    "Edit({root}/projects/**)",
    "Read({root}/steersman/**/*.jsonl)",
    "Edit({root}/steersman/**)",
    "Read({root}/agent-memory/**)",
    "Edit({root}/agent-memory/**)",
)
"""Rules about files of the CLI. Long results of tools are there too, and must stay readable."""

_SPECIAL = re.compile(r"[\\*?\[\]!#]")


def closed_settings(builder: LaunchBuilder, env: Mapping[str, str]) -> JsonDict:
    """Return the settings that close what no option opens. `env` is the CLI's environment."""
    closed: JsonDict = {}
    if not builder.options.memory:
        _refuse_agents_with_memory(builder)
        closed["permissions"] = {"deny": _rules(env.get("CLAUDE_CONFIG_DIR"))}
    if not builder.options.skill_commands:
        closed[NO_SKILL_COMMANDS] = True
    return closed


def _rules(config_dir: str | None) -> list[str]:
    roots = [DEFAULT_ROOT]
    if config_dir and config_dir.startswith("/"):
        roots.append("/" + _SPECIAL.sub(r"\\\g<0>", config_dir.rstrip("/")))
    return [rule.format(root=root) for root in roots for rule in _PRIVATE]


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
