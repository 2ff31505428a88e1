"""Parameters that are declared in a mapping, as the seeds and the official SDK write them.

`{"a": float}`, `{"a": "number"}` and whole JSON Schemas go in; the same `Arguments` come out as for
a signature. The handler then takes one dict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from steersman._json import is_array
from steersman.errors import UsageError
from steersman.tools._schema.annotations import msgspec_readable
from steersman.tools._schema.output import shape_of
from steersman.tools._schema.reading import reader_of, union_stand_in
from steersman.tools._schema.signatures import Arguments, Field, record_class, record_of
from steersman.tools._schema.stand_ins import stand_in

__all__ = ["InputSchema", "declared_arguments"]

InputSchema = Mapping[str, Any] | type[Any]

# A whole number stays whole: the handler prints what the model wrote.
Number = stand_in("Number", reader_of(int | float), lambda _: {"type": "number"})

TYPE_WORDS: dict[str, Any] = {
    "string": str,
    "number": Number,
    "integer": int,
    "boolean": bool,
    "object": dict[str, Any],
    "array": list[Any],
    "null": None,
}
WORDS_ALLOWED = "a type, one of " + ", ".join(TYPE_WORDS) + ", or a JSON Schema"

NUMBER_LIMITS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
LIMITS: dict[str, tuple[Any, dict[str, str]]] = {
    "string": (str, {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}),
    "integer": (int, NUMBER_LIMITS),
    "number": (float, NUMBER_LIMITS),
}
ITEM_LIMITS = {"minItems": "min_length", "maxItems": "max_length"}


def declared_arguments(declared: InputSchema) -> Arguments:
    """Read a declaration; raises `UsageError` naming what cannot be."""
    if not isinstance(declared, Mapping):
        shape = shape_of(declared, "input_schema")
        return Arguments(shape.schema, shape.read)
    if _is_json_schema(declared):
        return _arguments_of_json_schema({"type": "object", **declared})
    return record_of([_declared_field(*item) for item in declared.items()], "input_schema")


def _is_json_schema(declared: Mapping[str, Any]) -> bool:
    """Tell a whole schema from a mapping of names, which may well have a parameter `type`."""
    if isinstance(declared.get("properties"), Mapping):
        return True
    others = [value for key, value in declared.items() if key != "type"]
    return declared.get("type") == "object" and not any(map(_is_type, others))


def _is_type(value: Any) -> bool:
    return isinstance(value, type) or (isinstance(value, str) and value in TYPE_WORDS)


def _declared_field(name: str, declared: Any) -> Field:
    if isinstance(declared, str):
        if declared not in TYPE_WORDS:
            raise UsageError(f"input_schema[{name!r}]", declared, WORDS_ALLOWED)
        return Field(name, TYPE_WORDS[declared])
    if isinstance(declared, Mapping):
        return Field(name, _stand_in_for(cast("Mapping[str, Any]", declared)))
    if declared is float:
        return Field(name, Number)
    return Field(name, declared)


def _arguments_of_json_schema(schema: dict[str, Any]) -> Arguments:
    check = _check_of(schema, schema)

    def read(given: Mapping[str, Any]) -> dict[str, Any]:
        check(given)
        return dict(given)

    return Arguments(schema, read)


def _stand_in_for(schema: Mapping[str, Any]) -> Any:
    check = _check_of(schema, schema)

    def read(value: Any) -> Any:
        check(value)
        return value

    return stand_in("Declared", read, lambda _: dict(schema))


def _check_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Callable[[Any], Any]:
    try:
        wanted = msgspec_readable(_Compiler(root).type_of(schema))
    except (TypeError, ValueError) as error:
        raise UsageError("input_schema", schema, "a JSON Schema", hint=str(error)) from error
    return reader_of(wanted)


class _Compiler:
    """JSON Schema to types that msgspec checks; what it has no word for is left to the handler."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._open: list[str] = []

    def type_of(self, schema: Any) -> Any:
        if not isinstance(schema, Mapping):
            return Any
        words = cast("Mapping[str, Any]", schema)
        parts = [
            compile_part(words[keyword])
            for keyword, compile_part in self._combiners().items()
            if keyword in words
        ]
        if "type" in words:
            parts.append(self._typed(words))
        parts = [part for part in parts if part is not Any]
        if not parts:
            return Any
        return parts[0] if len(parts) == 1 else _all_of(parts)

    def _combiners(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "$ref": self._referred,
            "enum": _one_of_values,
            "const": lambda value: _one_of_values([value]),
            "anyOf": self._one_of,
            "oneOf": self._one_of,
            "allOf": lambda schemas: _all_of([self.type_of(each) for each in schemas]),
        }

    def _referred(self, reference: str) -> Any:
        # A schema that contains itself is checked once around.
        if reference in self._open or not reference.startswith("#/"):
            return Any
        self._open.append(reference)
        found: Any = self._root
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step, {})
        compiled = self.type_of(found)
        self._open.pop()
        return compiled

    def _one_of(self, schemas: Iterable[Any]) -> Any:
        members = tuple(self.type_of(each) for each in schemas)
        return Any if Any in members else union_stand_in(members)

    def _typed(self, words: Mapping[str, Any]) -> Any:
        kind = words["type"]
        if is_array(kind):
            return self._one_of([{**words, "type": each} for each in kind])
        if kind == "object":
            return self._object(words)
        if kind == "array":
            return _limited(_list_of(self.type_of(words.get("items"))), words, ITEM_LIMITS)
        if kind in LIMITS:
            return _limited(LIMITS[kind][0], words, LIMITS[kind][1])
        if kind not in TYPE_WORDS:
            raise ValueError(f"{kind!r} is not a JSON type")
        return TYPE_WORDS[kind]

    def _object(self, words: Mapping[str, Any]) -> Any:
        properties, extra = words.get("properties", {}), words.get("additionalProperties", True)
        if not properties and extra is not False:
            return dict.__class_getitem__((str, self.type_of(extra)))
        types = {name: self.type_of(each) for name, each in properties.items()}
        return record_class(types, words.get("required", ()), is_closed=extra is False)


def _list_of(items: Any) -> Any:
    return list.__class_getitem__(items)


def _limited(wanted: Any, words: Mapping[str, Any], limits: Mapping[str, str]) -> Any:
    found = {
        limit: words[keyword]
        for keyword, limit in limits.items()
        if keyword in words and not (keyword == "pattern" and _is_only_javascript(words[keyword]))
    }
    return Annotated[wanted, msgspec.Meta(**found)] if found else wanted


def _is_only_javascript(pattern: Any) -> bool:
    """Tell whether Python cannot read the pattern; JSON Schema writes them in JavaScript."""
    try:
        re.compile(pattern)
    except (re.error, TypeError):
        return True
    return False


def _one_of_values(values: list[Any]) -> Any:
    return msgspec_readable(Literal[tuple(values)])


def _all_of(parts: list[Any]) -> Any:
    readers = [reader_of(part) for part in parts]

    def read(value: Any) -> Any:
        for read_part in readers:
            read_part(value)
        return value

    return stand_in("AllOf", read, lambda _: {})
