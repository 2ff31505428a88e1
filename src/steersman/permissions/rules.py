"""Permission rules in the CLI's own syntax: `Bash(git *)`, `Edit(src/**)`, `mcp__box__*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steersman._effort import Effort, fits_parts
from steersman._json import Json, JsonObject
from steersman._tool_names import (
    BASH,
    COMMAND_FIELDS,
    DEFAULT_AGENTS,
    SAME_SHELL,
    agent_key,
    near_miss,
    skill_key,
)
from steersman.errors import UsageError
from steersman.permissions.command_files import named_by
from steersman.permissions.paths import (
    LIMIT,
    Place,
    matches_path,
    may_match_path,
    objection_to,
)
from steersman.permissions.shell import (
    LONGEST,
    Match,
    grants_command,
    is_readable,
    stops_command,
)
from steersman.permissions.updates import RULE_TEXT, Behavior
from steersman.permissions.urls import grants_url, stops_url

__all__ = [
    "Match",
    "Rule",
    "ToolCall",
    "parse_rule",
]


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

FILES = EDITING | READING


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: its input, its agent, the permission mode and the directories."""

    tool: str
    input: JsonObject = field(default_factory=dict[str, Json])
    agent: str | None = None
    """The type of the subagent; None for the main agent."""
    mode: str = "default"
    place: Place = field(default_factory=Place)
    is_main: bool | None = None
    """Whether the main agent calls; None if only `agent` is known. A session goes by the id of the
    agent, because a subagent may be called `main`, and the main agent may have a type too."""
    effort: Effort = field(default_factory=Effort, compare=False, repr=False)
    """The work that is left for one decision; all rules share it."""
    links: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """The files to which words of the command lead through links of this machine."""
    other_names: tuple[str, ...] | None = field(default=(), compare=False, repr=False)
    """The other names of the skill that is called; None if the CLI has not listed the skill."""

    @property
    def command(self) -> str | None:
        """The command line that the tool runs; None for a tool that runs no commands."""
        name = COMMAND_FIELDS.get(self.tool)
        if name is None:
            return None
        given = self.input.get(name)
        return "" if given is None else _text(given, LONGEST)


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
        return self._match_content(call, behavior) if self._names(call, behavior) else Match.NO

    def _match_content(self, call: ToolCall, behavior: Behavior) -> Match:
        content = self.content or ""
        if self.tool == "WebFetch":
            return _fits_domain(content, call.input.get("url"), behavior)
        if self.tool in AGENTS:
            return _yes(_fits_agent(content, call.input.get("subagent_type"), behavior))
        if self.tool == "Skill":
            return _fits_skill(content, call, behavior)
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
        return fits_parts(tuple(self.tool.split("*")), tool)

    def _match_command(self, call: ToolCall, behavior: Behavior) -> Match:
        if not _is_bash(call, behavior):
            return Match.NO
        compare = grants_command if behavior == "allow" else stops_command
        return compare(self.content or "", call.command or "", call.effort)

    def _match_file(self, call: ToolCall, behavior: Behavior) -> Match:
        # A file that must not be read must not be overwritten either.
        covered = EDITING if self.tool == "Edit" else READING
        if self.tool == "Read" and behavior == "deny":
            covered = READING | EDITING
        if call.tool in covered:
            paths = _paths_of(call)
            if behavior == "allow":
                return _yes(paths and all(self._certainly_fits(path, call) for path in paths))
            return _yes(any(self._fits(path, call) for path in paths))
        if call.command is not None and behavior != "allow":
            return self._match_files_of_command(call)
        return Match.NO

    def _match_files_of_command(self, call: ToolCall) -> Match:
        line = call.command or ""
        if not is_readable(line):
            return Match.MAYBE
        named, is_sure = named_by(self.content or "", line, call.place, call.effort, call.links)
        if not named:
            return Match.NO
        if not is_sure:
            return Match.MAYBE
        if self.tool == "Read" or ">" in line or WRITERS & named:
            return Match.YES
        return Match.NO if READERS.issuperset(named) else Match.MAYBE

    def _fits(self, path: str, call: ToolCall) -> bool:
        return bool(path) and may_match_path(self.content or "", path, call.place, call.effort)

    def _certainly_fits(self, path: str, call: ToolCall) -> bool:
        return bool(path) and matches_path(self.content or "", path, call.place, call.effort)


