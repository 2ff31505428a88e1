"""Signatures and their schemas, each checked against the JSON Schema meta-schema."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
)

import msgspec
import pydantic
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from steersman.errors import UsageError
from steersman.tools import ToolContext
from steersman.tools._schema.signatures import arguments_of

T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place.

    Attributes:
        x: how far across
    """

    x: int
    y: Annotated[int, "how far up"] = 0


@dataclass
class Circle:
    center: Point
    radius: float


@dataclass
class Tree:
    value: int
    branches: list[Tree] = field(default_factory=list["Tree"])


class Movie(TypedDict):
    title: Annotated[str, "as on the poster"]
    year: NotRequired[int]


class Span(msgspec.Struct):
    start: int
    end: Annotated[int, msgspec.Meta(ge=0)] = 0


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    tricks: list[str]


class Box(msgspec.Struct, Generic[T]):
    value: T


class Pair(NamedTuple):
    left: int
    right: str


class Address(pydantic.BaseModel):
    street: str
    number: int = pydantic.Field(ge=1, description="of the house")


class Person(pydantic.BaseModel):
    name: str
    friends: list[Person] = []


class Home(msgspec.Struct):
    address: Address


@pydantic.dataclasses.dataclass
class Checked:
    size: int = pydantic.Field(gt=0)


POINT = {
    "title": "Point",
    "description": "A place.",
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "how far across"},
        "y": {"type": "integer", "default": 0, "description": "how far up"},
    },
    "required": ["x"],
}
CIRCLE = {
    "title": "Circle",
    "type": "object",
    "properties": {"center": {"$ref": "#/$defs/Point"}, "radius": {"type": "number"}},
    "required": ["center", "radius"],
}
ADDRESS = {
    "title": "Address",
    "type": "object",
    "properties": {
        "street": {"title": "Street", "type": "string"},
        "number": {
            "title": "Number",
            "type": "integer",
            "minimum": 1,
            "description": "of the house",
        },
    },
    "required": ["street", "number"],
}
INTEGER = {"type": "integer"}
STRING = {"type": "string"}


def takes_nothing() -> None: ...
def takes_str(x: str) -> None: ...
def takes_int(x: int) -> None: ...
def takes_float(x: float) -> None: ...
def takes_bool(x: bool) -> None: ...  # noqa: FBT001
def takes_none(x: None) -> None: ...
def takes_any(x: Any) -> None: ...
def takes_object(x: object) -> None: ...
def takes_bare(x) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def takes_bare_default(x=3) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def takes_default(x: int = 3) -> None: ...
def takes_list_default(x: list[int] = [1, 2]) -> None: ...  # noqa: B006
def takes_optional(x: int | None = None) -> None: ...
def takes_typing_optional(x: Optional[int]) -> None: ...  # noqa: UP045
def takes_keyword_only(*, x: int, y: str = "a") -> None: ...
def takes_list(x: list[int]) -> None: ...
def takes_bare_list(x: list) -> None: ...  # type: ignore[type-arg]
def takes_set(x: set[str]) -> None: ...
def takes_tuple(x: tuple[int, str]) -> None: ...
def takes_long_tuple(x: tuple[int, ...]) -> None: ...
def takes_sequence(x: Sequence[int]) -> None: ...
def takes_dict(x: dict[str, int]) -> None: ...
def takes_int_keys(x: dict[int, str]) -> None: ...
def takes_mapping(x: Mapping[str, float]) -> None: ...
def takes_literal(x: Literal["a", "b"]) -> None: ...
def takes_mixed_literal(x: Literal[True, "a"]) -> None: ...
def takes_enum(x: Color) -> None: ...
def takes_enum_default(x: Color = Color.RED) -> None: ...
def takes_int_enum(x: Level) -> None: ...
def takes_union(x: int | str) -> None: ...
def takes_described(x: Annotated[int, "how many"]) -> None: ...
def takes_meta(x: Annotated[int, msgspec.Meta(ge=0, description="how many")]) -> None: ...
def takes_datetime(x: dt.date) -> None: ...
def takes_uuid(x: uuid.UUID) -> None: ...
def takes_decimal(x: decimal.Decimal) -> None: ...
def takes_bytes(x: bytes) -> None: ...
def takes_path(x: Path) -> None: ...
def takes_path_or_list(x: Path | list[Path]) -> None: ...
def takes_new_type(x: UserId) -> None: ...
def takes_dataclass(x: Point) -> None: ...
def takes_nested(x: Circle) -> None: ...
def takes_two_dataclasses(x: Point | Circle) -> None: ...
def takes_list_of_two(x: list[Point | Circle] | None = None) -> None: ...
def takes_recursive(x: Tree) -> None: ...
def takes_typed_dict(x: Movie) -> None: ...
def takes_struct(x: Span) -> None: ...
def takes_tagged(x: Cat | Dog) -> None: ...
def takes_generic(x: Box[int]) -> None: ...
def takes_named_tuple(x: Pair) -> None: ...
def takes_model(x: Address) -> None: ...
def takes_model_list(x: list[Address]) -> None: ...
def takes_recursive_model(x: Person) -> None: ...
def takes_model_in_struct(x: Home) -> None: ...
def takes_checked_dataclass(x: Checked) -> None: ...
def takes_pydantic_field(x: Annotated[int, pydantic.Field(ge=0, description="n")] = 1) -> None: ...
def takes_context(x: int, context: ToolContext) -> None: ...
def takes_optional_context(x: int, context: ToolContext | None = None) -> None: ...


