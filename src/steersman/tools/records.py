"""Classes with named fields: dataclasses, TypedDicts and structs, and what they are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from steersman._json import is_object
from steersman.tools.plain import is_class

__all__ = ["class_hints", "complete", "known_fields", "leaves_defaults_out", "record_classes"]


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


def complete(value: Any) -> None:
    """Give every dataclass instance inside `value` the fields that it only has by its class."""
    if isinstance(value, msgspec.Struct):
        _complete_all(getattr(value, name) for name in value.__struct_fields__)
    elif is_object(value):
        _complete_all(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        _complete_all(value)
    elif dataclasses.is_dataclass(value):
        _complete_instance(value)


def _complete_all(values: Any) -> None:
    for value in values:
        complete(value)


def _complete_instance(instance: Any) -> None:
    own: dict[str, Any] = getattr(instance, "__dict__", {})
    for field in dataclasses.fields(instance):
        if _has_class_default(field):
            own.setdefault(field.name, field.default)
    complete(own)


def _has_class_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING


def _is_record(wanted: Any) -> bool:
    return is_class(wanted) and (
        dataclasses.is_dataclass(wanted)
        or issubclass(wanted, msgspec.Struct)
        or is_typeddict(wanted)
    )
