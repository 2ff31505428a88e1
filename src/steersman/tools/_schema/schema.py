"""Types → JSON Schema, and the shape of structured output: its schema and its reader.

Collects `$defs` from msgspec and pydantic, and descriptions from annotations and docstrings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, cast, get_args

import msgspec

from steersman._json import Json, JsonDict, JsonObject, is_array, is_object
from steersman.errors import UsageError
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.reading import (
    RecordClass,
    UnionStandIn,
    class_hints,
    msgspec_readable,
    reader_of,
    record_classes,
)
from steersman.tools._schema.stand_ins import Annotation, is_class, stand_in_schema

if TYPE_CHECKING:
    from typing_extensions import TypeForm

WRAPPER = "output"

T = TypeVar("T")


def schema_of(wanted: Annotation) -> JsonDict:
    """Return the schema of a type, with its `$defs`. Raises `TypeError` if JSON cannot carry it."""
    definitions = Definitions()
    return definitions.attached_to(definitions.describe(msgspec_readable(wanted)))


class Definitions:
    """The `$defs` of one schema, collected from msgspec and pydantic under distinct names."""

    def __init__(self) -> None:
        self._found: JsonDict = {}
        self._fragments = 0

    def describe(self, wanted: Annotation) -> JsonDict:
        """Return the schema of a type that msgspec can read; keep the definitions it refers to."""
        prefix, classes = self._new_prefix(), list(record_classes(wanted))
        (described, *references), components = msgspec.json.schema_components(
            (wanted, *classes), schema_hook=self._describe_stand_in, ref_template=prefix + "{name}"
        )
        for each, reference in zip(classes, references, strict=True):
            if name := reference.get("$ref", "").removeprefix(prefix):
                _describe_fields(components[name], each)
        return self._merge(described, components, prefix)

    def attached_to(self, schema: JsonDict) -> JsonDict:
        """Return `schema` with the definitions that it refers to."""
        needed: JsonDict = {}
        waiting = list(_references(schema))
        for name in waiting:
            if name not in needed and name in self._found:
                needed[name] = self._found[name]
                waiting.extend(_references(needed[name]))
        return {**schema, "$defs": needed} if needed else schema

    def _describe_stand_in(self, wanted: Annotation) -> JsonDict:
        if is_class(wanted) and issubclass(wanted, UnionStandIn):
            return {"anyOf": [self.describe(member) for member in wanted.members]}
        prefix = self._new_prefix()
        schema = stand_in_schema(wanted, prefix + "{name}")
        return self._merge(schema, schema.pop("$defs", {}), prefix)

    def _new_prefix(self) -> str:
        # Each fragment refers to its own names until the final ones are known.
        self._fragments += 1
        return f"#/fragment{self._fragments}/"

    def _merge(self, schema: JsonDict, components: JsonObject, prefix: str) -> JsonDict:
        names = {name: name for name in components}
        for name, component in components.items():
            same = _with_references(component, prefix, names)
            if self._found.get(name, same) != same:
                names[name] = self._free_name(name)
        for name, component in components.items():
            self._found[names[name]] = _with_references(component, prefix, names)
        return cast("JsonDict", _with_references(schema, prefix, names))

    def _free_name(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._found:
            number += 1
        return f"{name}_{number}"


def _describe_fields(component: JsonDict, record: RecordClass) -> None:
    """Add the descriptions of fields from the class: docstring sections, `Annotated` strings."""
    docstring = read_docstring(component.get("description"))
    if "description" in component:
        component["description"] = docstring.description
    hints = class_hints(record)
    for name, schema in component.get("properties", {}).items():
        text = _note(hints.get(name)) or docstring.parameters.get(name)
        if text:
            schema.setdefault("description", text)


def _note(hint: Annotation) -> str | None:
    # Keys of a TypedDict may be wrapped in Required or NotRequired.
    for part in (hint, *get_args(hint)):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, str):
                return note
    return None


def _references(schema: Json) -> Iterator[str]:
    if is_object(schema):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix("#/$defs/")
        schema = list(schema.values())
    if is_array(schema):
        for inside in schema:
            yield from _references(inside)


def _with_references(schema: Json, prefix: str, names: Mapping[str, str]) -> Json:
    """Replace the references of one fragment by the final names of the definitions."""
    if is_array(schema):
        return [_with_references(inside, prefix, names) for inside in schema]
    if is_object(schema):
        return {key: _with_references(inside, prefix, names) for key, inside in schema.items()}
    if isinstance(schema, str) and schema.startswith(prefix):
        name = schema.removeprefix(prefix)
        return f"#/$defs/{names.get(name, name)}"
    return schema


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
