"""Plain JSON values, told apart in a way that type checkers follow."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_array", "is_class", "is_object"]


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether this is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Tell whether this is a JSON array."""
    return isinstance(value, list)


def is_class(value: object) -> TypeGuard[type[Any]]:
    """Tell whether this is a class, as opposed to another kind of annotation."""
    return isinstance(value, type)
