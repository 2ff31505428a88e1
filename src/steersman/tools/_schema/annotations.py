"""Annotations rewritten so that msgspec can read them.

A type that msgspec refuses, or reads differently from pydantic to which it belongs, is replaced by
a stand-in.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from steersman._json import is_array
from steersman.tools._schema.reading import union_stand_in
from steersman.tools._schema.stand_ins import (
    Annotation,
    adapter_of,
    is_for_pydantic,
    literal_stand_in,
)


def msgspec_readable(annotation: Annotation) -> Annotation:
    """Rewrite an annotation so that msgspec can read it. Raises `TypeError` if JSON cannot."""
    if annotation is inspect.Parameter.empty or annotation is object:
        return Any
    if rewrite := _REWRITES.get(get_origin(annotation)):
        return rewrite(annotation)
    if is_for_pydantic(annotation):
        return adapter_of(annotation)
    annotation = _rewrite_arguments(annotation)
    return annotation if _is_accepted(annotation) else adapter_of(annotation)


def _rewrite_annotated(annotation: Annotation) -> Annotation:
    inner, *notes = get_args(annotation)
    if is_for_pydantic(inner, tuple(notes)):
        return adapter_of(annotation)
    metas = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(msgspec_readable(inner), *metas)]


def _rewrite_union(annotation: Annotation) -> Annotation:
    members = tuple(map(msgspec_readable, get_args(annotation)))
    union = cast("Annotation", Union)[members]
    return union if _is_accepted(union) else union_stand_in(members)


def _rewrite_literal(annotation: Annotation) -> Annotation:
    return annotation if _is_accepted(annotation) else literal_stand_in(annotation)


def _rewrite_arguments(annotation: Annotation) -> Annotation:
    """Rewrite the type arguments of a generic."""
    inside = tuple(map(_rewrite_argument, get_args(annotation)))
    generic: Annotation = get_origin(annotation)
    has_inside = inside and isinstance(get_origin(annotation), type)
    return generic[inside] if has_inside else annotation


def _rewrite_argument(argument: Annotation) -> Annotation:
    return argument if argument is Ellipsis or is_array(argument) else msgspec_readable(argument)


def _is_accepted(annotation: Annotation) -> bool:
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


_REWRITES: dict[object, Callable[[Annotation], Annotation]] = {
    Annotated: _rewrite_annotated,
    Union: _rewrite_union,
    types.UnionType: _rewrite_union,
    Literal: _rewrite_literal,
}
