"""Checks structured output against its JSON Schema.

The package `jsonschema` finds the problems. The CLI uses Ajv, so Ajv's messages are used here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from steersman._json import Json, JsonObject
from steersman.errors import UsageError

LIBRARY = "jsonschema"


class SchemaError(Protocol):
    """A problem that `jsonschema` found."""

    message: str
    validator: str
    """The keyword of the schema that the value violates."""
    validator_value: Json
    """The value of that keyword."""
    absolute_path: Iterable[str | int]


def schema_errors(value: Json, schema: JsonObject, *, library: str = LIBRARY) -> list[str]:
    """Return the problems of `value`, each with its place; an empty list if it fits `schema`.

    Raises `UsageError` if `jsonschema` is not installed.
    """
    try:
        validator = importlib.import_module(library).Draft202012Validator(schema)
    except ImportError:
        raise UsageError(
            "json_schema",
            schema,
            "no schema, because the package jsonschema is not installed",
            hint="pip install steersman[testing], or pass checks_output=False to ScriptedCLI",
        ) from None
    found: Iterable[SchemaError] = validator.iter_errors(value)
    return [f"/{'/'.join(map(str, error.absolute_path))}: {_text(error)}" for error in found]


def _text(error: SchemaError) -> str:
    make_text = _TEXTS.get(error.validator)
    return error.message if make_text is None else make_text(error)


def _fixed(text: str) -> Callable[[SchemaError], str]:
    """Return a function that puts the keyword's value into `text`."""
    return lambda error: text.format(error.validator_value)


def _type(error: SchemaError) -> str:
    names: str | Sequence[str] = error.validator_value
    return f"must be {names if isinstance(names, str) else ','.join(names)}"


def _required(error: SchemaError) -> str:
    # One error for each missing property; only the message has its name.
    names: Sequence[Json] = error.validator_value
    name = next((each for each in names if error.message.startswith(repr(each))), "")
    return f"must have required property '{name}'"


_TEXTS: Mapping[str, Callable[[SchemaError], str]] = {
    "type": _type,
    "required": _required,
    "additionalProperties": _fixed("must NOT have additional properties"),
    "enum": _fixed("must be equal to one of the allowed values"),
    "const": _fixed("must be equal to constant"),
    "anyOf": _fixed("must match a schema in anyOf"),
    "oneOf": _fixed("must match exactly one schema in oneOf"),
    "minimum": _fixed("must be >= {}"),
    "maximum": _fixed("must be <= {}"),
    "exclusiveMinimum": _fixed("must be > {}"),
    "exclusiveMaximum": _fixed("must be < {}"),
    "multipleOf": _fixed("must be multiple of {}"),
    "minLength": _fixed("must NOT have fewer than {} characters"),
    "maxLength": _fixed("must NOT have more than {} characters"),
    "minItems": _fixed("must NOT have fewer than {} items"),
    "maxItems": _fixed("must NOT have more than {} items"),
    "pattern": _fixed('must match pattern "{}"'),
}
