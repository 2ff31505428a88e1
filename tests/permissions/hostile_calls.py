"""Calls that are meant to keep a guard busy, and the policies and guards that decide about them.

Every call is about as large as its limit says, up to 1 MB.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from steersman import Options
from steersman._json import Json, JsonDict
from steersman._session.requests.policy_hook import PolicyHook
from steersman.hooks import PreToolUse, block_paths
from steersman.permissions import AddRules, Allow, Policy, PolicyRule, ToolRule, allow, ask, deny

MEGABYTE = 1_000_000
SIZES = (4096, 16 * 1024, 64 * 1024, MEGABYTE)
"""Below, at and above the limits of the guards."""

UNITS = {
    "spaces": " ",
    "words": "a ",
    "numbers": "{n} ",
    "names": "rm{n} ",
    "commands": "a;",
    "other commands": "x{n};",
    "assignments": "a{n}=b ",
    "wrappers": "sudo ",
    "wrappers with options": "env -u a ",
    "quotes": "'",
    "pairs of quotes": "''",
    "double quotes": '"a" ',
    "empty double quotes": '""',
    "open variables": "${",
    "open and closed variables": "${a}",
    "a tick in many substitutions": "$(a`",
    "backslashes": "\\",
    "escapes": "\\a",
    "substitutions": "$(",
    "whole substitutions": "$(a) ",
    "ticks": "`",
    "subshells": "(",
    "arithmetic": "((",
    "variables": "$a",
    "variables as words": "$a ",
    "braces": "{",
    "sets": "{a,b}",
    "here-documents": "<<a ",
    "redirections": ">a ",
    "pipes": "a|",
    "pipes into shells": "a|sh;",
    "stars": "*",
    "stars in words": "a* ",
    "parents": "../",
    "folders": "a/",
    "dotted folders": ".ssh/",
    "paths": "/a/b{n} ",
    "paths at home": "~/a{n} ",
    "deep patterns": "**/a/",
    "comments": "#a\n",
    "lines": "a\n",
    "evals": "eval ",
    "shells": "bash -c ",
    "quoted shells": "bash -c '",
    "finds": "find -exec ",
    "directories": "cd a;",
    "directories of tools": "-C a ",
    "letters": "a",
    "wide letters": "\u01f0",
    "invisible letters": "\u200b",
    "brackets": "[",
    "open sets": "[a",
    "dashes": "-a ",
    "options": "--a=b ",
    "dots": ".",
    "at signs": "@",
    "percent signs": "%41",
    "colons": ":",
    "labels": "xn--a.",
}


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Yield strings of this size that repeat one thing, by its name."""
    for name, unit in UNITS.items():
        made: list[str] = []
        length = 0
        for number in itertools.count():
            made.append(unit.replace("{n}", str(number)))
            length += len(made[-1])
            if length >= size:
                break
        yield name, "".join(made)[:size]


def nested(depth: int, width: int) -> Json:
    """Return a value that is nested this deep."""
    value: Json = "/a/b"
    for _ in range(depth):
        value = [value] * width if width > 1 else {"path": value}
    return value


