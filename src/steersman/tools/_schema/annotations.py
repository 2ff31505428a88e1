"""Annotations that msgspec can read.

Where it would refuse one, or read it otherwise than its owner, a stand-in takes its place.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from steersman._json import is_array
from steersman.tools._schema.reading import union_stand_in
from steersman.tools._schema.stand_ins import adapter_of, is_for_pydantic, literal_stand_in

__all__ = ["msgspec_readable"]


def msgspec_readable(annotation: Any) -> Any:
    """Rewrite an annotation so that msgspec can read it; raises `TypeError` if nobody can."""
    if annotation is inspect.Parameter.empty or annotation is object:
        return Any
    if rewrite := _REWRITES.get(get_origin(annotation)):
        return rewrite(annotation)
    if is_for_pydantic(annotation):
        return adapter_of(annotation)
    annotation = _readable_inside(annotation)
    return annotation if _is_accepted(annotation) else adapter_of(annotation)


def _readable_annotated(annotation: Any) -> Any:
    inner, *notes = get_args(annotation)
    if is_for_pydantic(inner, tuple(notes)):
        return adapter_of(annotation)
    spelled = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(msgspec_readable(inner), *spelled)]


def _readable_union(annotation: Any) -> Any:
    members = tuple(map(msgspec_readable, get_args(annotation)))
    union = cast("Any", Union)[members]
    return union if _is_accepted(union) else union_stand_in(members)


def _readable_literal(annotation: Any) -> Any:
    return annotation if _is_accepted(annotation) else literal_stand_in(annotation)


def _readable_inside(annotation: Any) -> Any:
    """Rewrite what stands in the brackets."""
    inside = tuple(map(_readable_argument, get_args(annotation)))
    generic: Any = get_origin(annotation)
    has_inside = inside and isinstance(get_origin(annotation), type)
    return generic[inside] if has_inside else annotation


def _readable_argument(argument: Any) -> Any:
    return argument if argument is Ellipsis or is_array(argument) else msgspec_readable(argument)


def _is_accepted(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


_REWRITES: dict[Any, Callable[[Any], Any]] = {
    Annotated: _readable_annotated,
    Union: _readable_union,
    types.UnionType: _readable_union,
    Literal: _readable_literal,
}
