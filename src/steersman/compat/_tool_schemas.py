"""Declared parameters of a tool → the JSON Schema that the model reads.

The same schema as that of the official SDK, for all forms that it takes: names with types, a
`TypedDict`, or a JSON Schema. A type that has no form of its own is a string there, and here.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeAlias,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from steersman._json import JsonDict, is_mapping

Annotation: TypeAlias = Any

PLAIN: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


def schema_of(declared: object) -> JsonDict:
    """Return the JSON Schema of what was declared; an object of anything for other classes."""
    if is_mapping(declared):
        if _is_schema(declared):
            return dict(declared)
        return {
            "type": "object",
            "properties": {name: _of(each, ()) for name, each in declared.items()},
            "required": [*declared],
        }
    if _is_typed_dict(declared):
        return _of_typed_dict(declared, ())
    return {"type": "object", "properties": {}}


def _is_schema(declared: Mapping[str, Any]) -> bool:
    return isinstance(declared.get("type"), str) and is_mapping(declared.get("properties"))


def _is_typed_dict(given: object) -> TypeGuard[type]:
    """Whether `given` is a `TypedDict`, of `typing` or of `typing_extensions`."""
    has_total = hasattr(given, "__total__")
    return has_total and isinstance(given, type) and issubclass(given, dict)


def _of(annotation: Annotation, within: tuple[type, ...]) -> JsonDict:
    """Return the schema of one type; `within` are the `TypedDict`s that it is part of."""
    if _is_typed_dict(annotation):
        return _of_typed_dict(annotation, within)
    compose = _COMPOSED.get(_origin(annotation))
    if compose is not None:
        return compose(annotation, within)
    try:
        return {"type": PLAIN.get(annotation, "string")}
    except TypeError:  # not hashable, so no type
        return {"type": "string"}


def _of_typed_dict(declared: type, within: tuple[type, ...]) -> JsonDict:
    if declared in within:
        # A type that contains itself has no finite schema: its inner one is an object.
        return {"type": "object"}
    hints = get_type_hints(declared, include_extras=True)
    schema: JsonDict = {
        "type": "object",
        "properties": {name: _of(each, (*within, declared)) for name, each in hints.items()},
    }
    required = [name for name, each in hints.items() if _is_required(declared, name, each)]
    return {**schema, "required": required} if required else schema


def _is_required(declared: type, name: str, annotation: Annotation) -> bool:
    if _origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    # `__required_keys__` does not know these two if annotations are kept as text.
    if _origin(annotation) is Required:
        return True
    if _origin(annotation) is NotRequired:
        return False
    return name in getattr(declared, "__required_keys__", ())


def _origin(annotation: Annotation) -> object:
    return get_origin(annotation)


def _described(annotation: Annotation, within: tuple[type, ...]) -> JsonDict:
    inner, *notes = get_args(annotation)
    schema = _of(inner, within)
    texts = [each for each in notes if isinstance(each, str)]
    return {**schema, "description": texts[0]} if texts else schema


def _union(annotation: Annotation, within: tuple[type, ...]) -> JsonDict:
    members = [each for each in get_args(annotation) if each is not types.NoneType]
    if len(members) == 1:
        return _of(members[0], within)
    return {"anyOf": [_of(each, within) for each in members]}


def _array(annotation: Annotation, within: tuple[type, ...]) -> JsonDict:
    return {"type": "array", "items": _of(get_args(annotation)[0], within)}


def _object(_: Annotation, __: tuple[type, ...]) -> JsonDict:
    return {"type": "object"}


def _inner(annotation: Annotation, within: tuple[type, ...]) -> JsonDict:
    return _of(get_args(annotation)[0], within)


_COMPOSED: Mapping[object, Callable[[Annotation, tuple[type, ...]], JsonDict]] = {
    Annotated: _described,
    Union: _union,
    types.UnionType: _union,
    list: _array,
    dict: _object,
    Required: _inner,
    NotRequired: _inner,
}
