"""What is checked: a name, a sentence, where the protocol says so, and what should be seen.

`scene` makes a scene of a coroutine; its methods make checks of functions that look at what the
scene gives. A check's name is its function's, its sentence the docstring's first line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from steersman._json import Json
from steersman_conformance.stage import Stage

__all__ = ["Check", "Kind", "Scene", "scene"]

T = TypeVar("T")
Look = Callable[[T], Any]


class Kind(StrEnum):
    """What it means when a check does not see what it expects."""

    MUST = "must"
    """We depend on it."""
    FEATURE = "feature"
    """We notice when it is not there, and do without."""
    CANARY = "canary"
    """A fault of the CLI's that we work around; when it is gone, so should be the workaround."""


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """One statement about a CLI."""

    name: str
    states: str
    kind: Kind
    section: str
    """Of the protocol's description."""
    expected: Json
    look: Look[T]
    absent: Json = False
    """What a CLI shows that does not have this feature."""
    remedy: str = ""
    """How we do without a feature, or what we do about a fault."""


@dataclass(slots=True)
class Scene(Generic[T]):
    """A piece that is played once, for all the checks that look at it."""

    name: str
    play: Callable[[Stage], Awaitable[T]]
    checks: list[Check[T]] = field(default_factory=list[Check[T]])

    @property
    def names(self) -> list[str]:
        """The names of its checks."""
        return [check.name for check in self.checks]

    def must(self, section: str, *, sees: Json = True) -> Callable[[Look[T]], Look[T]]:
        """State something that we depend on: what the check `sees`."""
        return lambda look: self._add(look, Kind.MUST, section, sees)

    def feature(
        self, section: str, *, sees: Json = True, absent: Json = False, without: str
    ) -> Callable[[Look[T]], Look[T]]:
        """State something that older CLIs lack, and what we do `without` it."""
        return lambda look: self._add(
            look, Kind.FEATURE, section, sees, absent=absent, remedy=without
        )

    def canary(self, section: str, *, sees: Json = True, so: str) -> Callable[[Look[T]], Look[T]]:
        """State a fault, and what we do about it."""
        return lambda look: self._add(look, Kind.CANARY, section, sees, remedy=so)

    def _add(
        self,
        look: Look[T],
        kind: Kind,
        section: str,
        expected: Json,
        *,
        absent: Json = False,
        remedy: str = "",
    ) -> Look[T]:
        states = (look.__doc__ or "").strip().splitlines()[0]
        name = _dashed(look)
        self.checks.append(
            Check(name, states, kind, section, expected, look, absent=absent, remedy=remedy)
        )
        return look


def scene(play: Callable[[Stage], Awaitable[T]]) -> Scene[T]:
    """Make a scene of a coroutine function."""
    return Scene(_dashed(play), play)


def _dashed(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "")).strip("_").replace("_", "-")
