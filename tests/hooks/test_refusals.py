"""What is wrong with an argument is told in full: which one, what it was, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman import hooks
from steersman.errors import UsageError
from steersman.hooks import guards, registry

h: Any = hooks
g: Any = guards
read: Any = registry.hooks_from

MATCHER = "a tool name, `A|B`, a pattern, or None for all"
EVENTS = ", ".join(sorted(registry.EVENTS))


def look(_event: object) -> None: ...


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (g.deny_tools, "matchers: got none, allowed: at least one name or pattern"),
        (
            lambda: g.deny_tools("["),
            (
                f"matcher: got '[', allowed: {MATCHER}\n"
                "What to do: unterminated character set at position 0"
            ),
        ),
        (
            lambda: g.deny_tools("Bahs"),
            (
                "matcher: got 'Bahs', allowed: names of tools\n"
                "What to do: did you mean Bash? For any other spelling write an expression, ^Bahs$"
            ),
        ),
        (lambda: g.only_tools(None), "matchers: got None, allowed: names and patterns"),
        (
            lambda: g.validate("x"),
            "check: got 'x', allowed: a function of (tool_name, tool_input)",
        ),
        (lambda: g.log(5), "look: got 5, allowed: a function of the event"),
        (
            g.redact,
            "patterns: got none, allowed: at least one text or compiled pattern",
        ),
        (
            lambda: g.redact(5),
            "patterns: got 5, allowed: texts that are not empty, or compiled patterns",
        ),
        (lambda: g.redact("x", replacement=5), "replacement: got 5, allowed: a text"),
        (g.block_paths, "paths: got none, allowed: at least one path"),
        (
            lambda: g.block_paths(".."),
            "paths: got '..', allowed: texts such as /etc, ~/.ssh, conf/keys or *.pem",
        ),
        (lambda: g.block_paths("/etc", home=5), "home: got 5, allowed: an absolute path"),
        (lambda: g.block_paths("/etc", home="ann"), "home: got 'ann', allowed: an absolute path"),
        (
            lambda: g.rate_limit(0, per=1, clock=float),
            "calls: got 0, allowed: a whole number above 0",
        ),
        (
            lambda: g.rate_limit(1, per=True, clock=float),
            "per: got True, allowed: seconds above 0",
        ),
        (
            lambda: g.rate_limit(1, per=1, clock=5),
            "clock: got 5, allowed: a function that returns seconds, such as time.monotonic",
        ),
        (
            lambda: h.Hooks().on(int),
            "event: got <class 'int'>, allowed: a class of steersman.hooks, such as PreToolUse",
        ),
        (
            lambda: h.Hooks().on(h.Setup),
            (
                "event: got 'Setup', allowed: an event that the CLI calls back for\n"
                "What to do: the CLI runs it before callbacks are registered;"
                " use a command hook in a settings file"
            ),
        ),
        (
            lambda: h.Hooks().on(h.PreToolUse, "Bahs"),
            (
                "matcher: got 'Bahs', allowed: names of tools\n"
                "What to do: did you mean Bash? For any other spelling write an expression, ^Bahs$"
            ),
        ),
        (
            lambda: h.Hooks().on(h.Stop, "Bash"),
            "matcher: got 'Bash', allowed: None: the CLI has no matchers for Stop",
        ),
        (lambda: h.Hooks().on(h.PreToolUse, 5), f"matcher: got 5, allowed: {MATCHER}"),
        (
            lambda: h.Hooks().on(h.PreToolUse, timeout=0),
            "timeout: got 0, allowed: seconds above 0, or None",
        ),
        (
            lambda: h.Hooks().on(h.PreToolUse, kind="watch"),
            "kind: got 'watch', allowed: guard, advise or observe",
        ),
        (
            lambda: h.Hooks().on(h.Stop, kind="guard"),
            (
                "kind: got 'guard', allowed: advise or observe: guards are for PreToolUse,"
                " PermissionRequest, UserPromptSubmit, UserPromptExpansion, Elicitation,"
                " PreModelSwitch, TaskCreated"
            ),
        ),
        (
            lambda: h.Hooks().on(h.PreToolUse, run_async=1),
            "run_async: got 1, allowed: True or False",
        ),
        (
            lambda: h.Hooks().on(h.PreToolUse, run_async=True, kind="advise"),
            "run_async: got True, allowed: False: the reply of an async hook is ignored",
        ),
        (
            lambda: h.Hooks().on(h.WorktreeCreate, kind="observe"),
            "kind: got 'observe', allowed: advise: the callback creates the worktree",
        ),
        (
            lambda: read("hooks", 5),
            'hooks: got 5, allowed: a Hooks value, or {"PreToolUse": [HookMatcher(...)]}',
        ),
        (
            lambda: read("hooks", {"Stopp": look}),
            (
                f"hooks: got 'Stopp', allowed: events by name: {EVENTS}\n"
                "What to do: did you mean Stop or Setup?"
            ),
        ),
        (
            lambda: read("hooks", {h.Stop: 5}),
            "hooks['Stop']: got 5, allowed: a callback, a HookMatcher, or a list of them",
        ),
        (
            lambda: read("hooks", {"Stop": [{"hook": look}]}),
            (
                "hooks['Stop'].hook: there is no such field; there are matcher, hooks, timeout,"
                " on_failure"
            ),
        ),
        (
            lambda: read("hooks", {"Stop": [{"hooks": 5}]}),
            "hooks['Stop'].hooks: got 5, allowed: a list of callbacks",
        ),
        (
            lambda: read("hooks", {"Stop": [{"hooks": [look], "on_failure": "stop"}]}),
            "hooks['Stop'].on_failure: got 'stop', allowed: block, continue, or None",
        ),
        (lambda: h.deny(5), "reason: got 5, allowed: a text"),
        (lambda: h.ask(5), "reason: got 5, allowed: a text, or None"),
        (lambda: h.allow(reason=5), "reason: got 5, allowed: a text, or None"),
        (lambda: h.block(None), "reason: got None, allowed: a text"),
        (lambda: h.allow(updated_input=5), "updated_input: got 5, allowed: a mapping, or None"),
        (lambda: h.modify(None), "updated_input: got None, allowed: a mapping"),
        (lambda: h.context(5), "text: got 5, allowed: a text for the model"),
        (
            lambda: h.Reply(decision="maybe"),
            "decision: got 'maybe', allowed: approve, block, or None",
        ),
        (lambda: h.Reply(continue_="no"), "continue_: got 'no', allowed: True or False"),
        (
            lambda: h.ToolVerdict(permission_decision="never"),
            "permission_decision: got 'never', allowed: allow, deny, ask, defer, or None",
        ),
        (
            lambda: h.ToolVerdict(updated_input=[1]),
            "updated_input: got [1], allowed: a mapping, or None",
        ),
        (
            lambda: h.ToolVerdict(permission_decision_reason=5),
            "permission_decision_reason: got 5, allowed: a text, or None",
        ),
        (
            lambda: h.ToolVerdict(additional_context=5),
            "additional_context: got 5, allowed: a text, or None",
        ),
    ],
)
def test_a_refusal_names_the_argument_and_what_is_allowed(
    make: Callable[[], Any], text: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make()

    assert str(refused.value) == text


def test_only_the_name_of_a_tool_can_be_misspelt() -> None:
    registered = h.Hooks()

    registered.on(h.Notification, "Bahs")(look)

    assert [each.matcher for each in registered] == ["Bahs"]
