"""The registry of hooks: which callback runs at which event, and what its failure causes.

Hooks may also be given as mappings, as in the official SDKs:

{"PreToolUse": [HookMatcher(matcher="Bash", hooks=[check], timeout=30)]}
{PreToolUse: check, "Stop": [log_it, other]}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar

from steersman._arguments import can_be_called_with, did_you_mean, name_of, shown, signature_of
from steersman._json import JsonObject, is_mapping, is_sequence
from steersman.errors import Described, UsageError
from steersman.hooks import events
from steersman.hooks.events import (
    CwdChanged,
    Elicitation,
    HookEvent,
    PermissionRequest,
    PreModelSwitch,
    PreToolUse,
    Setup,
    TaskCreated,
    TeammateIdle,
    UserPromptExpansion,
    UserPromptSubmit,
    WorktreeCreate,
)
from steersman.hooks.matchers import check_matcher, check_tool_names
from steersman.hooks.replies import AsyncReply, Reply

__all__ = [
    "HookAnswer",
    "HookCallback",
    "HookForm",
    "HookForms",
    "HookKind",
    "HookMatcher",
    "HookMatcherLike",
    "Hooks",
    "Official",
    "Registered",
    "hooks_from",
    "official",
]


EventT = TypeVar("EventT", bound=HookEvent)

HookAnswer = Reply | AsyncReply | JsonObject | None
HookCallback = Callable[[EventT], HookAnswer | Awaitable[HookAnswer]]
HookKind = Literal["guard", "advise", "observe"]
"""`guard`: a failure of the hook stops the action. `advise`: the reply counts, a failure is only
reported. `observe`: the reply is ignored, and a failure is only reported."""

GUARDED: tuple[type[HookEvent], ...] = (
    *(PreToolUse, PermissionRequest),
    *(UserPromptSubmit, UserPromptExpansion, Elicitation),
)
"""Events with an action that can be stopped: here a callback is a guard unless `kind` is given."""

GUARDABLE: tuple[type[HookEvent], ...] = (*GUARDED, PreModelSwitch, TaskCreated)
"""Events whose action the CLI was observed to stop when a reply blocks it."""

NEVER_CALLED: Mapping[type[HookEvent], str] = {
    Setup: "the CLI runs it before callbacks are registered; use a command hook in a settings file",
    TeammateIdle: "the CLI never calls back for it; use a command hook in a settings file",
    CwdChanged: "the CLI never calls back for it; use a command hook in a settings file",
}
"""Events that the CLI does not call back for, with the reason and an alternative."""

OFFICIAL_ARGUMENTS = 3

EVENTS: Mapping[str, type[HookEvent]] = {
    name: getattr(events, name) for name in events.__all__ if name != "HookEvent"
}
"""The event classes by the CLI's names."""
FIELDS = ("matcher", "hooks", "timeout", "on_failure")


@dataclass(frozen=True, slots=True)
class Registered:
    """One registered callback."""

    event: type[HookEvent]
    callback: Callable[..., HookAnswer | Awaitable[HookAnswer]]
    matcher: str | None = None
    timeout: float | None = None
    kind: HookKind = "advise"
    run_async: bool = False
    """The CLI does not wait for the callback."""
    is_official: bool = False
    """The callback takes `(input, tool_use_id, context)`, as in the official SDKs."""
    is_verbatim: bool = False
    """The CLI gets the matcher as given, and compares it. A reply of a guard may leave the verdict
    out, or have keys that this release does not know, as in the official SDKs."""

    @property
    def event_name(self) -> str:
        """The CLI's name for the event."""
        return self.event.event_name()

    @property
    def name(self) -> str:
        """The name of the callback, for the log."""
        return name_of(self.callback)

    @property
    def where(self) -> str:
        """How the log and the journal name the callback, if it fails."""
        return f"{self.event_name} hook {self.name}"

    @property
    def is_guard(self) -> bool:
        """Whether a failure of the callback must stop the action."""
        return self.kind == "guard"


@dataclass(frozen=True, slots=True)
class Official:
    """A callback that is called with `(input, tool_use_id, context)`, whatever its parameters."""

    callback: Callable[..., HookAnswer | Awaitable[HookAnswer]]

    def __call__(self, *given: Any) -> HookAnswer | Awaitable[HookAnswer]:
        """Call the callback with the official SDKs' arguments."""
        return self.callback(*given)


def official(callback: Callable[..., HookAnswer | Awaitable[HookAnswer]]) -> Official:
    """Mark `callback` as one of the official SDKs' form: `hooks.on(PreToolUse)(official(check))`.

    It is called with `(input, tool_use_id, context)`, also if it takes `*args`, or has defaults.
    """
    if not (callable(callback) and can_be_called_with(callback, OFFICIAL_ARGUMENTS)):
        is_function = callable(callback)
        given = shown(callback) if is_function else callback
        raise UsageError("callback", given, "a function of (input, tool_use_id, context)")
    return Official(callback)


