"""Structured output: the schema that the model gets, and the reader of its answer.

Takes pydantic models, dataclasses, TypedDicts, msgspec structs, and any other type JSON can carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from steersman._json import Json, JsonDict, is_array, is_object
from steersman.errors import UsageError
from steersman.tools._schema.annotations import msgspec_readable
from steersman.tools._schema.reading import reader_of
from steersman.tools._schema.schema import schema_of

if TYPE_CHECKING:
    from typing_extensions import TypeForm

WRAPPER = "output"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """One type: its JSON Schema for the model, and its reader for the program."""

    schema: JsonDict
    """A JSON Schema for an object; other types are wrapped as `{"output": ...}`."""
    is_wrapped: bool
    convert: Callable[[Json], T] = field(repr=False)

    def read(self, value: Json) -> T:
        """Make a `T` from the model's answer. Raises `ValueError` with the path and the reason.

        An answer with a missing or superfluous `{"output": ...}` around it is accepted.
        """
        first, *others = self._candidates(value)
        try:
            return self.convert(first)
        except ValueError:
            for other in others:
                try:
                    return self.convert(other)
                except ValueError:
                    continue
            raise

    def _candidates(self, value: Json) -> list[Json]:
        """Return the possible readings of the answer, the likeliest first."""
        if not is_object(value) or list(value) != [WRAPPER]:
            return [value]
        inside = value[WRAPPER]
        if self.is_wrapped or self._cannot_have_wrapper_field():
            return [inside, value]
        return [value, inside]

    def _cannot_have_wrapper_field(self) -> bool:
        properties = self.schema.get("properties")
        return properties is not None and WRAPPER not in properties


def shape_of(wanted: TypeForm[T], argument: str = "output") -> Shape[T]:
    """Return the shape of a type. Raises `UsageError` if JSON cannot carry it."""
    try:
        readable_type = msgspec_readable(wanted)
        schema = _resolved(schema_of(wanted))
    except (TypeError, NameError, ValueError) as error:
        raise UsageError(
            argument, wanted, "a type that JSON can carry", hint=str(error).splitlines()[0]
        ) from error
    is_wrapped = schema.get("type") != "object"
    return Shape(
        _wrapped(schema) if is_wrapped else schema,
        is_wrapped,
        reader_of(readable_type),
    )


def _resolved(schema: JsonDict) -> JsonDict:
    """Replace a schema that is only a reference by the definition that it refers to."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions = dict(schema["$defs"])
    name = reference.removeprefix("#/$defs/")
    top = {**definitions[name], **{key: schema[key] for key in schema.keys() - {"$ref", "$defs"}}}
    # A type that contains itself still needs its definition.
    if not _mentions(
        [top, *(definitions[other] for other in definitions if other != name)], reference
    ):
        del definitions[name]
    return {**top, "$defs": definitions} if definitions else top


def _wrapped(schema: JsonDict) -> JsonDict:
    definitions = schema.pop("$defs", None)
    wrapper = {
        "type": "object",
        "properties": {WRAPPER: schema},
        "required": [WRAPPER],
        "additionalProperties": False,
    }
    return {**wrapper, "$defs": definitions} if definitions else wrapper


def _mentions(schema: Json, reference: str) -> bool:
    if is_object(schema):
        return any(_mentions(each, reference) for each in schema.values())
    if is_array(schema):
        return any(_mentions(each, reference) for each in schema)
    return bool(schema == reference)
