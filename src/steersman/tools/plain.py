"""Classes, told apart from other annotations in a way that type checkers follow."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_class"]


def is_class(value: object) -> TypeGuard[type[Any]]:
    """Tell whether this is a class, as opposed to another kind of annotation."""
    return isinstance(value, type)