def takes_documented(x: int, y: Annotated[int, "mine"], z: Point) -> None:
    """Do it.

    Args:
        x: the first
        y: not this
        z: the place
    """


Case = tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]

ONE_VALUE: list[Case] = [
    (takes_str, STRING, {}),
    (takes_int, INTEGER, {}),
    (takes_float, {"type": "number"}, {}),
    (takes_bool, {"type": "boolean"}, {}),
    (takes_none, {"type": "null"}, {}),
    (takes_any, {}, {}),
    (takes_object, {}, {}),
    (takes_bare, {}, {}),
    (takes_bare_default, {"default": 3}, {}),
    (takes_default, {"type": "integer", "default": 3}, {}),
    (takes_list_default, {"type": "array", "items": INTEGER, "default": [1, 2]}, {}),
    (takes_optional, {"anyOf": [INTEGER, {"type": "null"}], "default": None}, {}),
    (takes_typing_optional, {"anyOf": [INTEGER, {"type": "null"}]}, {}),
    (takes_list, {"type": "array", "items": INTEGER}, {}),
    (takes_bare_list, {"type": "array"}, {}),
    (takes_set, {"type": "array", "items": STRING, "uniqueItems": True}, {}),
    (
        takes_tuple,
        {
            "type": "array",
            "prefixItems": [INTEGER, STRING],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
        {},
    ),
    (takes_long_tuple, {"type": "array", "items": INTEGER}, {}),
    (takes_sequence, {"type": "array", "items": INTEGER}, {}),
    (takes_dict, {"type": "object", "additionalProperties": INTEGER}, {}),
    (takes_int_keys, {"type": "object", "additionalProperties": STRING}, {}),
    (takes_mapping, {"type": "object", "additionalProperties": {"type": "number"}}, {}),
    (takes_literal, {"enum": ["a", "b"]}, {}),
    (takes_mixed_literal, {"enum": [True, "a"]}, {}),
    (takes_enum, {"$ref": "#/$defs/Color"}, {"Color": {"title": "Color", "enum": ["blue", "red"]}}),
    (
        takes_enum_default,
        {"$ref": "#/$defs/Color", "default": "red"},
        {"Color": {"title": "Color", "enum": ["blue", "red"]}},
    ),
    (takes_int_enum, {"$ref": "#/$defs/Level"}, {"Level": {"title": "Level", "enum": [1, 2]}}),
    (takes_union, {"anyOf": [INTEGER, STRING]}, {}),
    (takes_described, {"type": "integer", "description": "how many"}, {}),
    (takes_meta, {"type": "integer", "minimum": 0, "description": "how many"}, {}),
    (takes_datetime, {"type": "string", "format": "date"}, {}),
    (takes_uuid, {"type": "string", "format": "uuid"}, {}),
    (takes_decimal, {"type": "string", "format": "decimal"}, {}),
    (takes_bytes, {"type": "string", "contentEncoding": "base64"}, {}),
    (takes_path, {"type": "string", "format": "path"}, {}),
    (
        takes_path_or_list,
        {
            "anyOf": [
                {"type": "string", "format": "path"},
                {"type": "array", "items": {"type": "string", "format": "path"}},
            ]
        },
        {},
    ),
    (takes_new_type, INTEGER, {}),
    (takes_dataclass, {"$ref": "#/$defs/Point"}, {"Point": POINT}),
    (takes_nested, {"$ref": "#/$defs/Circle"}, {"Circle": CIRCLE, "Point": POINT}),
    (
        takes_two_dataclasses,
        {"anyOf": [{"$ref": "#/$defs/Point"}, {"$ref": "#/$defs/Circle"}]},
        {"Circle": CIRCLE, "Point": POINT},
    ),
    (
        takes_list_of_two,
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"anyOf": [{"$ref": "#/$defs/Point"}, {"$ref": "#/$defs/Circle"}]},
                },
                {"type": "null"},
            ],
            "default": None,
        },
        {"Circle": CIRCLE, "Point": POINT},
    ),
    (
        takes_recursive,
        {"$ref": "#/$defs/Tree"},
        {
            "Tree": {
                "title": "Tree",
                "type": "object",
                "properties": {
                    "value": INTEGER,
                    "branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                },
                "required": ["value"],
            }
        },
    ),
    (
        takes_typed_dict,
        {"$ref": "#/$defs/Movie"},
        {
            "Movie": {
                "title": "Movie",
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "as on the poster"},
                    "year": INTEGER,
                },
                "required": ["title"],
            }
        },
    ),
    (
        takes_struct,
        {"$ref": "#/$defs/Span"},
        {
            "Span": {
                "title": "Span",
                "type": "object",
                "properties": {
                    "start": INTEGER,
                    "end": {"type": "integer", "minimum": 0, "default": 0},
                },
                "required": ["start"],
            }
        },
    ),
    (
        takes_generic,
        {"$ref": "#/$defs/Box_int_"},
        {
            "Box_int_": {
                "title": "Box[int]",
                "type": "object",
                "properties": {"value": INTEGER},
                "required": ["value"],
            }
        },
    ),
    (
        takes_named_tuple,
        {"$ref": "#/$defs/Pair"},
        {
            "Pair": {
                "title": "Pair",
                "type": "array",
                "prefixItems": [INTEGER, STRING],
                "minItems": 2,
                "maxItems": 2,
            }
        },
    ),
    (takes_model, ADDRESS, {}),
    (takes_model_list, {"type": "array", "items": ADDRESS}, {}),
    (
        takes_recursive_model,
        {"$ref": "#/$defs/Person"},
        {
            "Person": {
                "title": "Person",
                "type": "object",
                "properties": {
                    "name": {"title": "Name", "type": "string"},
                    "friends": {
                        "title": "Friends",
                        "type": "array",
                        "items": {"$ref": "#/$defs/Person"},
                        "default": [],
                    },
                },
                "required": ["name"],
            }
        },
    ),
    (
        takes_model_in_struct,
        {"$ref": "#/$defs/Home"},
        {
            "Home": {
                "title": "Home",
                "type": "object",
                "properties": {"address": ADDRESS},
                "required": ["address"],
            }
        },
    ),
    (
        takes_checked_dataclass,
        {
            "title": "Checked",
            "type": "object",
            "properties": {"size": {"title": "Size", "type": "integer", "exclusiveMinimum": 0}},
            "required": ["size"],
        },
        {},
    ),
    (
        takes_pydantic_field,
        {"type": "integer", "minimum": 0, "description": "n", "default": 1},
        {},
    ),
    (takes_context, INTEGER, {}),
    (takes_optional_context, INTEGER, {}),
]


