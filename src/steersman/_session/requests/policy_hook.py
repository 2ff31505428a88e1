"""Applies `Options.policy` as a `PreToolUse` hook that runs before the caller's own hooks.

The hook is a guard: if it fails, the tool does not run. It follows links in the paths of a call, as
the CLI does before it applies its own rules. The paths are those of this machine: if the CLI runs
elsewhere, the links that exist there are not known here.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from steersman._json import JsonDict, JsonObject
from steersman._session.requests.decision_log import DecisionLog
from steersman._session.requests.permissions import PermissionResponder
from steersman._tool_names import skill_key
from steersman.control.handshake import Initialized
from steersman.errors import UsageError
from steersman.hooks.events import PermissionRequest, PreToolUse
from steersman.options import Options
from steersman.permissions import AddRules, Allow, CanUseTool, Deny
from steersman.permissions.command_files import words_of
from steersman.permissions.paths import Place, leads_through_process
from steersman.permissions.policy import Explanation, Policy, Verdict, guards_files
from steersman.permissions.rules import EDITING, READING, Match, Rule, ToolCall, parse_rule
from steersman.permissions.shell import is_readable

NO_OPINION: JsonObject = {}
STRICTNESS = {"allow": 0, "cli": 1, "ask": 2, "deny": 3}

REMEMBERED = 1000
"""Tool calls that are remembered; the CLI requests a permission for few of them."""

LONGEST_PATH = 4096
"""Characters; rules do not compare longer paths either."""
FIELDS = ("file_path", "notebook_path", "path")
MOST_WORDS = 100
"""Words of a command whose links are followed."""
MOST_LINKS = 40
"""Links that one path may lead through, as in Linux."""
MOST_STARTS = 4
"""Directories at which these may begin."""


class PolicyHook:
    """Decides by the policy, and remembers the rules that a user allowed for the session."""

    def __init__(self, options: Options) -> None:
        self.decisions: DecisionLog | None = None
        """Set by `connect` when the session is built."""
        self._policy = options.policy or Policy()
        self._guards_files = guards_files(self._policy)
        self._asks_for_all = options.ask_every_call
        self._listed = _listed(options)
        self._remembered: list[Rule] = []
        self._home = options.env.get("HOME") or os.environ.get("HOME", "")
        self._cwd = ""
        self._initialized: Callable[[], Initialized | None] = _nothing
        self._leading = options.agent
        """The type of the main agent, if it has one."""
        self._calls: OrderedDict[str, ToolCall] = OrderedDict()

    def connect(
        self,
        permissions: PermissionResponder,
        decisions: DecisionLog,
        initialized: Callable[[], Initialized | None],
    ) -> None:
        """Record decisions in `decisions`, and remember lasting approvals of `permissions`.

        `initialized` returns the lists of the CLI, with the names of its skills.
        """
        self.decisions = decisions
        self._initialized = initialized
        permissions.on_remembered = self.remember
        permissions.recheck = self.recheck_answer

    def __call__(self, event: PreToolUse) -> JsonObject:
        """Return the policy's decision about the call as a hook output."""
        # `cd` in Bash changes the CLI's directory. Relative rules begin at the first directory,
        # and relative paths at the current one.
        self._cwd = self._cwd or event.cwd
        call = self._call_of(event)
        found = self._decide(call)
        self._remember_call(event.tool_use_id, call)
        if found.verdict == "cli":
            return NO_OPINION
        if found.verdict != "ask" and self.decisions is not None:
            self.decisions.record(
                event.tool_use_id,
                event.tool_name,
                found.verdict,
                "rule",
                by=found.rule,
                reason=found.reason,
                agent=event.agent_id,
            )
        return _reply(found.verdict, _reason(found))

    def recheck(
        self, event: PreToolUse | PermissionRequest, changed: JsonDict, *, is_allowed: bool
    ) -> tuple[Verdict, str]:
        """Return verdict and reason for the input with which a hook replaces that of `event`.

        `is_allowed`: the hook itself allows the changed input. Otherwise, if the policy allows the
        original input and does not decide about the changed one, the call is asked about: the CLI
        has been answered `allow` about the original.
        """
        call = self._call_of(event)
        found = self._decide(replace(call, input=changed))
        verdict, reason = found.verdict, _reason(found)
        if verdict == "cli" and not is_allowed and call.mode != "bypassPermissions":
            original = self._decide(call)
            if original.verdict == "allow":
                verdict, reason = "ask", f"changed input, not covered by {original.rule}"
        if verdict == "deny":
            tool_use_id = event.tool_use_id if isinstance(event, PreToolUse) else ""
            self._record_denial(tool_use_id, call.tool, found, event.agent_id)
        return verdict, reason

    def recheck_answer(self, request: CanUseTool, changed: JsonDict) -> Deny | None:
        """Return a denial if the policy denies the input with which an answer replaces another.

        Where the policy asks, this answer is the one that it asks for.
        """
        call = self._calls.get(request.tool_use_id)
        if call is None:
            agent_is_main = request.agent_id is None
            call = ToolCall(
                request.tool_name, place=Place(self._cwd or "/", self._home), is_main=agent_is_main
            )
        found = self._decide(replace(call, input=changed))
        return Deny(_reason(found)) if found.verdict == "deny" else None

    def may_repeat(self, request: CanUseTool) -> bool:
        """Return whether the policy declares the call as one that may run twice.

        A call that no event has announced is none: it is not known where it is made.
        """
        call = self._calls.get(request.tool_use_id)
        if call is None or not self._policy.repeatable:
            return False
        readings = readings_of(replace(call, input=request.input), follows_words=self._guards_files)
        return all(map(self._policy.may_repeat, readings))

    def _call_of(self, event: PreToolUse | PermissionRequest) -> ToolCall:
        is_main = event.agent_id is None
        return ToolCall(
            event.tool_name,
            event.tool_input,
            event.agent_type or (self._leading if is_main else None),
            event.permission_mode or "default",
            Place(self._cwd or "/", self._home, event.cwd),
            is_main,
            other_names=self._other_names(event),
        )

    def _other_names(self, event: PreToolUse | PermissionRequest) -> tuple[str, ...] | None:
        """Return the other names of the skill that is called; None if it is in no list."""
        listed = self._initialized() if event.tool_name == "Skill" else None
        if listed is None:
            return ()
        called = skill_key(str(event.tool_input.get("skill", "")))
        known = [(each.name, *each.aliases) for each in listed.commands]
        found = [names for names in known if called in map(skill_key, names)]
        return tuple(name for names in found for name in names) if found else None

    def _remember_call(self, tool_use_id: str, call: ToolCall) -> None:
        """Remember who calls and where; an answer with changed input is decided about again."""
        self._calls[tool_use_id] = replace(call, input={})
        if len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)

    def _record_denial(
        self, tool_use_id: str, tool: str, found: Explanation, agent: str | None
    ) -> None:
        if self.decisions is not None and tool_use_id:
            self.decisions.record(
                tool_use_id, tool, "deny", "rule", by=found.rule, reason=found.reason, agent=agent
            )

    def remember(self, approval: Allow) -> None:
        """Allow from now on what the updates of `approval` allow."""
        for update in approval.updated_permissions or ():
            if isinstance(update, AddRules) and update.behavior == "allow":
                self._remembered += _parsed(map(str, update.rules))

    def _decide(self, call: ToolCall) -> Explanation:
        """Return the stricter decision: about the path as written, or the file that it leads to."""
        readings = readings_of(call, follows_words=self._guards_files)
        found = max(map(self._decide_one, readings), key=lambda each: STRICTNESS[each.verdict])
        if found.verdict == "ask":
            for rule in self._remembered:
                if all(rule.match(each, "allow") is Match.YES for each in readings):
                    return Explanation("allow", f"remembered {rule}")
        return found

    def _decide_one(self, call: ToolCall) -> Explanation:
        found = self._policy.decide(call)
        if found.verdict == "cli" and self._asks_for_all and not self._covers(self._listed, call):
            return Policy(otherwise="ask").decide(call)
        return found

    def _covers(self, rules: list[Rule], call: ToolCall) -> bool:
        return any(rule.match(call, "allow") is Match.YES for rule in rules)


