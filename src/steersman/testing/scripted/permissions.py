"""Decides which tools a scripted CLI runs without a permission request. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from steersman._json import JsonObject
from steersman.testing.scripted.launch import Settings

MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")

EDITING = frozenset({"Edit", "NotebookEdit", "Write"})
HARMLESS = frozenset(
    {"Glob", "Grep", "ListAgents", "Read", "StructuredOutput", "Task", "TodoWrite", "ToolSearch"}
)
HARMLESS_COMMANDS = frozenset({"cat", "cd", "echo", "false", "ls", "pwd", "sleep", "true", "wc"})
SHELL_MAGIC = re.compile(r"[>|;`$(\n]")
RULE = re.compile(r"(?P<name>[^(]+)(?:\((?P<content>.*)\))?", re.DOTALL)


class Permissions:
    """The permission mode and the rules of one session."""

    def __init__(self, settings: Settings) -> None:
        self.mode = settings.permission_mode
        self._allowed = list(settings.allowed)
        self._denied = settings.disallowed

    def is_removed(self, tool_name: str) -> bool:
        """Return whether a deny rule without content removes the whole tool."""
        return any(_covers(rule, tool_name, None) for rule in self._denied if "(" not in rule)

    def allows(self, tool_name: str, given: JsonObject) -> bool:
        """Return whether the tool call runs without a permission request."""
        return (
            self.mode == "bypassPermissions"
            or (self.mode == "acceptEdits" and tool_name in EDITING)
            or any(_covers(rule, tool_name, given) for rule in self._allowed)
            or is_harmless(tool_name, given)
        )

    def denies(self, tool_name: str, given: JsonObject) -> bool:
        """Return whether a rule denies this tool call."""
        return any(_covers(rule, tool_name, given) for rule in self._denied)

    def apply(self, updates: Iterable[JsonObject]) -> bool:
        """Apply permission updates for this session; return whether the mode changed."""
        before = self.mode
        for update in updates:
            if update.get("destination") != "session":
                continue
            if update.get("type") == "setMode":
                self.mode = str(update.get("mode"))
            elif update.get("type") == "addRules" and update.get("behavior") == "allow":
                self._allowed += map(_rule_text, update.get("rules") or ())
        return self.mode != before


def is_harmless(tool_name: str, given: JsonObject) -> bool:
    """Return whether the CLI runs the tool without a permission request because it only reads."""
    if tool_name != "Bash":
        return tool_name in HARMLESS
    command = str(given.get("command", ""))
    if SHELL_MAGIC.search(command):
        return False
    commands = [part.split() for part in command.split("&&")]
    return all(part and part[0] in HARMLESS_COMMANDS for part in commands)


def _covers(rule: str, tool_name: str, given: JsonObject | None) -> bool:
    """Return whether a rule matches by tool, by server, by prefix with `*`, or by content."""
    match = RULE.fullmatch(rule)
    if match is None or not _names(match["name"], tool_name):
        return False
    content = match["content"]
    if content is None or given is None:
        return content is None
    text = str(given.get("command") or given.get("file_path") or given.get("url") or "")
    if content.endswith(":*"):
        return text.startswith(content[:-2])
    return text == content


def _names(pattern: str, tool_name: str) -> bool:
    if pattern.endswith("*"):
        return tool_name.startswith(pattern[:-1])
    is_server = pattern.startswith("mcp__") and pattern.count("__") == 1
    return tool_name == pattern or (is_server and tool_name.startswith(f"{pattern}__"))


def _rule_text(rule: JsonObject) -> str:
    content = rule.get("ruleContent")
    return rule["toolName"] if content is None else f"{rule['toolName']}({content})"
