"""Scenes and checks.

`scene` makes a scene of a coroutine function; the methods of a scene make checks of functions that
examine what the coroutine returned. The name of a check is the name of its function, and its
statement is the first line of the docstring.
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
    """What it means if a check does not observe the expected value."""

    MUST = "must"
    """steersman depends on the behaviour."""
    FEATURE = "feature"
    """steersman detects that the feature is missing, and works without it."""
    CANARY = "canary"
    """A fault of the CLI with a workaround, which can be removed when the fault is fixed."""


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """One statement about a CLI."""

    name: str
    states: str
    kind: Kind
    section: str
    """The section of the protocol's description."""
    expected: Json
    look: Look[T]
    absent: Json = False
    """The observation on a CLI without this feature."""
    remedy: str = ""
    """How steersman works without a feature, or works around a fault."""


@dataclass(slots=True)
class Scene(Generic[T]):
    """A conversation that is played once for all its checks."""

    name: str
    play: Callable[[Stage], Awaitable[T]]
    checks: list[Check[T]] = field(default_factory=list[Check[T]])

    @property
    def names(self) -> list[str]:
        """The names of the checks."""
        return [check.name for check in self.checks]

    def must(self, section: str, *, sees: Json = True) -> Callable[[Look[T]], Look[T]]:
        """Add a check of behaviour that steersman depends on; `sees` is the expected value."""
        return lambda look: self._add(look, Kind.MUST, section, sees)

    def feature(
        self, section: str, *, sees: Json = True, absent: Json = False, without: str
    ) -> Callable[[Look[T]], Look[T]]:
        """Add a check of a feature that older CLIs lack; `without` describes the replacement."""
        return lambda look: self._add(
            look, Kind.FEATURE, section, sees, absent=absent, remedy=without
        )

    def canary(self, section: str, *, sees: Json = True, so: str) -> Callable[[Look[T]], Look[T]]:
        """Add a check of a fault; `so` describes the workaround."""
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
    """Return a scene that plays a coroutine function."""
    return Scene(_dashed(play), play)


def _dashed(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "")).strip("_").replace("_", "-")
