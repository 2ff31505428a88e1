"""Verbs and answers: the control requests that we send, and what their fields may hold.

The fields of a verb are checked when it is made, against the annotations of its class, so that
nothing is sent that the CLI cannot read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, ClassVar, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from steersman import _json
from steersman._struct import WireStruct, fields_of
from steersman.errors import Described, UsageError

__all__ = ["Answer", "Part", "Verb"]

AnswerT = TypeVar("AnswerT")

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

CHECK_ERRORS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)

DESCRIPTIONS: dict[object, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping of JSON values",
    NoneType: "None",
}


class Part(WireStruct, frozen=True, kw_only=True, rename="camel"):
    """A value inside an answer; `raw` has its object as the CLI sent it."""

    _DROPS_STRANGE_ITEMS: ClassVar[bool] = True


class Answer(Part, frozen=True, kw_only=True):
    """The CLI's answer to a verb. All fields are optional; many answers have none."""


class Verb(
    Struct, Generic[AnswerT], frozen=True, kw_only=True, tag_field="subtype", omit_defaults=True
):
    """A control request that we send; `AnswerT` is the class of its answer.

    Raises `UsageError`, with the name of the field, when it is made with a value that the CLI could
    not read.
    """

    ANSWER: ClassVar[type[Answer]] = Answer
    """The class of the answer; a subclass has it from its type parameter."""
    TIMEOUT: ClassVar[float | None] = None
    """Seconds to wait for the answer, where that is more than the session's `request_timeout`."""
    CAPABILITY: ClassVar[str | None] = None
    """The name in `capabilities` of `system/init` that shows that a CLI supports this verb."""
    FIELD_CAPABILITIES: ClassVar[Mapping[str, str]] = {}
    """Such names for fields that were added later than their verb."""
    GUARDS: ClassVar[frozenset[str]] = frozenset()
    """Those of these names without which the CLI would do more than it may.

    A verb that needs one is refused until the CLI has listed it.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "ANSWER" in vars(cls):
            return
        for base in vars(cls).get("__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, Answer):
                    cls.ANSWER = argument

    def __post_init__(self) -> None:
        check(self)

    @property
    def operation(self) -> str:
        """The CLI's name for this verb, such as `set_model`."""
        return str(self.__struct_config__.tag)

    @property
    def needs(self) -> frozenset[str]:
        """The capabilities that a CLI must have for every field that is set here."""
        own = () if self.CAPABILITY is None else (self.CAPABILITY,)
        used = (each for name, each in self.FIELD_CAPABILITIES.items() if getattr(self, name))
        return frozenset((*own, *used))

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the answer: `TIMEOUT`, unless a field of this verb asks for more."""
        return self.TIMEOUT


def check(verb: Struct) -> None:
    """Raise `UsageError` for the first field whose value the CLI could not read."""
    for field in fields_of(type(verb)):
        given = getattr(verb, field.name)
        # Defaults fit, and most fields hold theirs.
        if given is UNSET or given is field.default:
            continue
        try:
            msgspec.convert(given, field.type)
            _json.dumps(given)
        except CHECK_ERRORS:
            raise UsageError(field.name, _shown(given), allowed(field.type)) from None


def allowed(wanted: object) -> str:
    """Describe what an annotation allows."""
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return str(inside[1].description)
    if origin is Literal:
        return "one of " + ", ".join(map(str, inside))
    if origin in (Union, UnionType):
        return ", or ".join(allowed(each) for each in inside if each is not UnsetType)
    return DESCRIPTIONS.get(origin or wanted, "another value")


def _shown(given: object) -> object:
    # Mappings and lists may hold secrets: tokens of MCP servers, settings.
    is_plain = given is None or isinstance(given, str | int | float)
    return given if is_plain else Described.kind_of(given)
