"""Permission rules in the CLI's own syntax: `Bash(git *)`, `Edit(src/**)`, `mcp__box__*`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from steersman._command_tools import BASH, COMMAND_FIELDS, SAME_SHELL
from steersman._json import Json, JsonObject
from steersman.errors import UsageError
from steersman.permissions.paths import Place, matches_path
from steersman.permissions.shell import Match, commands_in, grants_command, stops_command
from steersman.permissions.updates import Behavior

__all__ = ["Match", "Rule", "ToolCall", "parse_rule"]

EDITING = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
READING = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
AGENTS = frozenset({"Agent", "Task"})
"""The tool that starts a subagent: `Agent` in calls, `Task` in lists of tools."""
READERS = frozenset(
    {"cat", "diff", "echo", "file", "grep", "head", "less", "ls", "stat", "tail", "wc"}
)
"""Commands that write no file unless their output is redirected."""
WRITERS = frozenset({"cp", "mkdir", "mv", "rm", "rmdir", "sed", "tee", "touch"})
"""Commands whose arguments the CLI treats as written files. Other commands may write too."""

_RULE = re.compile(r"(?P<tool>[A-Za-z][\w-]*\*?|mcp__[\w*-]+)(?:\((?P<content>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: its input, its agent, the permission mode and the directories."""

    tool: str
    input: JsonObject = field(default_factory=dict[str, Json])
    agent: str | None = None
    """The type of the subagent; None for the main agent."""
    mode: str = "default"
    place: Place = field(default_factory=Place)

    @property
    def command(self) -> str | None:
        """The command line that the tool runs; None for a tool that runs no commands."""
        name = COMMAND_FIELDS.get(self.tool)
        if name is None:
            return None
        given = self.input.get(name)
        return "" if given is None else str(given)


@dataclass(frozen=True, slots=True)
class Rule:
    """A tool's name, and optionally a pattern for its input."""

    tool: str
    content: str | None = None

    def __str__(self) -> str:
        return self.tool if self.content is None else f"{self.tool}({self.content})"

    def match(self, call: ToolCall, behavior: Behavior) -> Match:
        """Return whether the rule covers the call."""
        if self.content is None:
            return _yes(self._names(call, behavior))
        if self.tool == BASH:
            return self._match_command(call, behavior)
        if self.tool in ("Edit", "Read"):
            return self._match_file(call, behavior)
        return self._match_content(call) if self._names(call, behavior) else Match.NO

    def _match_content(self, call: ToolCall) -> Match:
        content = self.content or ""
        if self.tool == "WebFetch":
            return _yes(_fits_domain(content, str(call.input.get("url", ""))))
        if self.tool in AGENTS:
            return _yes(call.input.get("subagent_type") == content)
        if self.tool == "Skill":
            return _yes(_fits_skill(content, str(call.input.get("skill", ""))))
        # Only the CLI can interpret the content of rules for other tools.
        return Match.MAYBE

    def _names(self, call: ToolCall, behavior: Behavior) -> bool:
        tool = call.tool
        if self.tool == BASH and _is_bash(call, behavior):
            return True
        if self.tool == tool or (self.tool in AGENTS and tool in AGENTS):
            return True
        if not self.tool.startswith("mcp__"):
            return False
        server, _, rest = self.tool[5:].partition("__")
        if "*" not in self.tool:
            return not rest and tool.startswith(f"mcp__{server}__")
        # The CLI ignores approvals with a wildcard in the name of the MCP server.
        if behavior == "allow" and "*" in server:
            return False
        return re.fullmatch(re.escape(self.tool).replace(r"\*", ".*"), tool) is not None

    def _match_command(self, call: ToolCall, behavior: Behavior) -> Match:
        if not _is_bash(call, behavior):
            return Match.NO
        compare = grants_command if behavior == "allow" else stops_command
        return compare(self.content or "", call.command or "")

    def _match_file(self, call: ToolCall, behavior: Behavior) -> Match:
        # A file that must not be read must not be overwritten either.
        covered = EDITING if self.tool == "Edit" else READING
        if self.tool == "Read" and behavior == "deny":
            covered = READING | EDITING
        if call.tool in covered:
            return _yes(self._fits(_path_of(call), call.place))
        if call.command is not None and behavior != "allow":
            return self._match_files_of_command(call)
        return Match.NO

    def _match_files_of_command(self, call: ToolCall) -> Match:
        line = call.command or ""
        named = [
            words[0]
            for words in commands_in(line)
            if any(self._fits(word, call.place) for word in words[1:])
        ]
        if not named:
            return Match.NO
        if self.tool == "Read" or ">" in line or WRITERS & set(named):
            return Match.YES
        return Match.NO if READERS.issuperset(named) else Match.MAYBE

    def _fits(self, path: str, place: Place) -> bool:
        return bool(path) and matches_path(self.content or "", path, place)


def parse_rule(text: object) -> Rule:
    """Parse a rule. Raises `UsageError` for a rule that the CLI would accept and never apply."""
    found = _RULE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise UsageError("rule", text, "a tool's name, or `Tool(content)`, such as Bash(git *)")
    tool, content = found["tool"], found["content"]
    if content in (None, "", "*"):
        return Rule(tool)
    if tool in EDITING - {"Edit"}:
        hint = f"Edit({content}) covers every tool that changes files, {tool} too"
        raise UsageError("rule", text, "Edit(...) for paths: the CLI ignores others", hint=hint)
    if tool in READING - {"Read"}:
        hint = f"Read({content}) covers every tool that reads files, {tool} too"
        raise UsageError("rule", text, "Read(...) for paths", hint=hint)
    if tool.startswith("mcp__"):
        raise UsageError("rule", text, "the name alone: rules for MCP tools have no content")
    if tool == "WebFetch" and not content.startswith("domain:"):
        raise UsageError("rule", text, "WebFetch(domain:example.com)")
    return Rule(tool, content)


def _is_bash(call: ToolCall, behavior: Behavior) -> bool:
    """Return whether rules for `Bash` are about this call.

    A denial or an ask is about every tool that runs commands. An approval is not about PowerShell,
    which has another grammar, and not about a `Monitor` that opens a web socket.
    """
    if behavior != "allow":
        return call.tool in COMMAND_FIELDS
    if call.input.get("ws") is not None:
        return False
    return call.tool in SAME_SHELL


def _yes(fits: object) -> Match:
    return Match.YES if fits else Match.NO


def _path_of(call: ToolCall) -> str:
    for name in ("file_path", "notebook_path", "path"):
        found = call.input.get(name)
        if isinstance(found, str) and found:
            return found
    return "" if call.tool in EDITING else call.place.cwd


def _fits_domain(content: str, url: str) -> bool:
    wanted = content.removeprefix("domain:").lower()
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if wanted.startswith("*."):
        return host.endswith(wanted[1:])
    return host == wanted


def _fits_skill(content: str, name: str) -> bool:
    if content.endswith(":*"):
        return name == content[:-2] or name.startswith(f"{content[:-2]}:")
    return name == content
