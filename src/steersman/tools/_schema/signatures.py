"""The parameters of a function: a schema for the model, a reader of what it sends.

Takes signatures, annotations, defaults and docstrings; runs nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from steersman.errors import UsageError
from steersman.tools._schema.annotations import msgspec_readable
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.reading import reader_of
from steersman.tools._schema.schema import Definitions
from steersman.tools._schema.stand_ins import is_pydantic_note
from steersman.tools.context import ToolContext

__all__ = ["Arguments", "Field", "arguments_of", "record_class", "record_of"]

Reader = Callable[[Mapping[str, Any]], Any]
NO_DEFAULT = msgspec.UNSET
REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "a tool without *args",
    inspect.Parameter.VAR_KEYWORD: "a tool without **kwargs",
    inspect.Parameter.POSITIONAL_ONLY: "parameters that can be passed by name",
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes: the schema for the model, and the reader of what the model sends."""

    schema: dict[str, Any]
    read: Reader
    """Give the handler's arguments; raises `ValueError` that names the field and the reason."""
    context: str | None = None
    """The parameter that wants the `ToolContext`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One named value that a tool takes."""

    name: str
    type: Any
    description: str = ""
    is_required: bool = True
    default: Any = NO_DEFAULT


def arguments_of(function: Callable[..., Any]) -> Arguments:
    """Read a function's signature; raises `UsageError` naming a parameter that cannot be."""
    hints = _hints_of(function)
    described = read_docstring(_annotated_part(function).__doc__).parameters
    fields: list[Field] = []
    context = None
    for parameter in _open_parameters(function):
        hint = hints.get(parameter.name, Any)
        _refuse_unusable(function, parameter)
        if _wants_context(hint):
            context = parameter.name
        else:
            fields.append(_field_of(parameter, hint, described.get(parameter.name, "")))
    return dataclasses.replace(record_of(fields, "parameter"), context=context)


def record_of(fields: Sequence[Field], role: str) -> Arguments:
    """Describe an object that has these fields and no other, and make its reader."""
    definitions = Definitions()
    properties: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for field in fields:
        types[field.name] = _checked(field, definitions, properties, role)
    required = [field.name for field in fields if field.is_required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    record = record_class(types, required, is_closed=True)
    return Arguments(definitions.attached_to(schema), _values_reader(record, tuple(types)))


def record_class(
    types: Mapping[str, Any], required: Collection[str], *, is_closed: bool
) -> type[msgspec.Struct]:
    """Make a struct with a slot for each name, which may be any string; absent ones are unset."""
    slots = {f"_{place}": name for place, name in enumerate(types)}
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (slot, types[name]) if name in required else (slot, types[name], msgspec.UNSET)
        for slot, name in slots.items()
    ]
    return msgspec.defstruct(
        "Record", fields, rename=slots, forbid_unknown_fields=is_closed, kw_only=True
    )


def _values_reader(record: type[msgspec.Struct], names: tuple[str, ...]) -> Reader:
    read_record, in_order = reader_of(record), msgspec.structs.astuple

    def read(given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(names, in_order(read_record(given)), strict=True))

    def read_what_is_set(given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in read(given).items() if each is not msgspec.UNSET}

    is_complete = all(field.required for field in msgspec.structs.fields(record))
    return read if is_complete else read_what_is_set


def _checked(field: Field, definitions: Definitions, properties: dict[str, Any], role: str) -> Any:
    """Describe the field among the properties; give the type to read it as."""
    try:
        wanted = msgspec_readable(field.type)
        schema = definitions.describe(wanted)
    except (TypeError, NameError, ValueError) as error:
        raise UsageError(
            f"{role} {field.name!r}",
            field.type,
            "a type that JSON can carry",
            hint=str(error).splitlines()[0],
        ) from error
    if field.description:
        schema.setdefault("description", field.description)
    if field.default is not NO_DEFAULT:
        schema |= _default_in_schema(field.default)
    properties[field.name] = schema
    return wanted


def _default_in_schema(default: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(default, str_keys=True, enc_hook=_no_default)}
    except (TypeError, ValueError, RecursionError):
        return {}


def _no_default(default: Any) -> Any:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(default, pydantic.BaseModel):
        return default.model_dump(mode="json")
    raise TypeError


def _open_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """List the parameters that a partial function has not already filled."""
    filled: Mapping[str, Any] = getattr(function, "keywords", {})
    parameters = inspect.signature(function).parameters
    return [each for name, each in parameters.items() if name not in filled]


def _field_of(parameter: inspect.Parameter, hint: Any, description: str) -> Field:
    if is_pydantic_note(parameter.default):
        raise UsageError(
            f"parameter {parameter.name!r}",
            parameter.default,
            "a value as the default",
            hint="write it into the annotation: Annotated[int, Field(...)] = 1",
        )
    is_required = parameter.default is inspect.Parameter.empty
    default = NO_DEFAULT if is_required else parameter.default
    return Field(parameter.name, hint, description, is_required, default)


def _refuse_unusable(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    allowed = REFUSED_KINDS.get(parameter.kind)
    if allowed:
        raise UsageError(f"parameter {parameter.name!r}", str(parameter), allowed)
    is_bare = parameter.annotation is inspect.Parameter.empty
    if parameter.name == "self" and is_bare and not inspect.ismethod(function):
        raise UsageError(
            "parameter 'self'",
            getattr(function, "__qualname__", function),
            "a function, or a method of an object",
            hint="make the tool of the bound method: tool(thing.method)",
        )


def _wants_context(hint: Any) -> bool:
    if hint is ToolContext:
        return True
    is_wrapper = get_origin(hint) in {Union, types.UnionType, Annotated}
    return is_wrapper and ToolContext in get_args(hint)


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations of the parameters, those of classes local to a caller included."""
    annotated = _annotated_part(function)
    carrier = _carrier(annotated)
    try:
        return get_type_hints(carrier, getattr(annotated, "__globals__", {}), include_extras=True)
    except NameError as error:
        hints = _hints_in_callers(carrier, getattr(annotated, "__globals__", {}))
        if hints is None:
            raise UsageError(
                "annotations",
                dict(carrier.__annotations__),
                "names that can be resolved when the tool is made",
                hint=str(error),
            ) from error
        return hints


def _hints_in_callers(carrier: Any, names: dict[str, Any]) -> dict[str, Any] | None:
    frame = inspect.currentframe()
    while frame is not None:
        try:
            return get_type_hints(carrier, names, dict(frame.f_locals), include_extras=True)
        except NameError:
            frame = frame.f_back
    return None


def _annotated_part(function: Any) -> Any:
    if type(function) is functools.partial:
        return _annotated_part(function.func)
    if inspect.isroutine(function):
        return inspect.unwrap(getattr(function, "__func__", function))
    return type(function).__call__


def _carrier(annotated: Any) -> Any:
    """Carry the annotations of the parameters alone: what is returned need not be resolvable."""

    def carrier() -> None: ...

    carrier.__annotations__ = {
        name: hint
        for name, hint in getattr(annotated, "__annotations__", {}).items()
        if name != "return"
    }
    return carrier
