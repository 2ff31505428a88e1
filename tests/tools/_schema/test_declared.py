from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from steersman.errors import UsageError
from steersman.tools._schema.declared import InputSchema, declared_arguments


@dataclass
class Point:
    x: int


class Movie(TypedDict):
    title: str


TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
        "size": {"type": "number", "minimum": 0, "exclusiveMaximum": 10},
        "file-path": {"type": ["string", "null"]},
        "mode": {"enum": ["r", "w", 1]},
        "ratio": {"const": 0.5},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        "both": {
            "allOf": [{"type": "integer", "minimum": 1}, {"multipleOf": 2, "type": "integer"}]
        },
        "leaf": {"$ref": "#/$defs/leaf"},
        "odd": {"not": {"type": "string"}},
    },
    "required": ["name"],
    "$defs": {
        "leaf": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/leaf"}, "v": {"type": "boolean"}},
            "additionalProperties": False,
        }
    },
}


def test_types_words_and_fragments_may_stand_side_by_side() -> None:
    arguments = declared_arguments(
        {
            "a": float,
            "b": "number",
            "c": Annotated[str, "the third"],
            "d": {"type": "string", "enum": ["x"]},
            "p": Point,
            "l": "array",
        }
    )

    Draft202012Validator.check_schema(arguments.schema)
    assert arguments.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "number"},
            "c": {"type": "string", "description": "the third"},
            "d": {"type": "string", "enum": ["x"]},
            "p": {"$ref": "#/$defs/Point"},
            "l": {"type": "array"},
        },
        "required": ["a", "b", "c", "d", "p", "l"],
        "additionalProperties": False,
        "$defs": {
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}},
                "required": ["x"],
            }
        },
    }
    given = {"a": 15, "b": 2.5, "c": "c", "d": "x", "p": {"x": 1}, "l": [1, "a"]}
    assert arguments.read(given) == {**given, "p": Point(1)}


def test_a_whole_number_stays_whole() -> None:
    read = declared_arguments({"a": float, "b": "number"}).read({"a": 15, "b": 27})

    assert f"{read['a']} + {read['b']}" == "15 + 27"


@pytest.mark.parametrize("word", ["string", "number", "integer", "boolean", "object", "array"])
def test_a_word_of_json_is_a_type(word: str) -> None:
    assert declared_arguments({"x": word}).schema["properties"] == {"x": {"type": word}}


def test_a_parameter_may_be_called_type() -> None:
    schema = declared_arguments({"type": "string", "properties": "object"}).schema

    assert list(schema["properties"]) == ["type", "properties"]


@pytest.mark.parametrize(
    "given", [{"type": "object"}, {"type": "object", "properties": {}}, {"properties": {}}]
)
def test_a_bare_json_schema_takes_any_object(given: dict[str, Any]) -> None:
    arguments = declared_arguments(given)

    assert arguments.schema == {"type": "object", **given}
    assert arguments.read({"a": 1}) == {"a": 1}


def test_no_parameters_at_all_refuse_every_argument() -> None:
    with pytest.raises(ValueError, match="unknown field `a`"):
        declared_arguments({}).read({"a": 1})


def test_a_json_schema_is_told_as_it_is_and_the_handler_gets_what_came() -> None:
    given = {
        "name": "a",
        "size": 1,
        "file-path": None,
        "mode": 1,
        "ratio": 0.5,
        "tags": ["a"],
        "either": [1],
        "both": 2,
        "leaf": {"next": {"v": True}},
        "odd": 1,
        "more": "is fine",
    }

    arguments = declared_arguments(TREE)

    Draft202012Validator(TREE).validate(given)
    assert arguments.schema == TREE
    assert arguments.read(given) == given


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "missing required field `name`"),
        ({"name": ""}, "^name: "),
        ({"name": "A"}, "^name: "),
        ({"name": 1}, "^name: Expected `str`, got `int`"),
        ({"name": "a", "size": -1}, "^size: "),
        ({"name": "a", "size": 10}, "^size: "),
        ({"name": "a", "file-path": 1}, "^file-path: fits none of"),
        ({"name": "a", "mode": "x"}, "^mode: "),
        ({"name": "a", "ratio": 0.6}, "^ratio: "),
        ({"name": "a", "tags": ["a", 1]}, r"^tags\[1\]: "),
        ({"name": "a", "tags": ["a", "b", "c"]}, "^tags: "),
        ({"name": "a", "either": ["a"]}, "^either: "),
        ({"name": "a", "both": 3}, "^both: "),
        ({"name": "a", "both": 0}, "^both: "),
        ({"name": "a", "leaf": {"w": 1}}, "^leaf: .*unknown field `w`"),
        ({"name": "a", "leaf": {"v": 1}}, "^leaf.v: "),
    ],
)
def test_what_a_json_schema_forbids_is_refused(given: dict[str, Any], reason: str) -> None:
    assert not Draft202012Validator(TREE).is_valid(given)

    with pytest.raises(ValueError, match=reason):
        declared_arguments(TREE).read(given)


def test_a_class_may_declare_the_parameters() -> None:
    assert declared_arguments(Point).read({"x": 1}) == Point(1)
    assert declared_arguments(Movie).read({"title": "M"}) == {"title": "M"}


def test_a_pattern_that_only_javascript_can_read_is_left_to_the_handler() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"\p{L}"}}}

    assert declared_arguments(schema).read({"a": "1"}) == {"a": "1"}


@pytest.mark.parametrize(
    ("declared", "argument"),
    [
        ({"a": "text"}, "input_schema['a']"),
        ({"a": 3}, "input_schema 'a'"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "input_schema"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_by_name(
    declared: InputSchema, argument: str
) -> None:
    with pytest.raises(UsageError) as refused:
        declared_arguments(declared)

    assert refused.value.argument == argument
