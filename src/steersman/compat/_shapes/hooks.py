"""Hooks and the events they are registered for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict

from steersman.compat._shapes.hook_inputs import HookInput
from steersman.compat._shapes.hook_outputs import HookJSONOutput

__all__ = ["HookCallback", "HookContext", "HookMatcher"]


class HookContext(TypedDict):
    """The third argument of a hook."""

    signal: Any | None


HookCallback: TypeAlias = Callable[[HookInput, str | None, HookContext], Awaitable[HookJSONOutput]]
"""A hook: input, id of the tool call if there is one, context."""


@dataclass
class HookMatcher:
    """Hooks, and the tools or sources that they are called for."""

    matcher: str | None = None
    hooks: list[HookCallback] = field(default_factory=list[HookCallback])
    timeout: float | None = None
    on_failure: Literal["continue", "block"] | None = None
