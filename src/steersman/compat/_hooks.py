"""Hooks of the official form → hooks of a session.

A callback takes `(input, tool_use_id, context)`, whatever its signature. It is a guard where its
event has an action that can be stopped, so that its failure stops the action;
`on_failure="continue"` makes it an adviser, as in the official SDK.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from steersman._arguments import name_of
from steersman._tool_names import near_miss
from steersman.compat._calling import Call, call_here
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

if TYPE_CHECKING:
    from steersman.compat._shapes.hooks import HookMatcher

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
