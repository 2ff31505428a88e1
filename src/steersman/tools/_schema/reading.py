"""Plain JSON → typed values, and the fields of dataclasses, TypedDicts and structs.

An annotation that msgspec refuses, or reads differently from pydantic to which it belongs, is
rewritten with a stand-in.

A value that does not fit is refused with its path and the reason.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from steersman._json import Json, is_array, is_object
from steersman.tools._schema.stand_ins import (
    Annotation,
    Read,
    StandIn,
    adapter_of,
    is_class,
    is_for_pydantic,
    literal_stand_in,
    name_of,
    new_class,
    read_stand_in,
)

RecordClass: TypeAlias = type[Any]
"""A dataclass, a TypedDict or a struct."""


def msgspec_readable(annotation: Annotation) -> Annotation:
    """Rewrite an annotation so that msgspec can read it. Raises `TypeError` if JSON cannot."""
    if annotation is inspect.Parameter.empty or annotation is object:
        return Any
    if rewrite := _REWRITES.get(get_origin(annotation)):
        return rewrite(annotation)
    if is_for_pydantic(annotation):
        return adapter_of(annotation)
    annotation = _rewrite_arguments(annotation)
    return annotation if _is_accepted(annotation) else adapter_of(annotation)


def _rewrite_annotated(annotation: Annotation) -> Annotation:
    inner, *notes = get_args(annotation)
    if is_for_pydantic(inner, tuple(notes)):
        return adapter_of(annotation)
    metas = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(msgspec_readable(inner), *metas)]


def _rewrite_union(annotation: Annotation) -> Annotation:
    members = tuple(map(msgspec_readable, get_args(annotation)))
    union = cast("Annotation", Union)[members]
    return union if _is_accepted(union) else union_stand_in(members)


def _rewrite_literal(annotation: Annotation) -> Annotation:
    return annotation if _is_accepted(annotation) else literal_stand_in(annotation)


def _rewrite_arguments(annotation: Annotation) -> Annotation:
    """Rewrite the type arguments of a generic."""
    inside = tuple(map(_rewrite_argument, get_args(annotation)))
    generic: Annotation = get_origin(annotation)
    has_inside = inside and isinstance(get_origin(annotation), type)
    return generic[inside] if has_inside else annotation


def _rewrite_argument(argument: Annotation) -> Annotation:
    return argument if argument is Ellipsis or is_array(argument) else msgspec_readable(argument)


def _is_accepted(annotation: Annotation) -> bool:
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


_REWRITES: dict[object, Callable[[Annotation], Annotation]] = {
    Annotated: _rewrite_annotated,
    Union: _rewrite_union,
    types.UnionType: _rewrite_union,
    Literal: _rewrite_literal,
}


class UnionStandIn(StandIn):
    """Replaces a union that msgspec refuses; its members are tried one by one."""

    members: ClassVar[tuple[Annotation, ...]]


def reader_of(wanted: Annotation) -> Read:
    """Make the reader of a type that `msgspec_readable` returned."""

    def read(value: Json) -> object:
        try:
            return msgspec.convert(value, wanted, dec_hook=read_stand_in, str_keys=True)
        except msgspec.ValidationError as error:
            raise ValueError(_explain(str(error))) from error

    def read_and_fill(value: Json) -> object:
        result = read(value)
        fill_defaults(result)
        return result

    return read_and_fill if any(map(leaves_defaults_out, record_classes(wanted))) else read


def union_stand_in(members: tuple[Annotation, ...]) -> type[UnionStandIn]:
    """Make a stand-in for a union; of the members that fit, the one that drops fewest keys wins."""
    readers = [(member, known_fields(member), reader_of(member)) for member in members]

    def read(value: Json) -> object:
        fitting: list[tuple[int, object]] = []
        reasons: list[str] = []
        for member, known, read_member in readers:
            try:
                fitting.append((_dropped(value, known), read_member(value)))
            except ValueError as invalid:
                reasons.append(f"{name_of(member)} ({invalid})")
        if not fitting:
            raise ValueError("fits none of " + ", ".join(reasons))
        return min(fitting, key=lambda fit: fit[0])[1]

    return new_class(UnionStandIn, "Choice", read=staticmethod(read), members=members)


def _explain(message: str) -> str:
    """Put msgspec's path first: "Expected `int`, got `str` - at `$.a`" -> "a: Expected ..."."""
    reason, separator, path = message.rpartition(" - at `$")
    if not separator:
        return message
    path = path.removesuffix("`").removeprefix(".")
    return f"{path}: {reason}" if path else reason


def _dropped(value: Json, known: frozenset[str] | None) -> int:
    return len(value.keys() - known) if known is not None and is_object(value) else 0


# --- Dataclasses, TypedDicts and structs -----------------------------------------------------


def record_classes(
    wanted: Annotation, seen: set[RecordClass] | None = None
) -> Iterator[RecordClass]:
    """Yield every dataclass, TypedDict and struct that occurs in `wanted`."""
    seen = set() if seen is None else seen
    for inside in get_args(wanted):
        yield from record_classes(inside, seen)
    if not _is_record(wanted) or wanted in seen:
        return
    seen.add(wanted)
    yield wanted
    for hint in class_hints(wanted).values():
        yield from record_classes(hint, seen)


def class_hints(record: RecordClass) -> dict[str, Annotation]:
    """Return the annotations of a class, resolved; empty if only msgspec can resolve them."""
    try:
        return get_type_hints(record, include_extras=True)
    except (NameError, TypeError):
        return {}


def known_fields(wanted: Annotation) -> frozenset[str] | None:
    """Return the keys that a class keeps; `None` if `wanted` is no class with fields."""
    record: Annotation = get_origin(wanted) or wanted
    if not is_class(record):
        return None
    if issubclass(record, msgspec.Struct):
        return frozenset(record.__struct_encode_fields__)
    if fields := getattr(record, "__pydantic_fields__", None):
        return frozenset(fields) | {field.alias for field in fields.values() if field.alias}
    if dataclasses.is_dataclass(record):
        return frozenset(field.name for field in dataclasses.fields(record))
    return frozenset(get_type_hints(record)) if is_typeddict(record) else None


def leaves_defaults_out(record: RecordClass) -> bool:
    """Return whether msgspec makes instances of `record` without the fields left at their default.

    Such a field can be read, as a class attribute, but msgspec does not write it.
    """
    return (
        dataclasses.is_dataclass(record)
        and not hasattr(record, "__slots__")
        and any(_has_class_default(field) for field in dataclasses.fields(record))
    )


def fill_defaults(value: object) -> None:
    """Set, on every dataclass instance inside `value`, the fields that only its class has."""
    if isinstance(value, msgspec.Struct):
        _fill_all(getattr(value, name) for name in value.__struct_fields__)
    elif is_object(value):
        _fill_all(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        _fill_all(cast("Iterable[object]", value))
    elif dataclasses.is_dataclass(value):
        own: dict[str, object] = getattr(value, "__dict__", {})
        for field in dataclasses.fields(value):
            if _has_class_default(field):
                own.setdefault(field.name, field.default)
        fill_defaults(own)


def _fill_all(values: Iterable[object]) -> None:
    for value in values:
        fill_defaults(value)


def _has_class_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING


def _is_record(wanted: Annotation) -> TypeGuard[RecordClass]:
    return is_class(wanted) and (
        dataclasses.is_dataclass(wanted)
        or issubclass(wanted, msgspec.Struct)
        or is_typeddict(wanted)
    )