@pytest.mark.parametrize(
    ("function", "described", "definitions"),
    ONE_VALUE,
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_signature_has_this_schema(
    function: Callable[..., Any], described: dict[str, Any], definitions: dict[str, Any]
) -> None:
    schema = arguments_of(function).schema

    Draft202012Validator.check_schema(schema)
    required = {} if "default" in described else {"required": ["x"]}
    assert schema == {
        "type": "object",
        "properties": {"x": described},
        **required,
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def test_the_table_has_at_least_forty_signatures() -> None:
    assert len(ONE_VALUE) >= 40


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    arguments = arguments_of(takes_nothing)

    assert arguments.schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert arguments.read({}) == {}


def test_keyword_only_parameters_are_parameters() -> None:
    schema = arguments_of(takes_keyword_only).schema

    assert schema["properties"] == {"x": INTEGER, "y": {"type": "string", "default": "a"}}
    assert schema["required"] == ["x"]


def test_tagged_structs_are_told_apart_by_their_tag() -> None:
    arguments = arguments_of(takes_tagged)

    Draft202012Validator.check_schema(arguments.schema)
    assert arguments.read({"x": {"type": "dog", "tricks": ["sit"]}}) == {"x": Dog(["sit"])}


def test_docstring_sections_describe_parameters_that_do_not_describe_themselves() -> None:
    properties = arguments_of(takes_documented).schema["properties"]

    assert properties == {
        "x": {"type": "integer", "description": "the first"},
        "y": {"type": "integer", "description": "mine"},
        "z": {"$ref": "#/$defs/Point", "description": "the place"},
    }


def test_two_classes_of_one_name_keep_two_definitions() -> None:
    @dataclass
    class Inner:
        address: Person

    def local_person() -> type[Any]:
        @dataclass
        class Person:
            age: int

        return Person

    def takes_both(x: Inner, y: Any) -> None: ...

    takes_both.__annotations__["y"] = local_person()

    schema = arguments_of(takes_both).schema

    Draft202012Validator.check_schema(schema)
    assert sorted(schema["$defs"]) == ["Inner", "Person", "Person_2"]
    assert schema["properties"]["y"] == {"$ref": "#/$defs/Person_2"}
    assert schema["$defs"]["Person_2"]["properties"] == {"age": INTEGER}


def test_annotations_may_name_classes_of_the_surrounding_function() -> None:
    @dataclass
    class Local:
        size: int

    def takes_local(x: Local) -> None: ...

    assert arguments_of(takes_local).read({"x": {"size": 2}}) == {"x": Local(2)}


def test_what_is_returned_need_not_be_resolvable() -> None:
    def function(x: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821

    assert arguments_of(function).schema["properties"] == {"x": INTEGER}


def test_a_bound_method_and_a_partial_function_are_functions() -> None:
    class Shop:
        def sell(self, x: int, price: float) -> None: ...

    assert list(arguments_of(Shop().sell).schema["properties"]) == ["x", "price"]
    assert list(arguments_of(functools.partial(Shop().sell, price=1.0)).schema["properties"]) == [
        "x"
    ]


GOOD: list[tuple[Callable[..., Any], Any, Any]] = [
    (takes_float, 2, 2.0),
    (takes_int_keys, {"1": "a"}, {1: "a"}),
    (takes_set, ["a"], {"a"}),
    (takes_enum, "red", Color.RED),
    (takes_path, "/tmp", Path("/tmp")),
    (takes_path_or_list, ["/tmp"], [Path("/tmp")]),
    (takes_datetime, "2026-01-02", dt.date(2026, 1, 2)),
    (takes_nested, {"center": {"x": 1}, "radius": 2}, Circle(Point(1), 2.0)),
    (takes_two_dataclasses, {"center": {"x": 1}, "radius": 2}, Circle(Point(1), 2.0)),
    (takes_two_dataclasses, {"x": 1}, Point(1)),
    (takes_list_of_two, [{"x": 1}, {"x": 2, "y": 3}], [Point(1), Point(2, 3)]),
    (takes_typed_dict, {"title": "M"}, {"title": "M"}),
    (takes_struct, {"start": 1}, Span(1)),
    (takes_generic, {"value": 1}, Box(1)),
    (takes_model, {"street": "s", "number": 1}, Address(street="s", number=1)),
    (
        takes_model_in_struct,
        {"address": {"street": "s", "number": 1}},
        Home(Address(street="s", number=1)),
    ),
    (takes_checked_dataclass, {"size": 1}, Checked(1)),
    (takes_object, [1, {"a": None}], [1, {"a": None}]),
]


@pytest.mark.parametrize(("function", "given", "read"), GOOD)
def test_right_arguments_arrive_as_what_the_signature_says(
    function: Callable[..., Any], given: Any, read: Any
) -> None:
    assert arguments_of(function).read({"x": given}) == {"x": read}


def test_arguments_left_out_are_left_to_the_function() -> None:
    assert arguments_of(takes_list_default).read({}) == {}


def test_a_dataclass_that_was_read_has_its_defaults_as_its_own() -> None:
    read = arguments_of(takes_nested).read({"x": {"center": {"x": 1}, "radius": 1}})

    assert vars(read["x"].center) == {"x": 1, "y": 0}


WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (takes_int, {"x": "1"}, "x: Expected `int`, got `str`"),
    (takes_int, {"x": True}, "x: Expected `int`, got `bool`"),
    (takes_int, {}, "Object missing required field `x`"),
    (takes_int, {"x": 1, "y": 2}, "Object contains unknown field `y`"),
    (takes_list, {"x": [1, "2"]}, "x[1]: Expected `int`, got `str`"),
    (takes_nested, {"x": {"center": {"x": "1"}, "radius": 1}}, "x.center.x: Expected `int`"),
    (takes_nested, {"x": {"center": {}, "radius": 1}}, "x.center: Object missing required"),
    (takes_enum, {"x": "green"}, "x: Invalid enum value 'green'"),
    (takes_literal, {"x": "c"}, "x: Invalid enum value 'c'"),
    (takes_meta, {"x": -1}, "x: Expected `int` >= 0"),
    (takes_path, {"x": 1}, "x: Expected `str`, got `int`"),
    (takes_two_dataclasses, {"x": {"z": 1}}, "x: fits none of Point (Object missing"),
    (takes_model, {"x": {"street": "s", "number": 0}}, "x: number: Input should be greater"),
    (takes_model, {"x": {"number": 1}}, "x: street: Field required"),
    (takes_model_in_struct, {"x": {"address": {}}}, "x.address: street: Field required; number:"),
    (takes_checked_dataclass, {"x": {"size": 0}}, "x: size: Input should be greater than 0"),
    (takes_pydantic_field, {"x": -1}, "x: Input should be greater than or equal to 0"),
]


@pytest.mark.parametrize(("function", "given", "reason"), WRONG)
def test_wrong_arguments_are_refused_with_field_and_reason(
    function: Callable[..., Any], given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        arguments_of(function).read(given)

    assert str(refused.value).startswith(reason)


def takes_args(*numbers: int) -> None: ...
def takes_kwargs(**numbers: int) -> None: ...
def takes_positional(x: int, /) -> None: ...
def takes_function(x: Callable[[int], str]) -> None: ...
def takes_unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def takes_field_default(x: int = pydantic.Field(3)) -> None: ...


class Holder:
    def method(self, x: int) -> None: ...


UNUSABLE: list[tuple[Callable[..., Any], str]] = [
    (takes_args, "parameter 'numbers'"),
    (takes_kwargs, "parameter 'numbers'"),
    (takes_positional, "parameter 'x'"),
    (takes_function, "parameter 'x'"),
    (takes_unknown, "annotations"),
    (takes_field_default, "parameter 'x'"),
    (Holder.method, "parameter 'self'"),
]


@pytest.mark.parametrize(("function", "argument"), UNUSABLE)
def test_a_signature_that_no_model_can_fill_is_refused_by_name(
    function: Callable[..., Any], argument: str
) -> None:
    with pytest.raises(UsageError) as refused:
        arguments_of(function)

    assert refused.value.argument == argument


def takes_odd_default(x: int | None = object()) -> None: ...  # type: ignore[assignment]


def test_a_default_that_json_cannot_carry_is_left_out_of_the_schema() -> None:
    schema = arguments_of(takes_odd_default).schema

    assert "default" not in schema["properties"]["x"]
    assert "required" not in schema or "x" not in schema["required"]


def test_a_type_that_json_cannot_carry_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="allowed: a type that JSON can carry") as refused:
        arguments_of(takes_function)

    assert refused.value.hint
