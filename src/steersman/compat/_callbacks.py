"""Callbacks of the official form → those of a session: hooks, `can_use_tool`, `stderr`, stores.

A hook takes `(input, tool_use_id, context)`, whatever its signature. It is a guard where its event
has an action that can be stopped, so that its failure stops the action; `on_failure="continue"`
makes it an adviser, as in the official SDK. Whatever is not an approval denies a tool call: an
exception, and a value that is no permission result. `call` and `notify` run a callback where the
program runs.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from steersman._arguments import name_of
from steersman._tool_names import near_miss
from steersman.compat._runtime import Call, Notify, call_here
from steersman.compat._shapes.permissions import (
    CanUseToolShadowedWarning,
    PermissionUpdate,
    ToolPermissionContext,
)
from steersman.compat._warnings import warn
from steersman.hooks.events import HookEvent
from steersman.hooks.matchers import is_list, names_in
from steersman.hooks.registry import (
    EVENTS,
    GUARDABLE,
    GUARDED,
    NEVER_CALLED,
    HookKind,
    Hooks,
    Registered,
    unchecked,
)
from steersman.permissions.decisions import Allow, Decision, Deny
from steersman.permissions.questions import PermissionContext

if TYPE_CHECKING:
    from steersman.compat._shapes.hooks import HookMatcher

logger = logging.getLogger("steersman.compat")

JAVASCRIPT_GROUP = re.compile(r"\(\?<(?![=!])")
"""How a named group begins in JavaScript."""

OURS = frozenset({"SessionStart", "SessionEnd"})
"""Events that the session makes itself where the CLI does not."""

ALWAYS_GIVEN = frozenset({"session_id", "transcript_path", "cwd"})
"""Keys that an input has even if they are empty."""

_made: dict[str, type[HookEvent]] = {}
"""Classes of events that this release does not know, by name."""


def native_hooks(
    given: Mapping[str, Iterable[HookMatcher]] | None, call: Call = call_here
) -> Hooks:
    """Return the hooks of `given`; `call` calls the callbacks. Warns, and refuses nothing."""
    return unchecked(
        registered
        for name, matchers in (given or {}).items()
        for matcher in matchers
        for registered in _registered(str(name), matcher, call)
    )


def _registered(name: str, given: HookMatcher, call: Call) -> Iterator[Registered]:
    event = _event_of(name)
    matcher = _matcher_of(event, given.matcher)
    timeout = _timeout_of(name, given.timeout)
    kind = _kind_of(event, name, getattr(given, "on_failure", None))
    for callback in given.hooks:
        called = _called(callback, call, ours=name in OURS)
        yield Registered(event, called, matcher, timeout, kind, is_official=True, is_verbatim=True)


def _called(callback: Callable[..., Any], call: Call, *, ours: bool) -> Callable[..., Any]:
    if call is call_here and not ours:
        # The session itself awaits what a hook returns.
        return callback

    def hook(
        given: Mapping[str, object], tool_use_id: str | None, context: object
    ) -> Awaitable[Any]:
        return call(callback, _known(given) if ours else given, tool_use_id, context)

    hook.__name__ = hook.__qualname__ = name_of(callback)
    return hook


def _known(given: Mapping[str, object]) -> dict[str, object]:
    """Return an input without the keys that have no value: the CLI leaves those out."""
    return {
        name: value
        for name, value in given.items()
        if name in ALWAYS_GIVEN or value not in (None, "")
    }


def _event_of(name: str) -> type[HookEvent]:
    event = EVENTS.get(name)
    if event is None:
        warn(f"hooks: this release does not know the event {name!r}; the CLI may not either")
        return _made.get(name) or _made.setdefault(name, _made_event(name))
    if event in NEVER_CALLED:
        warn(f"hooks: {name} will not be called: {NEVER_CALLED[event]}")
    return event


def _made_event(name: str) -> type[HookEvent]:
    make = cast("Any", type(HookEvent))
    made: type[HookEvent] = make(name, (HookEvent,), {}, frozen=True, kw_only=True, tag=name)
    return made


def _matcher_of(event: type[HookEvent], matcher: str | None) -> str | None:
    if matcher is not None:
        _warn_of_spelling(event, matcher)
    if matcher not in (None, "", "*") and event.__name__ in EVENTS and not event.MATCHED:
        warn(
            f"hooks: the matcher {matcher!r} has no effect: the CLI has no matchers for"
            f" {event.event_name()}"
        )
        return None
    return matcher


def _warn_of_spelling(event: type[HookEvent], matcher: str) -> None:
    """Warn of a misspelt tool, and of a pattern that is none: the CLI does not call the hook."""
    for name in names_in(matcher) if event.MATCHED == "tool_name" else ():
        meant = near_miss(name)
        if meant is not None:
            warn(f"hooks: the matcher {matcher!r} names no tool {name!r}; did you mean {meant}?")
    if is_list(matcher):
        return
    try:
        re.compile(JAVASCRIPT_GROUP.sub("(?P<", matcher))
    except re.error as error:
        warn(f"hooks: the matcher {matcher!r} may be no pattern, and never match: {error}")


def _timeout_of(name: str, timeout: float | None) -> float | None:
    if timeout is not None and timeout <= 0:
        warn(f"hooks: timeout={timeout!r} of {name} is no limit; pass seconds above 0, or None")
        return None
    return timeout


def _kind_of(event: type[HookEvent], name: str, on_failure: str | None) -> HookKind:
    if on_failure == "block":
        if event not in GUARDABLE:
            warn(f"hooks: on_failure='block' has no effect at {name}: it has nothing to stop")
        return "guard" if event in GUARDABLE else "advise"
    return "guard" if on_failure is None and event in GUARDED else "advise"


# Permissions

Approve = Callable[[str, dict[str, Any], PermissionContext], Awaitable[Decision]]


def native_approver(can_use_tool: Callable[..., Any], call: Call = call_here) -> Approve:
    """Return the approver that asks `can_use_tool`; `call` calls it."""

    async def approve(tool: str, given: dict[str, Any], context: PermissionContext) -> Decision:
        return _decision(await call(can_use_tool, tool, given, _context(context)))

    return approve


def _context(context: PermissionContext) -> ToolPermissionContext:
    asked = context.question
    return ToolPermissionContext(
        suggestions=[PermissionUpdate.from_dict(each) for each in asked.permission_suggestions],
        tool_use_id=asked.tool_use_id or None,
        agent_id=asked.agent_id,
        blocked_path=asked.blocked_path,
        decision_reason=asked.decision_reason,
        title=asked.title or None,
        display_name=asked.display_name or None,
        description=asked.description or None,
    )


def _decision(given: Any) -> Decision:
    """Return the decision that a permission result is. Raises `TypeError` for anything else.

    Recognized by its attributes, so that results of the official package's own classes work too.
    """
    behavior = getattr(given, "behavior", None)
    if behavior == "allow" and hasattr(given, "updated_input"):
        updates = given.updated_permissions
        return Allow(given.updated_input, None if updates is None else [*map(_update, updates)])
    if behavior == "deny" and hasattr(given, "message"):
        return Deny(given.message, bool(given.interrupt))
    raise TypeError(
        "can_use_tool must return PermissionResultAllow or PermissionResultDeny, not"
        f" {type(given).__name__}"
    )


def _update(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given if isinstance(given, dict) else given.to_dict())


def warn_of_shadows(mode: str | None, rules: Iterable[str]) -> None:
    """Warn if the CLI will not ask about some calls, for which `can_use_tool` is not called."""
    if mode == "bypassPermissions":
        warn(
            "can_use_tool will not be invoked: permission_mode 'bypassPermissions' allows every"
            " call that no rule denies. A PreToolUse hook is called for every tool call.",
            CanUseToolShadowedWarning,
        )
        return
    whole = [_whole_tool(each) for each in rules]
    shadowed = [*dict.fromkeys(tool for tool in whole if tool)]
    if shadowed:
        warn(
            f"can_use_tool will not be invoked for: {', '.join(shadowed)}. An entry of"
            " allowed_tools allows them without a request. A PreToolUse hook is called for every"
            " tool call.",
            CanUseToolShadowedWarning,
        )


def _whole_tool(rule: str) -> str:
    """Return the tool that a rule allows altogether; empty if it allows some calls only."""
    tool, bracket, content = rule.strip().partition("(")
    return tool if not bracket or content in (")", "*)") else ""


# Lines of stderr, and stores


class StderrLines:
    """Passes each line that is not empty on to a callback, without space at its end."""

    def __init__(self, callback: Callable[[str], object] | None, notify: Notify) -> None:
        self._callback = callback
        self._notify = notify
        self._rest: list[str] = []

    def feed(self, chunk: str) -> None:
        """Take the next chunk."""
        *lines, rest = chunk.split("\n")
        if lines:
            lines[0] = "".join((*self._rest, lines[0]))
            self._rest.clear()
        if rest:
            self._rest.append(rest)
        for line in lines:
            self._pass_on(line)

    def finish(self) -> None:
        """Pass on the last line, if it has no newline."""
        last = "".join(self._rest)
        self._rest.clear()
        self._pass_on(last)

    def _pass_on(self, line: str) -> None:
        text = line.rstrip()
        if not text or self._callback is None:
            return
        try:
            self._notify(self._callback, text)
        except Exception:  # the program's own code, which must not end the session
            logger.exception("the callback for stderr failed")


class CalledStore:
    """Has the methods of `store`, called through `call`. What the store lacks, it lacks too."""

    def __init__(self, store: Any, call: Call) -> None:
        self._store = store
        self._call = call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return functools.partial(self._call, found) if callable(found) else found
