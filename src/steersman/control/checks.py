"""What the fields of a verb may hold.

Checked when a verb is made, against the annotations of its class, so that nothing strange is ever
sent. Knows annotations, and no verb.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import FieldInfo

from steersman import _json
from steersman.errors import UsageError

__all__ = ["Amount", "Count", "Milliseconds", "Text", "ToolName", "UiUri", "check", "fields_of"]

Text = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
Count = Annotated[int, Meta(ge=0, le=2**53, description="a whole number, 0 or more")]
Amount = Annotated[float, Meta(ge=0, le=2**53, description="a number, 0 or more")]
Milliseconds = Annotated[
    int, Meta(ge=1000, le=600_000, description="a whole number from 1000 to 600000")
]
ToolName = Annotated[
    str,
    Meta(pattern=r"^mcp__.+__.", description="a tool's full name, such as mcp__calc__add"),
]
UiUri = Annotated[str, Meta(pattern=r"^ui://.", description="an address that begins with ui://")]

MISFITS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)

WORDS: dict[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping of JSON values",
    NoneType: "None",
}


@cache
def fields_of(struct: type[Struct]) -> tuple[FieldInfo, ...]:
    """The fields of a struct, with their annotations resolved."""
    return msgspec.structs.fields(struct)


def check(verb: Struct) -> None:
    """Raise `UsageError` for the first field that holds what the CLI could not read."""
    for field in fields_of(type(verb)):
        given = getattr(verb, field.name)
        # A default fits: it is ours, and most fields hold it.
        if given is UNSET or given is field.default:
            continue
        try:
            msgspec.convert(given, field.type)
            _json.dumps(given)
        except MISFITS:
            raise UsageError(field.name, _shown(given), allowed(field.type)) from None


def allowed(wanted: Any) -> str:
    """An annotation in words."""
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return str(inside[1].description)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inside))
    if origin in (Union, UnionType):
        return " or ".join(allowed(each) for each in inside if each is not UnsetType)
    return WORDS.get(origin or wanted, "another value")


def _shown(given: object) -> object:
    # Mappings and lists may hold secrets: tokens of tool servers, settings.
    is_plain = given is None or isinstance(given, str | int | float)
    return given if is_plain else f"a {type(given).__name__}"
