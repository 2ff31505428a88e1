"""Parameters that are declared in a mapping, as in the official SDK.

Takes `{"a": float}`, `{"a": "number"}` or a whole JSON Schema, and returns `Arguments` as for a
signature. The handler then takes one dict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec

from steersman._json import Json, JsonDict, JsonObject, is_array
from steersman.errors import UsageError
from steersman.tools._schema.reading import msgspec_readable, reader_of, union_stand_in
from steersman.tools._schema.schema import shape_of
from steersman.tools._schema.signatures import Arguments, Field, record_class, record_of
from steersman.tools._schema.stand_ins import Annotation, Read, StandIn, stand_in

InputSchema: TypeAlias = JsonObject | type[Any]

# An int stays an int, so that the handler prints what the model wrote.
Number = stand_in("Number", reader_of(int | float), lambda _: {"type": "number"})

JSON_TYPES: dict[str, Annotation] = {
    "string": str,
    "number": Number,
    "integer": int,
    "boolean": bool,
    "object": JsonDict,
    "array": list[Json],
    "null": None,
}
ALLOWED = "a type, one of " + ", ".join(JSON_TYPES) + ", or a JSON Schema"

NUMBER_LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
LIMITS: dict[str, tuple[Annotation, dict[str, str]]] = {
    "string": (str, {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}),
    "integer": (int, NUMBER_LIMITS),
    "number": (float, NUMBER_LIMITS),
}
ITEM_LIMITS = {"minItems": "min_length", "maxItems": "max_length"}


def declared_arguments(declared: InputSchema) -> Arguments:
    """Read a declaration. Raises `UsageError` that names the wrong part."""
    if not isinstance(declared, Mapping):
        shape = shape_of(declared, "input_schema")
        return Arguments(shape.schema, shape.read)
    if _is_json_schema(declared):
        return _arguments_of_json_schema({"type": "object", **declared})
    return record_of([_declared_field(*item) for item in declared.items()], "input_schema")


def _is_json_schema(declared: JsonObject) -> bool:
    """Return whether this is a whole schema, and not a mapping of names, one of them `type`."""
    if isinstance(declared.get("properties"), Mapping):
        return True
    others = [value for key, value in declared.items() if key != "type"]
    return declared.get("type") == "object" and not any(map(_is_type, others))


def _is_type(value: object) -> bool:
    return isinstance(value, type) or (isinstance(value, str) and value in JSON_TYPES)


def _declared_field(name: str, declared: Json) -> Field:
    if isinstance(declared, str):
        if declared not in JSON_TYPES:
            raise UsageError(f"input_schema[{name!r}]", declared, ALLOWED)
        return Field(name, JSON_TYPES[declared])
    if isinstance(declared, Mapping):
        return Field(name, _stand_in_for(cast("JsonObject", declared)))
    if declared is float:
        return Field(name, Number)
    return Field(name, declared)


def _arguments_of_json_schema(schema: JsonDict) -> Arguments:
    check = _check_of(schema, schema)

    def read(given: JsonObject) -> JsonDict:
        check(given)
        return dict(given)

    return Arguments(schema, read)


def _stand_in_for(schema: JsonObject) -> type[StandIn]:
    check = _check_of(schema, schema)

    def read(value: Json) -> Json:
        check(value)
        return value

    return stand_in("Declared", read, lambda _: dict(schema))


def _check_of(schema: JsonObject, root: JsonObject) -> Read:
    try:
        wanted = msgspec_readable(_Compiler(root).type_of(schema))
    except (TypeError, ValueError) as error:
        raise UsageError("input_schema", schema, "a JSON Schema", hint=str(error)) from error
    return reader_of(wanted)


class _Compiler:
    """JSON Schema → types that msgspec checks.

    Supported are `type`, `enum`, `const`, `anyOf`, `oneOf` (read as `anyOf`), `allOf`, `$ref` into
    the same schema, `properties`, `required`, `additionalProperties`, `items`, and limits of
    numbers, lengths and patterns. Other keywords are sent to the model but not checked.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._open: list[str] = []

    def type_of(self, schema: Json) -> Annotation:
        if not isinstance(schema, Mapping):
            return Any
        keywords = cast("JsonObject", schema)
        parts = [
            compile_part(keywords[keyword])
            for keyword, compile_part in self._combiners().items()
            if keyword in keywords
        ]
        if "type" in keywords:
            parts.append(self._typed(keywords))
        parts = [part for part in parts if part is not Any]
        if not parts:
            return Any
        return parts[0] if len(parts) == 1 else _all_of(parts)

    def _combiners(self) -> dict[str, Callable[[Json], Annotation]]:
        return {
            "$ref": self._referred,
            "enum": _one_of_values,
            "const": lambda value: _one_of_values([value]),
            "anyOf": self._one_of,
            "oneOf": self._one_of,
            "allOf": lambda schemas: _all_of([self.type_of(each) for each in schemas]),
        }

    def _referred(self, reference: str) -> Annotation:
        # A schema that contains itself is checked one level deep.
        if reference in self._open or not reference.startswith("#/"):
            return Any
        self._open.append(reference)
        found: Json = self._root
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step, {})
        compiled = self.type_of(found)
        self._open.pop()
        return compiled

    def _one_of(self, schemas: Iterable[Json]) -> Annotation:
        members = tuple(self.type_of(each) for each in schemas)
        return Any if Any in members else union_stand_in(members)

    def _typed(self, schema: JsonObject) -> Annotation:
        kind = schema["type"]
        if is_array(kind):
            return self._one_of([{**schema, "type": each} for each in kind])
        if kind == "object":
            return self._object(schema)
        if kind == "array":
            return _limited(_list_of(self.type_of(schema.get("items"))), schema, ITEM_LIMITS)
        if kind in LIMITS:
            return _limited(LIMITS[kind][0], schema, LIMITS[kind][1])
        if kind not in JSON_TYPES:
            raise ValueError(f"{kind!r} is not a JSON type")
        return JSON_TYPES[kind]

    def _object(self, schema: JsonObject) -> Annotation:
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties", True)
        if not properties and extra is not False:
            return dict.__class_getitem__((str, self.type_of(extra)))
        types = {name: self.type_of(each) for name, each in properties.items()}
        return record_class(types, schema.get("required", ()), is_closed=extra is False)


def _list_of(items: Annotation) -> Annotation:
    return list.__class_getitem__(items)


def _limited(wanted: Annotation, schema: JsonObject, limits: Mapping[str, str]) -> Annotation:
    found = {
        limit: schema[keyword]
        for keyword, limit in limits.items()
        if keyword in schema and not (keyword == "pattern" and _is_only_javascript(schema[keyword]))
    }
    return Annotated[wanted, msgspec.Meta(**found)] if found else wanted


def _is_only_javascript(pattern: Json) -> bool:
    """Return whether Python cannot compile a pattern: JSON Schema uses JavaScript's syntax."""
    try:
        re.compile(pattern)
    except (re.error, TypeError):
        return True
    return False


def _one_of_values(values: list[Json]) -> Annotation:
    return msgspec_readable(Literal[tuple(values)])


def _all_of(parts: list[Annotation]) -> type[StandIn]:
    readers = [reader_of(part) for part in parts]

    def read(value: Json) -> Json:
        for read_part in readers:
            read_part(value)
        return value

    return stand_in("AllOf", read, lambda _: {})