def _nothing() -> None:
    """Return None: no CLI has answered yet."""


def _listed(options: Options) -> list[Rule]:
    """Return rules for tools that the options approve by name; `ask_every_call` skips them."""
    rules = _parsed(options.allowed_tools)
    if options.functions:
        rules.append(Rule("mcp__functions"))
    if options.skills:
        rules.append(Rule("Skill"))
    return rules


def _parsed(texts: Iterable[str]) -> list[Rule]:
    found: list[Rule] = []
    for text in texts:
        try:
            found.append(parse_rule(text))
        except UsageError:
            # Only the CLI can read this rule, so its calls are asked about again.
            continue
    return found


def _reason(found: Explanation) -> str:
    if found.verdict == "deny":
        return f"Denied by policy ({found.rule})" + (f": {found.reason}" if found.reason else ".")
    return f"policy: {found.rule}"


def _reply(verdict: Literal["allow", "deny", "ask"], reason: str) -> JsonObject:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": verdict,
            "permissionDecisionReason": reason,
        }
    }


def readings_of(call: ToolCall, *, follows_words: bool = False) -> tuple[ToolCall, ...]:
    """Return the call, and if a path leads through a link, the call with its real paths.

    `follows_words`: the words of a command may be paths too.
    """
    if call.tool not in EDITING | READING:
        return _readings_of_command(call) if follows_words and call.command else (call,)
    place = call.place
    written = {name: _whole(call.input.get(name), place) for name in FIELDS}
    paths = {name: path for name, path in written.items() if path}
    real = {name: _real(path) for name, path in paths.items()}
    there = Place(_real(place.cwd), _real(place.home), _real(place.now))
    if real == paths and there == place:
        return (call,)
    return call, replace(call, input={**call.input, **real}, place=there)


