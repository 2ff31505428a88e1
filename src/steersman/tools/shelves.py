"""What a toolbox holds of one kind, by name; two of one name are refused, and both are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from steersman.errors import UsageError

__all__ = ["Shelf"]

T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind, in the order in which they came."""

    def __init__(self, kind: str, key: Callable[[T], str], origin: Callable[[T], Any]) -> None:
        self.kind = kind
        """Their name in MCP: tools, resources, prompts."""
        self._key = key
        self._origin = origin
        self._things: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(self._things.values())

    @property
    def names(self) -> tuple[str, ...]:
        """What the things are called."""
        return tuple(self._things)

    def get(self, name: Any) -> T | None:
        """The thing of that name, if there is one."""
        return self._things.get(name) if isinstance(name, str) else None

    def adding(self, things: Iterable[T], owner: str) -> Callable[[], None]:
        """Make sure that all of them can be here; give the act that puts them here."""
        added = dict(self._things)
        for thing in things:
            name = self._key(thing)
            if name in added:
                raise UsageError(
                    f"{self.kind} of {owner!r}",
                    name,
                    f"one of each name among the {self.kind}",
                    hint=f"{self._named(added[name])} and {self._named(thing)} share it",
                )
            added[name] = thing
        return lambda: self._hold(added)

    def removing(self, names: Iterable[Any], owner: str) -> Callable[[], None]:
        """Make sure that all of them are here; give the act that takes them away."""
        left = dict(self._things)
        for name in names:
            if not isinstance(name, str) or left.pop(name, None) is None:
                there = ", ".join(self._things) or "none"
                raise UsageError(f"{self.kind} of {owner!r}", name, f"one of those here: {there}")
        return lambda: self._hold(left)

    def _hold(self, things: dict[str, T]) -> None:
        # Another dict: somebody may be reading the old one, in another thread too.
        self._things = things

    def _named(self, thing: T) -> str:
        origin = self._origin(thing)
        if not callable(origin):
            return repr(thing)
        name = getattr(origin, "__qualname__", type(origin).__qualname__)
        return f"{getattr(origin, '__module__', '?')}.{name}"
