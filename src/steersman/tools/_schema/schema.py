"""Types → JSON Schema.

Collects `$defs` from msgspec and pydantic, and descriptions from annotations and docstrings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast, get_args

import msgspec

from steersman._json import Json, JsonDict, JsonObject, is_array, is_object
from steersman.tools._schema.annotations import msgspec_readable
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.reading import RecordClass, UnionStandIn, class_hints, record_classes
from steersman.tools._schema.stand_ins import Annotation, is_class, stand_in_schema


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
