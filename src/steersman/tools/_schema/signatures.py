"""The parameters of a function: a schema for the model, and a reader of what the model sends.

Reads signatures, annotations, defaults and docstrings; calls nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from steersman._json import Json, JsonDict, JsonObject
from steersman.errors import UsageError
from steersman.tools._schema.docstrings import read_docstring
from steersman.tools._schema.reading import msgspec_readable, reader_of
from steersman.tools._schema.schema import Definitions
from steersman.tools._schema.stand_ins import Annotation, is_pydantic_note
from steersman.tools._threads import Function
from steersman.tools.context import ToolContext

ReadArguments: TypeAlias = Callable[[JsonObject], Any]
NO_DEFAULT = msgspec.UNSET
REFUSED_KINDS: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "a tool without *args",
    inspect.Parameter.VAR_KEYWORD: "a tool without **kwargs",
    inspect.Parameter.POSITIONAL_ONLY: "parameters that can be passed by name",
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of a tool: the schema for the model, and the reader of what it sends."""

    schema: JsonDict
    read: ReadArguments
    """Returns the handler's arguments; raises `ValueError` with the field and the reason."""
    context: str | None = None
    """The name of the parameter for the `ToolContext`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter of a tool."""

    name: str
    type: Annotation
    description: str = ""
    is_required: bool = True
    default: object = NO_DEFAULT


def arguments_of(function: Function) -> Arguments:
    """Read a function's signature. Raises `UsageError` that names an unusable parameter."""
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
    """Return the arguments for an object that has these fields and no others."""
    definitions = Definitions()
    properties: JsonDict = {}
    types: dict[str, Annotation] = {}
    for field in fields:
        types[field.name] = _checked(field, definitions, properties, role)
    required = [field.name for field in fields if field.is_required]
    schema: JsonDict = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    record = record_class(types, required, is_closed=True)
    return Arguments(definitions.attached_to(schema), _values_reader(record, tuple(types)))


def record_class(
    types: Mapping[str, Annotation], required: Collection[str], *, is_closed: bool
) -> type[msgspec.Struct]:
    """Make a struct with a field for each name, which may be any string; absent ones are UNSET."""
    slots = {f"_{place}": name for place, name in enumerate(types)}
    fields: list[tuple[str, Annotation] | tuple[str, Annotation, object]] = [
        (slot, types[name]) if name in required else (slot, types[name], msgspec.UNSET)
        for slot, name in slots.items()
    ]
    return msgspec.defstruct(
        "Record", fields, rename=slots, forbid_unknown_fields=is_closed, kw_only=True
    )


def _values_reader(record: type[msgspec.Struct], names: tuple[str, ...]) -> ReadArguments:
    read_record, in_order = reader_of(record), msgspec.structs.astuple

    def read(given: JsonObject) -> JsonDict:
        return dict(zip(names, in_order(read_record(given)), strict=True))

    def read_without_unset(given: JsonObject) -> JsonDict:
        return {name: each for name, each in read(given).items() if each is not msgspec.UNSET}

    is_complete = all(field.required for field in msgspec.structs.fields(record))
    return read if is_complete else read_without_unset


def _checked(field: Field, definitions: Definitions, properties: JsonDict, role: str) -> Annotation:
    """Add the schema of a field to `properties`; return the type that msgspec reads it as."""
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


def _default_in_schema(default: object) -> JsonDict:
    try:
        return {"default": msgspec.to_builtins(default, str_keys=True, enc_hook=_plain_default)}
    except (TypeError, ValueError, RecursionError):
        return {}


def _plain_default(default: Any) -> Json:
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(default, pydantic.BaseModel):
        return default.model_dump(mode="json")
    raise TypeError


def _open_parameters(function: Function) -> list[inspect.Parameter]:
    """Return the parameters that a `functools.partial` leaves open."""
    filled: Mapping[str, object] = getattr(function, "keywords", {})
    parameters = inspect.signature(function).parameters
    return [each for name, each in parameters.items() if name not in filled]


def _field_of(parameter: inspect.Parameter, hint: Annotation, description: str) -> Field:
    if is_pydantic_note(parameter.default):
        raise UsageError(
            f"parameter {parameter.name!r}",
            parameter.default,
            "a value as the default",
            hint="put it into the annotation: Annotated[int, Field(...)] = 1",
        )
    is_required = parameter.default is inspect.Parameter.empty
    default = NO_DEFAULT if is_required else parameter.default
    return Field(parameter.name, hint, description, is_required, default)


def _refuse_unusable(function: Function, parameter: inspect.Parameter) -> None:
    allowed = REFUSED_KINDS.get(parameter.kind)
    if allowed:
        raise UsageError(f"parameter {parameter.name!r}", str(parameter), allowed)
    is_bare = parameter.annotation is inspect.Parameter.empty
    if parameter.name == "self" and is_bare and not inspect.ismethod(function):
        raise UsageError(
            "parameter 'self'",
            getattr(function, "__qualname__", function),
            "a function, or a method of an object",
            hint="make the tool from the bound method: tool(thing.method)",
        )


def _wants_context(hint: Annotation) -> bool:
    if hint is ToolContext:
        return True
    is_wrapper = get_origin(hint) in {Union, types.UnionType, Annotated}
    return is_wrapper and ToolContext in get_args(hint)


def _hints_of(function: Function) -> dict[str, Annotation]:
    """Resolve the annotations of the parameters, also names that are local to a calling frame."""
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


def _hints_in_callers(carrier: Function, names: dict[str, object]) -> dict[str, Annotation] | None:
    frame = inspect.currentframe()
    while frame is not None:
        try:
            return get_type_hints(carrier, names, dict(frame.f_locals), include_extras=True)
        except NameError:
            frame = frame.f_back
    return None


def _annotated_part(function: Function) -> Function:
    if type(function) is functools.partial:
        return _annotated_part(cast("functools.partial[object]", function).func)
    if inspect.isroutine(function):
        plain: Function = getattr(function, "__func__", function)
        return cast("Function", inspect.unwrap(plain))
    return type(function).__call__


def _carrier(annotated: Function) -> Function:
    """Return a function with the annotations of the parameters only.

    The annotation of the result need not be resolvable.
    """

    def carrier() -> None: ...

    carrier.__annotations__ = {
        name: hint
        for name, hint in getattr(annotated, "__annotations__", {}).items()
        if name != "return"
    }
    return carrier