class Hooks:
    """An ordered list of callbacks. `on` adds one, `|` joins two lists."""

    def __init__(self) -> None:
        self._registered: list[Registered] = []

    def on(
        self,
        event: type[EventT],
        matcher: str | None = None,
        *,
        timeout: float | None = None,
        kind: HookKind | None = None,
        run_async: bool = False,
    ) -> Callable[[HookCallback[EventT]], HookCallback[EventT]]:
        """Register the decorated callback for `event`, if the event matches `matcher`.

        `timeout` is in seconds. Without a `kind` the callback is a guard if the event has an action
        that can be stopped. With `run_async` the CLI does not wait for the callback, so it only
        observes. A callback takes the event, or `(input, tool_use_id, context)` as in the official
        SDKs, if it has three parameters without a default or is marked as `official`.
        """
        _check_event(event)
        _check_matcher(event, matcher)
        _check_timeout(timeout)
        _check_kind(event, kind, run_async=run_async)

        def register(callback: HookCallback[EventT]) -> HookCallback[EventT]:
            self._add(event, callback, matcher, timeout, kind, run_async)
            return callback

        return register

    def _add(
        self,
        event: type[HookEvent],
        callback: object,
        matcher: str | None,
        timeout: float | None,
        kind: HookKind | None,
        run_async: bool,  # noqa: FBT001 - a private helper
    ) -> None:
        check_hook("callback", callback)
        is_marked = isinstance(callback, Official)
        callback = callback.callback if isinstance(callback, Official) else callback
        assert _is_callback(callback)
        # Ready-made hooks such as `log` have their kind as an attribute.
        meant = "observe" if run_async else kind or getattr(callback, "hook_kind", None)
        self._registered.append(
            Registered(
                event,
                callback,
                matcher,
                timeout,
                meant or ("guard" if event in GUARDED else "advise"),
                run_async,
                is_marked or takes_official_arguments(callback),
            )
        )

    def __or__(self, others: Hooks) -> Hooks:
        if not isinstance(others, Hooks):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        joined = Hooks()
        joined._registered = [*self._registered, *others._registered]
        return joined

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hooks) and self._registered == other._registered

    # A registry can change, so it cannot be a key.
    __hash__ = None  # type: ignore[assignment]


def unchecked(registered: Iterable[Registered]) -> Hooks:
    """Return a registry of these callbacks, without the checks of `Hooks.on`."""
    hooks = Hooks()
    hooks._registered = [*registered]  # pyright: ignore[reportPrivateUsage] - its own module
    return hooks


def check_hook(argument: str, given: object) -> None:
    """Refuse what can be called neither with an event nor with the official SDKs' arguments."""
    allowed = "a function of the event, or of (input, tool_use_id, context)"
    if isinstance(given, Official):
        return
    if not callable(given):
        raise UsageError(argument, given, allowed)
    count = OFFICIAL_ARGUMENTS if takes_official_arguments(given) else 1
    if not can_be_called_with(given, count):
        raise UsageError(argument, shown(given), allowed)


def takes_official_arguments(callback: Callable[..., object]) -> bool:
    """Return whether a callback takes `(input, tool_use_id, context)` instead of an event."""
    found = signature_of(callback)
    needed = [
        each
        for each in (() if found is None else found.parameters.values())
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == OFFICIAL_ARGUMENTS


def _check_event(event: object) -> None:
    if not _is_event(event):
        raise UsageError("event", event, "a class of steersman.hooks, such as PreToolUse")
    if event in NEVER_CALLED:
        raise UsageError(
            "event",
            event.event_name(),
            "an event that the CLI calls back for",
            hint=NEVER_CALLED[event],
        )


def _check_matcher(event: type[HookEvent], matcher: object) -> None:
    check_matcher(matcher)
    if event.MATCHED == "tool_name" and isinstance(matcher, str):
        check_tool_names(matcher)
    if matcher not in (None, "", "*") and not event.MATCHED:
        raise UsageError("matcher", matcher, f"None: the CLI has no matchers for {event.__name__}")


def _check_timeout(timeout: object) -> None:
    positive = isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0
    if not (timeout is None or positive):
        raise UsageError("timeout", timeout, "seconds above 0, or None")


def _check_kind(event: type[HookEvent], kind: object, *, run_async: object) -> None:
    if kind not in (None, "guard", "advise", "observe"):
        raise UsageError("kind", kind, "guard, advise or observe")
    if kind == "guard" and event not in GUARDABLE:
        names = ", ".join(each.__name__ for each in GUARDABLE)
        raise UsageError("kind", kind, f"advise or observe: guards are for {names}")
    if not isinstance(run_async, bool):
        raise UsageError("run_async", run_async, "True or False")
    if run_async and kind in ("guard", "advise"):
        raise UsageError("run_async", run_async, "False: the reply of an async hook is ignored")
    if event is WorktreeCreate and (run_async or kind == "observe"):
        raise UsageError("kind", "observe", "advise: the callback creates the worktree")


def _is_callback(given: object) -> TypeGuard[Callable[..., HookAnswer | Awaitable[HookAnswer]]]:
    return callable(given)


def _is_event(given: object) -> TypeGuard[type[HookEvent]]:
    return isinstance(given, type) and issubclass(given, HookEvent) and given is not HookEvent


AnyCallback = Callable[..., Any]
"""A callback of the event, or of `(input, tool_use_id, context)`."""


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
