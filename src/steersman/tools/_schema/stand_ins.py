"""Stand-ins for types that msgspec does not know: paths, types of pydantic, unions.

Provides msgspec's two hooks. Pydantic is used if the program has imported it; it is never imported
here.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Hashable
from pathlib import PurePath
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard, TypeVar, cast, get_args

from steersman._json import Json, JsonDict

Annotation: TypeAlias = Any
"""A type as it is written in an annotation; Python has no static type for these."""
Read: TypeAlias = Callable[[Json], Any]
"""Makes a typed value from plain JSON; raises `ValueError` with the path and the reason."""
WriteSchema: TypeAlias = Callable[[str], JsonDict]
"""Writes a JSON Schema, given the template of its references, such as `#/$defs/{name}`."""


class _AcceptsAnyInstance(type):
    """Makes msgspec accept what a stand-in reads, which is never an instance of the stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_AcceptsAnyInstance):
    """Replaces, in an annotation, a type that msgspec cannot read."""

    read: ClassVar[Read]
    """Makes the value from plain JSON; raises `ValueError` with the reason."""
    write_schema: ClassVar[WriteSchema]


StandInT = TypeVar("StandInT", bound=StandIn)


def stand_in(name: str, read: Read, write_schema: WriteSchema) -> type[StandIn]:
    """Make a stand-in from the function that reads a value and the one that writes its schema."""
    return new_class(
        StandIn, name, read=staticmethod(read), write_schema=staticmethod(write_schema)
    )


def new_class(base: type[StandInT], name: str, **namespace: object) -> type[StandInT]:
    """Make a subclass of `base` with these attributes."""
    return types.new_class(name, (base,), exec_body=lambda body: body.update(namespace))


def read_stand_in(wanted: Annotation, value: Json) -> object:
    """Read a value of a type that msgspec does not know: its `dec_hook`."""
    return _stand_in_of(wanted).read(value)


def stand_in_schema(wanted: Annotation, reference: str) -> JsonDict:
    """Return the schema of a type that msgspec does not know. Raises `TypeError` if it has none."""
    return _stand_in_of(wanted).write_schema(reference)


def adapter_of(wanted: Annotation) -> type[StandIn]:
    """Make a stand-in that uses pydantic. Raises `TypeError` if pydantic refuses or is missing."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        raise TypeError(f"{name_of(wanted)} is not a type that JSON can carry")
    try:
        adapter = pydantic.TypeAdapter(wanted)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(f"{name_of(wanted)} is not a type that JSON can carry: {error}") from error

    def read(value: Json) -> object:
        try:
            return adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise ValueError(_explain(error)) from error

    def write_schema(reference: str) -> JsonDict:
        template = reference.replace("{name}", "{model}")
        try:
            return cast("JsonDict", adapter.json_schema(ref_template=template))
        except pydantic.errors.PydanticInvalidForJsonSchema as error:
            raise TypeError(f"{name_of(wanted)} has no JSON Schema: {error}") from error

    return stand_in(name_of(wanted), read, write_schema)


def literal_stand_in(literal: Annotation) -> type[StandIn]:
    """Make a stand-in for a Literal with values that msgspec does not compare, such as floats."""
    allowed = get_args(literal)

    def read(value: Json) -> object:
        for each in allowed:
            if type(each) is type(value) and each == value:
                return each
        raise ValueError(f"Expected one of {list(allowed)!r}, got {value!r}")

    return stand_in("Literal", read, lambda _: {"enum": list(allowed)})


def is_for_pydantic(wanted: Annotation, notes: tuple[object, ...] = ()) -> bool:
    """Return whether `wanted` is pydantic's own, so that msgspec would read it differently."""
    if "pydantic" not in sys.modules:
        return False
    is_pydantic_dataclass = "__pydantic_validator__" in getattr(wanted, "__dict__", {})
    return is_pydantic_dataclass or any(map(is_pydantic_note, notes))


def is_pydantic_note(note: object) -> bool:
    """Return whether `note` is a `Field(...)` or another constraint that pydantic understands."""
    return type(note).__module__.partition(".")[0] in {"pydantic", "annotated_types"}


def name_of(wanted: Annotation) -> str:
    """Return the name of a type, for error texts."""
    return getattr(wanted, "__name__", None) or str(wanted)


def is_class(value: object) -> TypeGuard[type[Any]]:
    """Return whether an annotation is a class."""
    return isinstance(value, type)


@functools.lru_cache(maxsize=1024)
def _stand_in_of(wanted: Hashable) -> type[StandIn]:
    if not is_class(wanted):
        return adapter_of(wanted)
    if issubclass(wanted, StandIn):
        return wanted
    if issubclass(wanted, PurePath):
        return _path_stand_in(wanted)
    if wanted is object:
        return stand_in("object", lambda value: value, lambda _: {})
    return adapter_of(wanted)


def _path_stand_in(wanted: type[PurePath]) -> type[StandIn]:
    def read(value: Json) -> PurePath:
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # noqa: TRY004 - JSON is the value
        return wanted(value)

    return stand_in("Path", read, lambda _: {"type": "string", "format": "path"})


class _ValidationError(Protocol):
    def errors(self, *, include_url: bool, include_context: bool) -> list[JsonDict]: ...


def _explain(error: _ValidationError) -> str:
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"])))
        for each in error.errors(include_url=False, include_context=False)
    )
