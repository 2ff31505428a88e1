"""Which callback runs on which event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from steersman.errors import UsageError
from steersman.hooks.events import HookEvent, PreToolUse, UserPromptSubmit
from steersman.hooks.replies import Reply

__all__ = ["HookAnswer", "HookCallback", "Hooks", "Registered"]

EventT = TypeVar("EventT", bound=HookEvent)

HookAnswer = Reply | Mapping[str, Any] | None
HookCallback = Callable[[EventT], HookAnswer | Awaitable[HookAnswer]]

GUARDED: tuple[type[HookEvent], ...] = (PreToolUse, UserPromptSubmit)
"""Events with an action to stop: a callback that fails there stops it."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One callback and when it runs."""

    event: type[HookEvent]
    callback: Callable[[Any], HookAnswer | Awaitable[HookAnswer]]
    matcher: str | None = None
    timeout: float | None = None

    @property
    def event_name(self) -> str:
        """The CLI's name for the event."""
        return str(self.event.__struct_config__.tag)

    @property
    def is_guard(self) -> bool:
        """Whether a failure of the callback must stop the action."""
        return self.event in GUARDED


class Hooks:
    """An ordered list of callbacks; `on` adds to it."""

    def __init__(self) -> None:
        self._registered: list[Registered] = []

    def on(
        self, event: type[EventT], matcher: str | None = None, *, timeout: float | None = None
    ) -> Callable[[HookCallback[EventT]], HookCallback[EventT]]:
        """Run the decorated callback when `event` happens, for tools that fit `matcher`."""
        _check(event, matcher, timeout)

        def register(callback: HookCallback[EventT]) -> HookCallback[EventT]:
            if not callable(callback):
                raise UsageError("callback", callback, "a function of the event")
            self._registered.append(Registered(event, callback, matcher, timeout))
            return callback

        return register

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hooks) and self._registered == other._registered

    # It grows, so it cannot be a key.
    __hash__ = None  # type: ignore[assignment]


def _check(event: object, matcher: object, timeout: object) -> None:
    if not _is_event(event):
        raise UsageError("event", event, "a class of steersman.hooks, such as PreToolUse")
    if not (matcher is None or isinstance(matcher, str)):
        raise UsageError("matcher", matcher, "a tool name, `A|B`, a pattern, or None for all")
    positive = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    if not (timeout is None or positive):
        raise UsageError("timeout", timeout, "seconds above 0, or None")


def _is_event(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, HookEvent) and given is not HookEvent
