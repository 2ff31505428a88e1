"""`TypedDict`s whose annotations are not kept as text: this module has no `annotations` import."""

from typing import Annotated, NotRequired, Required, TypedDict


class Inner(TypedDict):
    """A class with all kinds of keys."""

    a: int
    b: NotRequired[str]
    c: Annotated[float, "the c"]
    d: str | None


class Outer(TypedDict, total=False):
    """A class with a class in it."""

    x: list[int]
    y: Required[dict[str, int]]
    z: Inner
