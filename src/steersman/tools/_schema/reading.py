"""Plain JSON to typed values.

A type goes in, a reader comes out; what it refuses, it refuses with the path and the reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from steersman._json import is_object
from steersman.tools._schema.stand_ins import StandIn, is_class, name_of, new_class, read_stand_in

__all__ = [
    "UnionStandIn",
    "class_hints",
    "fill_defaults",
    "known_fields",
    "leaves_defaults_out",
    "reader_of",
    "record_classes",
    "union_stand_in",
]

Read = Callable[[Any], Any]


class UnionStandIn(StandIn):
    """A union that msgspec refuses; its members are tried one by one."""

    members: ClassVar[tuple[Any, ...]]


def reader_of(wanted: Any) -> Read:
    """Make the reader of a msgspec_readable type; it raises `ValueError` with the path and the reason."""

    def read(value: Any) -> Any:
        try:
            return msgspec.convert(value, wanted, dec_hook=read_stand_in, str_keys=True)
        except msgspec.ValidationError as error:
            raise ValueError(_explain(str(error))) from error

    def read_completely(value: Any) -> Any:
        result = read(value)
        fill_defaults(result)
        return result

    return read_completely if any(map(leaves_defaults_out, record_classes(wanted))) else read


def union_stand_in(members: tuple[Any, ...]) -> type[UnionStandIn]:
    """Stand in for a union; of several members that fit, the one that loses least is taken."""
    readers = [(member, known_fields(member), reader_of(member)) for member in members]

    def read(value: Any) -> Any:
        fitting: list[tuple[int, Any]] = []
        reasons: list[str] = []
        for member, known, read_member in readers:
            try:
                fitting.append((_lost(value, known), read_member(value)))
            except ValueError as misfit:
                reasons.append(f"{name_of(member)} ({misfit})")
        if not fitting:
            raise ValueError("fits none of " + ", ".join(reasons))
        return min(fitting, key=lambda fit: fit[0])[1]

    return new_class(UnionStandIn, "UnionStandIn", read=staticmethod(read), members=members)


def _explain(message: str) -> str:
    """Put msgspec's path first: "Expected `int`, got `str` - at `$.a`" -> "a: Expected ..."."""
    reason, separator, path = message.rpartition(" - at `$")
    if not separator:
        return message
    path = path.removesuffix("`").removeprefix(".")
    return f"{path}: {reason}" if path else reason


def _lost(value: Any, known: frozenset[str] | None) -> int:
    return len(value.keys() - known) if known is not None and is_object(value) else 0


def record_classes(wanted: Any, seen: set[Any] | None = None) -> Iterator[type[Any]]:
    """Find every dataclass, TypedDict and struct that `wanted` is made of."""
    seen = set() if seen is None else seen
    for inside in get_args(wanted):
        yield from record_classes(inside, seen)
    if not _is_record(wanted) or wanted in seen:
        return
    seen.add(wanted)
    yield wanted
    for hint in class_hints(wanted).values():
        yield from record_classes(hint, seen)


def class_hints(record: Any) -> dict[str, Any]:
    """Resolve a class's annotations; none where only msgspec knows how."""
    try:
        return get_type_hints(record, include_extras=True)
    except (NameError, TypeError):
        return {}


def known_fields(wanted: Any) -> frozenset[str] | None:
    """Name the keys that a class keeps; `None` for what is no class of records."""
    record: Any = get_origin(wanted) or wanted
    if not is_class(record):
        return None
    if issubclass(record, msgspec.Struct):
        return frozenset(record.__struct_encode_fields__)
    if fields := getattr(record, "__pydantic_fields__", None):
        return frozenset(fields) | {field.alias for field in fields.values() if field.alias}
    if dataclasses.is_dataclass(record):
        return frozenset(field.name for field in dataclasses.fields(record))
    return frozenset(get_type_hints(record)) if is_typeddict(record) else None


def leaves_defaults_out(record: type[Any]) -> bool:
    """Tell whether msgspec makes instances of `record` that lack the fields left at their default.

    It counts on the class attribute, and then does not write such a field either.
    """
    return (
        dataclasses.is_dataclass(record)
        and not hasattr(record, "__slots__")
        and any(_has_class_default(field) for field in dataclasses.fields(record))
    )


def fill_defaults(value: Any) -> None:
    """Give every dataclass instance inside `value` the fields that it only has by its class."""
    if isinstance(value, msgspec.Struct):
        _fill_all(getattr(value, name) for name in value.__struct_fields__)
    elif is_object(value):
        _fill_all(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        _fill_all(value)
    elif dataclasses.is_dataclass(value):
        _fill_instance(value)


def _fill_all(values: Any) -> None:
    for value in values:
        fill_defaults(value)


def _fill_instance(instance: Any) -> None:
    own: dict[str, Any] = getattr(instance, "__dict__", {})
    for field in dataclasses.fields(instance):
        if _has_class_default(field):
            own.setdefault(field.name, field.default)
    fill_defaults(own)


def _has_class_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING


def _is_record(wanted: Any) -> bool:
    return is_class(wanted) and (
        dataclasses.is_dataclass(wanted)
        or issubclass(wanted, msgspec.Struct)
        or is_typeddict(wanted)
    )