def calls(size: int) -> Iterator[tuple[str, str, JsonDict]]:
    """Yield a name, a tool and an input for every kind of call."""
    for name, text in texts(size):
        yield f"Bash: {name}", "Bash", {"command": f"echo {text}"[:size]}
        yield f"Read: {name}", "Read", {"file_path": f"/{text}"[:size]}
        yield f"WebFetch: {name}", "WebFetch", {"url": f"https://{text}"[:size], "prompt": "x"}
    yield "Write", "Write", {"file_path": "src/a", "content": "/a b\n" * (size // 5)}
    edits: list[Json] = [{"old_string": "/a", "new_string": "~/b"}] * (size // 50)
    yield "MultiEdit", "MultiEdit", {"file_path": "src/a", "edits": edits}
    yield "MCP: one text", "mcp__box__put", {"text": "x" * size}
    yield "MCP: paths", "mcp__box__put", {"paths": [f"/a/{n}/b" for n in range(size // 12)]}
    yield "MCP: commands", "mcp__box__put", {"args": [f"cat a/{n}" for n in range(size // 12)]}
    yield "MCP: texts", "mcp__box__put", {f"k{n}": "/a b" for n in range(size // 14)}
    yield "MCP: numbers", "mcp__box__put", {"values": list(range(size // 6))}
    yield "MCP: deep", "mcp__box__put", {"value": nested(900, 1)}
    yield "Glob", "Glob", {"pattern": "**/a/" * (size // 5), "path": "src"}
    yield "Grep", "Grep", {"pattern": "a/b " * (size // 4), "path": "src"}


RULES = (
    *(
        "Bash(git push:*)",
        "Bash(*a*a*a*b)",
        "Bash(rm *)",
        "Bash(npm publish {n})",
        "Bash(curl{n} *)",
    ),
    *("Read(**/a/**/b/**/c{n})", "Edit(src/{n}/**)", "Read(.env{n})", "Edit(*a*a*a*{n})"),
    *("Read(~/.ssh{n}/**)", "Edit(//etc/{n}/[a-z]*)", "WebFetch(domain:*.evil{n}.test)"),
    *(
        "WebFetch(domain:*a*b*{n})",
        "mcp__box{n}__*",
        "mcp__*__put{n}",
        "Agent(a{n})",
        "Skill(s{n})",
    ),
    *("Bash(./deploy{n}.sh *)", "Bash(sudo x{n}:*)", "Bash(* --force{n} *)"),
)
"""One rule of every kind; `{n}` makes each different."""


def rules(count: int, make: Callable[..., tuple[PolicyRule, ...]]) -> list[tuple[PolicyRule, ...]]:
    """Return this many different rules of one behavior, of every kind."""
    chosen = itertools.islice(itertools.cycle(RULES), count)
    return [make(rule.replace("{n}", str(number))) for number, rule in enumerate(chosen)]


def policies(count: int) -> dict[str, Policy]:
    """Return policies of this many rules of every kind, by what their rules do."""
    mixed = [
        made
        for each in zip(rules(count, ask), rules(count, deny), rules(count, allow), strict=True)
        for made in each
    ][:count]
    return {
        "deny": Policy(*rules(count, deny)),
        "ask": Policy(*rules(count, ask)),
        "allow": Policy(*rules(count, allow), otherwise="ask"),
        "mixed": Policy(*mixed),
        "forbid": Policy(forbid=[str(each.rule) for (each,) in rules(count, deny)]),
        "auto_approve": Policy(
            auto_approve=[str(each.rule) for (each,) in rules(count, allow)], otherwise="ask"
        ),
    }


def hook_of(policy: Policy, remembered: int) -> PolicyHook:
    """Return the hook of a session with this policy, and this many remembered rules."""
    hook = PolicyHook(Options(policy=policy))
    made = [
        ToolRule(each.rule.tool, each.rule.content)
        for (each,) in (rules(remembered, allow) if remembered else ())
    ]
    hook.remember(Allow(updated_permissions=[AddRules(rules=made)] if made else None))
    return hook


def event_of(tool: str, given: JsonDict) -> PreToolUse:
    """Return the event of a call."""
    return PreToolUse(
        session_id="s", cwd="/p/now", tool_name=tool, tool_input=given, tool_use_id="t"
    )


def guards(count: int) -> dict[str, Callable[[PreToolUse], Any]]:
    """Return everything that decides about a call, with this many rules each."""
    found: dict[str, Callable[[PreToolUse], Any]] = {
        f"policy of {name}": hook_of(policy, 0) for name, policy in policies(count).items()
    }
    found["remembered"] = hook_of(Policy(otherwise="ask"), count)
    blocked = itertools.islice(
        itertools.cycle(
            ("/etc/{n}", "~/.ssh{n}", "conf/{n}/keys", ".env{n}", "*.pem{n}", "**/a{n}")
        ),
        count,
    )
    found["block_paths"] = block_paths(
        *(each.replace("{n}", str(n)) for n, each in enumerate(blocked))
    )
    return found
