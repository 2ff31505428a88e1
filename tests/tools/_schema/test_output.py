from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from steersman.errors import UsageError
from steersman.tools._schema.schema import shape_of


class ModelTodo(pydantic.BaseModel):
    title: str
    tags: list[str] = []


class ModelTodos(pydantic.BaseModel):
    items: list[ModelTodo]


@dataclass
class DataTodo:
    title: str
    tags: list[str] = field(default_factory=list[str])


@dataclass
class DataTodos:
    items: list[DataTodo]


class DictTodo(TypedDict):
    title: Annotated[str, "short"]


class DictTodos(TypedDict):
    items: list[DictTodo]


class StructTodo(msgspec.Struct):
    title: str
    tags: list[str] = []


class StructTodos(msgspec.Struct):
    items: list[StructTodo]


class Verdict(pydantic.BaseModel):
    output: str


class Lenient(pydantic.BaseModel):
    note: str = ""


class Numbers(pydantic.RootModel[list[int]]):
    pass


@dataclass
class Tree:
    value: int
    branches: list[Tree] = field(default_factory=list["Tree"])


class ModelTree(pydantic.BaseModel):
    value: int
    branches: list[ModelTree] = []


ANSWER = {"items": [{"title": "a"}]}
SHAPES: list[tuple[Any, Any]] = [
    (ModelTodos, ModelTodos(items=[ModelTodo(title="a")])),
    (DataTodos, DataTodos([DataTodo("a")])),
    (DictTodos, ANSWER),
    (StructTodos, StructTodos([StructTodo("a")])),
]


@pytest.mark.parametrize(("wanted", "read"), SHAPES)
def test_a_class_with_fields_is_asked_for_and_read(wanted: Any, read: Any) -> None:
    shape = shape_of(wanted)

    Draft202012Validator(shape.schema).validate(ANSWER)
    assert shape.schema["type"] == "object"
    assert list(shape.schema["properties"]) == ["items"]
    assert shape.read(ANSWER) == read


@pytest.mark.parametrize(("wanted", "read"), SHAPES)
def test_a_wrapper_that_the_model_added_is_taken_off(wanted: Any, read: Any) -> None:
    assert shape_of(wanted).read({"output": ANSWER}) == read


MALFORMED = [
    ({"items": [{"title": 1}]}, "title"),
    ({"items": {"title": "a"}}, "items"),
    ({}, "items"),
    ({"items": [{"title": "a"}, {}]}, "title"),
    ({"output": {"items": [{"title": None}]}}, "title"),
    ("items", "Expected|valid"),
    (None, "Expected|valid"),
]


@pytest.mark.parametrize(("answer", "culprit"), MALFORMED)
@pytest.mark.parametrize("wanted", [each for each, _ in SHAPES])
def test_a_malformed_answer_is_refused_with_path_and_reason(
    wanted: Any, answer: Any, culprit: str
) -> None:
    with pytest.raises(ValueError, match=culprit):
        shape_of(wanted).read(answer)


def test_a_refusal_names_the_path() -> None:
    with pytest.raises(ValueError, match=r"^items\[1\]\.title: Expected `str`, got `int`$"):
        shape_of(DataTodos).read({"items": [{"title": "a"}, {"title": 1}]})


WRAPPED: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (str, "a", "a"),
    (bool, True, True),
    (float, 2, 2.0),
    (list[DataTodo], [{"title": "a"}], [DataTodo("a")]),
    (list[ModelTodo], [{"title": "a"}], [ModelTodo(title="a")]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (Literal["yes", "no"], "yes", "yes"),
    (DataTodo | None, None, None),
    (Numbers, [1], Numbers([1])),
]


@pytest.mark.parametrize(("wanted", "inside", "read"), WRAPPED)
def test_what_is_no_object_is_asked_for_in_a_wrapper(wanted: Any, inside: Any, read: Any) -> None:
    shape = shape_of(wanted)

    Draft202012Validator(shape.schema).validate({"output": inside})
    assert shape.schema["required"] == ["output"]
    assert shape.read({"output": inside}) == read
    assert shape.read(inside) == read


def test_a_mapping_is_an_object_already() -> None:
    shape = shape_of(dict[str, int])

    assert shape.schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert shape.read({"output": 1}) == {"output": 1}
    assert shape.read({"output": {"a": 1}}) == {"a": 1}


def test_a_field_of_ones_own_called_output_is_no_wrapper() -> None:
    assert shape_of(Verdict).read({"output": "good"}) == Verdict(output="good")
    assert shape_of(Verdict).read({"output": {"output": "good"}}) == Verdict(output="good")


def test_a_lenient_model_does_not_swallow_the_wrapper() -> None:
    assert shape_of(Lenient).read({"output": {"note": "a"}}) == Lenient(note="a")


@pytest.mark.parametrize("wanted", [Tree, ModelTree])
def test_a_type_that_contains_itself_stands_on_top_and_keeps_its_name(wanted: Any) -> None:
    shape = shape_of(wanted)

    Draft202012Validator(shape.schema).validate({"value": 1, "branches": [{"value": 2}]})
    assert shape.schema["type"] == "object"
    assert list(shape.schema["$defs"]) == [wanted.__name__]
    with pytest.raises(ValueError, match="branches"):
        shape.read({"value": 1, "branches": [{"value": "two"}]})


def test_a_type_that_json_cannot_carry_is_refused_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        shape_of(Callable)  # type: ignore[arg-type]

    assert refused.value.argument == "output"