def parse_rule(text: object) -> Rule:
    """Parse a rule. Raises `UsageError` for a rule that the CLI would accept and never apply."""
    found = RULE_TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise UsageError("rule", text, "a tool's name, or `Tool(content)`, such as Bash(git *)")
    tool, content = found["tool"], found["content"]
    meant = near_miss(tool)
    if meant is not None:
        raise UsageError("rule", text, "a rule for a tool", hint=f"did you mean {meant}?")
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
    objection = objection_to(content) if tool in ("Edit", "Read") else None
    if objection is not None:
        raise UsageError("rule", text, objection)
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


def _text(given: object, limit: int) -> str:
    """Return a text of a tool's input. Anything else counts as a text above the limit."""
    return given if isinstance(given, str) else " " * (limit + 1)


def _yes(fits: object) -> Match:
    return Match.YES if fits else Match.NO


def _paths_of(call: ToolCall) -> list[str]:
    """Return every path that the tool may use; more than one if the input has unknown fields."""
    given = [call.input.get(name) for name in ("file_path", "notebook_path", "path")]
    paths = [_text(each, LIMIT) for each in given if each]
    if call.tool in READING and not paths:
        paths = [call.place.now or call.place.cwd]
    pattern = call.input.get("pattern") if call.tool == "Glob" else None
    if isinstance(pattern, str) and (pattern.startswith(("/", "~")) or ".." in pattern):
        # The pattern leaves the directory that the search begins at.
        paths.append(pattern if pattern.startswith(("/", "~")) else f"{paths[0]}/{pattern}")
    return paths


def _fits_domain(content: str, url: object, behavior: Behavior) -> Match:
    compare = grants_url if behavior == "allow" else stops_url
    return compare(content.removeprefix("domain:"), url)


def _fits_agent(content: str, given: object, behavior: Behavior) -> bool:
    if behavior == "allow":
        return given == content
    names = DEFAULT_AGENTS if given is None else (_text(given, LIMIT),)
    return agent_key(content) in map(agent_key, names)


def _fits_skill(content: str, call: ToolCall, behavior: Behavior) -> Match:
    name = _text(call.input.get("skill", ""), LIMIT)
    if behavior == "allow":
        return _yes(_is_skill(content, name))
    names = (name, *(call.other_names or ()))
    if any(_is_skill(skill_key(content), skill_key(each)) for each in names):
        return Match.YES
    return Match.MAYBE if call.other_names is None else Match.NO


def _is_skill(content: str, name: str) -> bool:
    if content.endswith(":*"):
        return name == content[:-2] or name.startswith(f"{content[:-2]}:")
    return name == content


def may_overlap(one: Rule, other: Rule) -> bool:
    """Return whether one call could be covered by both rules."""
    if one.tool.startswith("mcp__") and other.tool.startswith("mcp__"):
        return _may_be_one_tool(one.tool, other.tool)
    if "*" in one.tool or "*" in other.tool:
        return True
    if one.tool == other.tool or _shares_a_family(one.tool, other.tool):
        return True
    return _is_about_files_of(one, other) or _is_about_files_of(other, one)


def _may_be_one_tool(one: str, other: str) -> bool:
    """Compare the texts before the first wildcard: one must be the beginning of the other."""
    before, behind = one.partition("*")[0], other.partition("*")[0]
    return before.startswith(behind) or behind.startswith(before)


def _shares_a_family(one: str, other: str) -> bool:
    return any({one, other} <= family for family in (AGENTS, COMMAND_FIELDS.keys(), FILES))


def _is_about_files_of(rule: Rule, command: Rule) -> bool:
    """Return whether a rule with a path could be about a command that names the file."""
    return rule.tool in FILES and rule.content is not None and command.tool in COMMAND_FIELDS


def is_fence(guard: Rule, approval: Rule) -> bool:
    """Return whether what a guard stops can be done in another way that the approval allows.

    Beside an approval of every command, a guard about a program or a file does not stop a copy of
    the program, a script, or a program that opens the file. Beside one of every subcommand of a
    program, a guard about one of them does not stop an alias.
    """
    if guard.content is None or approval.tool != BASH:
        return False
    if approval.content is None:
        return guard.tool == BASH or guard.tool in FILES
    before, star, _ = approval.content.replace(":*", " *").partition("*")
    words = before.split()
    return guard.tool == BASH and bool(star) and guard.content.split()[: len(words)] == words