def _readings_of_command(call: ToolCall) -> tuple[ToolCall, ...]:
    line = call.command or ""
    if not is_readable(line):
        return (call,)
    place, words = call.place, words_of(line)
    there = Place(_real(place.cwd), _real(place.home), _real(place.now))
    starts = [_whole(each, place) for each in (".", *words.directories)][:MOST_STARTS]
    real_starts = [(replace(place, now=each), replace(place, now=_real(each))) for each in starts]
    links: dict[str, str] = {}
    for word in itertools.islice(words.heads, MOST_WORDS):
        for start, real_start in real_starts:
            path = _whole(word, start)
            real = _real(path)
            # A word without a file may lead through a link to one that the command makes. A link
            # to the directory itself is none in the word.
            if real != path and (real != _whole(word, real_start) or os.path.lexists(path)):
                links[word] = real
    if not links and there == place:
        return (call,)
    return call, replace(call, place=there, links=links)


def _whole(path: object, place: Place) -> str:
    if not isinstance(path, str) or not path or len(path) > LONGEST_PATH:
        return ""
    text = place.home + path[1:] if path.startswith("~/") else path
    # The CLI resolves `..` in the text before it follows links.
    return os.path.normpath(f"{place.now or place.cwd}/{text}" if text[:1] != "/" else text)


def _real(path: str) -> str:
    with suppress(OSError, ValueError):
        real = os.path.realpath(path) if path else ""
        # A link to a link of each process leads the CLI to another file than this program.
        return real if real == path else _until_process(path) or real
    return path


def _until_process(path: str) -> str:
    """Return the path behind the first link that leads to the links of a process; "" if none."""
    for _ in range(MOST_LINKS):
        if leads_through_process(path):
            return path
        names = path.split("/")
        parents = ("/".join(names[:end]) for end in range(2, len(names) + 1))
        link = next(filter(os.path.islink, parents), None)
        if link is None:
            return ""
        target = Path(link).parent / Path(link).readlink()
        path = os.path.normpath(f"{target}{path[len(link) :]}")
    return ""
