"""Hooks given as mappings, as in the official SDKs.

{"PreToolUse": [HookMatcher(matcher="Bash", hooks=[check], timeout=30)]}
{PreToolUse: check, "Stop": [log_it, other]}
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard

from steersman._arguments import did_you_mean
from steersman._json import JsonObject, is_mapping, is_sequence
from steersman.errors import Described, UsageError
from steersman.hooks import events
from steersman.hooks.events import HookEvent
from steersman.hooks.registry import GUARDABLE, HookKind, Hooks, check_hook

__all__ = ["HookForm", "HookForms", "HookMatcher", "HookMatcherLike", "hooks_from"]

EVENTS: Mapping[str, type[HookEvent]] = {
    name: getattr(events, name) for name in events.__all__ if name != "HookEvent"
}
"""The event classes by the CLI's names."""

AnyCallback = Callable[..., Any]
"""A callback of the event, or of `(input, tool_use_id, context)`."""

FIELDS = ("matcher", "hooks", "timeout", "on_failure")


@dataclass(frozen=True, slots=True)
class HookMatcher:
    """Callbacks that share a matcher and a timeout."""

    matcher: str | None = None
    hooks: Sequence[AnyCallback] = field(default_factory=list[AnyCallback])
    timeout: float | None = None
    on_failure: Literal["block", "continue"] | None = None
    """`block` registers the callbacks as guards, `continue` as advisers. With None the event
    decides."""


class HookMatcherLike(Protocol):
    """An object with the fields of a `HookMatcher`, such as the official SDK's class."""

    @property
    def matcher(self) -> str | None:
        """As in `HookMatcher`."""
        ...

    @property
    def hooks(self) -> Sequence[AnyCallback]:
        """As in `HookMatcher`."""
        ...

    @property
    def timeout(self) -> float | None:
        """As in `HookMatcher`."""
        ...


_OneForm: TypeAlias = AnyCallback | HookMatcher | HookMatcherLike | JsonObject
HookForm: TypeAlias = _OneForm | Sequence[_OneForm]
"""What may be given for one event: a callback, a matcher with callbacks, or a list of these."""


class HookForms(Protocol):
    """A mapping of hooks by event, whose keys are names, classes, or both.

    Not written as a `Mapping`: its key is invariant, so a mapping by a union would refuse a plain
    dict by name.
    """

    def items(self) -> ItemsView[str | type[HookEvent], HookForm]:
        """As in `Mapping`."""
        ...


def hooks_from(name: str, given: object) -> Hooks:
    """Return the hooks in a mapping; a `Hooks` is returned as it is. Raises `UsageError`."""
    if isinstance(given, Hooks):
        return given
    if not _is_by_event(given):
        raise UsageError(name, given, 'a Hooks value, or {"PreToolUse": [HookMatcher(...)]}')
    hooks = Hooks()
    for key, matchers in given.items():
        event = EVENTS.get(key) if isinstance(key, str) else key
        where = f"{name}[{key if isinstance(key, str) else getattr(key, '__name__', key)!r}]"
        if event is None:
            near = did_you_mean(key, sorted(EVENTS))
            raise UsageError(name, key, f"events by name: {', '.join(sorted(EVENTS))}", hint=near)
        for matcher in _matchers(where, matchers):
            _register(hooks, event, where, matcher)
    return hooks


def _register(hooks: Hooks, event: type[HookEvent], where: str, matcher: HookMatcher) -> None:
    if not is_sequence(matcher.hooks):
        raise UsageError(f"{where}.hooks", matcher.hooks, "a list of callbacks")
    kind = _kind(event, where, matcher.on_failure)
    for callback in matcher.hooks:
        check_hook(where, callback)
        hooks.on(event, matcher.matcher, timeout=matcher.timeout, kind=kind)(callback)


def _kind(event: type[HookEvent], where: str, on_failure: object) -> HookKind | None:
    if on_failure not in (None, "block", "continue"):
        raise UsageError(f"{where}.on_failure", on_failure, "block, continue, or None")
    if on_failure == "block" and event in GUARDABLE:
        return "guard"
    return None if on_failure is None else "advise"


def _matchers(where: str, given: object) -> Iterator[HookMatcher]:
    if is_sequence(given):
        for each in given:
            yield from _matchers(where, each)
    elif isinstance(given, HookMatcher):
        yield given
    elif is_mapping(given):
        yield _matcher_of(where, given)
    elif callable(given):
        yield HookMatcher(hooks=[given])
    elif all(hasattr(given, name) for name in FIELDS[:3]):
        # The official SDK's class, which we do not import.
        yield _matcher_of(where, {name: getattr(given, name, None) for name in FIELDS})
    else:
        raise UsageError(where, given, "a callback, a HookMatcher, or a list of them")


def _matcher_of(where: str, given: JsonObject) -> HookMatcher:
    fields = {{"onFailure": "on_failure"}.get(name, name): value for name, value in given.items()}
    for name in fields:
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            what = f"there is no such field; there are {known}"
            raise UsageError(f"{where}.{name}", Described("an unknown field"), known, what=what)
    return HookMatcher(**fields)


def _is_by_event(given: object) -> TypeGuard[Mapping[str | type[HookEvent], object]]:
    return isinstance(given, Mapping)
