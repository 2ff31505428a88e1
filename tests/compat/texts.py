"""A `TypedDict` whose annotations are kept as text, as in most programs."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Later(TypedDict):
    """Contains itself."""

    a: int
    b: NotRequired[str]
    again: NotRequired[Later]
