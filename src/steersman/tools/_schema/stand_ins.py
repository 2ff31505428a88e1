"""Types that msgspec does not know: paths, pydantic's, and stand-ins made by our own rules.

Gives msgspec its two hooks. Pydantic is used if the user has imported it, and never imported here.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Hashable
from pathlib import PurePath
from typing import Any, ClassVar, TypeGuard, TypeVar, cast, get_args

__all__ = [
    "StandIn",
    "adapter_of",
    "is_class",
    "is_for_pydantic",
    "is_pydantic_note",
    "literal_stand_in",
    "name_of",
    "new_class",
    "read_stand_in",
    "stand_in",
    "stand_in_schema",
]

Read = Callable[[Any], Any]
WriteSchema = Callable[[str], dict[str, Any]]
"""Writes a JSON Schema, given the template of its references, such as `#/$defs/{name}`."""


class _TakesAnything(type):
    """Lets msgspec accept what a stand-in reads, which is never an instance of the stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_TakesAnything):
    """A class that stands in an annotation for something msgspec cannot read."""

    read: ClassVar[Read]
    """Make the value of plain JSON; raises `ValueError` with the reason."""
    write_schema: ClassVar[WriteSchema]


StandInT = TypeVar("StandInT", bound=StandIn)


def stand_in(name: str, read: Read, write_schema: WriteSchema) -> type[StandIn]:
    """Make a class that reads and describes itself."""
    return new_class(
        StandIn, name, read=staticmethod(read), write_schema=staticmethod(write_schema)
    )


def new_class(base: type[StandInT], name: str, **namespace: Any) -> type[StandInT]:
    """Make a subclass on the spot."""
    return types.new_class(name, (base,), exec_body=lambda body: body.update(namespace))


def read_stand_in(wanted: Any, value: Any) -> Any:
    """Read a type that msgspec does not know."""
    return _stand_in_for_type(wanted).read(value)


def stand_in_schema(wanted: Any, reference: str) -> dict[str, Any]:
    """Describe a type that msgspec does not know; raises `TypeError` if nobody does."""
    return _stand_in_for_type(wanted).write_schema(reference)


def adapter_of(wanted: Any) -> type[StandIn]:
    """Let pydantic read and describe `wanted`; raises `TypeError` if it cannot, or is not there."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None:
        raise TypeError(f"{name_of(wanted)} is not a type that JSON can carry")
    try:
        adapter = pydantic.TypeAdapter(wanted)
    except pydantic.errors.PydanticUserError as error:
        raise TypeError(f"{name_of(wanted)} is not a type that JSON can carry: {error}") from error

    def read(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise ValueError(_explain(error)) from error

    def write_schema(reference: str) -> dict[str, Any]:
        template = reference.replace("{name}", "{model}")
        try:
            return cast("dict[str, Any]", adapter.json_schema(ref_template=template))
        except pydantic.errors.PydanticInvalidForJsonSchema as error:
            raise TypeError(f"{name_of(wanted)} has no JSON Schema: {error}") from error

    return stand_in(name_of(wanted), read, write_schema)


def literal_stand_in(literal: Any) -> type[StandIn]:
    """Stand in for a Literal of values that msgspec does not compare, such as floats."""
    allowed = get_args(literal)

    def read(value: Any) -> Any:
        for each in allowed:
            if type(each) is type(value) and each == value:
                return each
        raise ValueError(f"Expected one of {list(allowed)!r}, got {value!r}")

    return stand_in("Literal", read, lambda _: {"enum": list(allowed)})


def is_for_pydantic(wanted: Any, notes: tuple[Any, ...] = ()) -> bool:
    """Tell whether msgspec would read `wanted` otherwise than pydantic, to whom it belongs."""
    if "pydantic" not in sys.modules:
        return False
    is_pydantic_dataclass = "__pydantic_validator__" in getattr(wanted, "__dict__", {})
    return is_pydantic_dataclass or any(map(is_pydantic_note, notes))


def is_pydantic_note(note: object) -> bool:
    """Tell whether this is `Field(...)`, or one of the constraints that pydantic understands."""
    return type(note).__module__.partition(".")[0] in {"pydantic", "annotated_types"}


def name_of(wanted: Any) -> str:
    """Name a type for people."""
    return getattr(wanted, "__name__", None) or str(wanted)


@functools.lru_cache(maxsize=1024)
def _stand_in_for_type(wanted: Hashable) -> type[StandIn]:
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
    def read(value: Any) -> PurePath:
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")  # noqa: TRY004 - JSON is the value
        return wanted(value)

    return stand_in("Path", read, lambda _: {"type": "string", "format": "path"})


def _explain(error: Any) -> str:
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"])))
        for each in error.errors(include_url=False, include_context=False)
    )


def is_class(value: object) -> TypeGuard[type[Any]]:
    """Tell whether this is a class, as opposed to another kind of annotation."""
    return isinstance(value, type)
