"""Enough of JSON Schema to refuse structured output as the CLI does. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from steersman._json import is_array, is_object

__all__ = ["misfits"]

Schema = Mapping[str, Any]


def misfits(value: Any, schema: Schema, root: Schema | None = None, path: str = "") -> list[str]:
    """What is wrong with `value`; nothing if it fits. Unknown keywords demand nothing."""
    root = schema if root is None else root
    if "$ref" in schema:
        return misfits(value, _resolve(root, schema["$ref"]), root, path)
    return [
        problem
        for keyword, demand in schema.items()
        if keyword in _CHECKS
        for problem in _CHECKS[keyword](value, demand, _Place(schema, root, path))
    ]


class _Place:
    def __init__(self, schema: Schema, root: Schema, path: str) -> None:
        self.schema = schema
        self.root = root
        self.path = path

    def says(self, problem: str) -> str:
        return f"{self.path or '/'}: {problem}"

    def below(self, key: str | int, value: Any, schema: Schema) -> list[str]:
        return misfits(value, schema, self.root, f"{self.path}/{key}")


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _check_type(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    names: list[str] = [demand] if isinstance(demand, str) else list(demand)
    if not any(_TYPES[name](value) for name in names):
        yield place.says(f"must be {','.join(names)}")


def _check_required(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if is_object(value):
        missing = [name for name in demand if name not in value]
        yield from (place.says(f"must have required property '{name}'") for name in missing)


def _check_properties(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if is_object(value):
        for name in demand.keys() & value.keys():
            yield from place.below(name, value[name], demand[name])


def _check_additional(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if is_object(value) and demand is False:
        known = place.schema.get("properties", {})
        if any(name not in known for name in value):
            yield place.says("must NOT have additional properties")


def _check_items(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if is_array(value) and isinstance(demand, Mapping):
        for position, item in enumerate(value):
            yield from place.below(position, item, cast("Schema", demand))


def _check_enum(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if value not in demand:
        yield place.says("must be equal to one of the allowed values")


def _check_const(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if value != demand:
        yield place.says("must be equal to constant")


def _check_any_of(value: Any, demand: Any, place: _Place) -> Iterator[str]:
    if all(misfits(value, each, place.root, place.path) for each in demand):
        yield place.says("must match a schema in anyOf")


_CHECKS: Mapping[str, Callable[[Any, Any, _Place], Iterator[str]]] = {
    "type": _check_type,
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_additional,
    "items": _check_items,
    "enum": _check_enum,
    "const": _check_const,
    "anyOf": _check_any_of,
    "oneOf": _check_any_of,
}


def _resolve(root: Schema, reference: str) -> Schema:
    found: Any = root
    for key in reference.removeprefix("#/").split("/"):
        found = found[key]
    return cast("Schema", found)
