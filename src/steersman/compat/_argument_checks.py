"""Checks the arguments of a tool against its JSON Schema.

The wording is that of the package `jsonschema`, which models and programs know from the official
SDK. Keywords that are not in `CHECKS` are not checked.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from steersman._json import Json, JsonObject, is_array, is_mapping

Path: TypeAlias = tuple[str, ...]
WEAK = ("anyOf", "oneOf")
"""Keywords whose problems explain less than others at the same place."""


class Problem(NamedTuple):
    """What is wrong, where, by which keyword, and why each alternative does not fit."""

    text: str
    path: Path
    keyword: str
    has_type: bool
    alternatives: list[Problem] = []


class Place(NamedTuple):
    """A schema, the whole schema that it is part of, and where in the arguments it applies."""

    schema: JsonObject
    root: JsonObject
    path: Path

    def at(self, schema: Json, *step: str) -> Place:
        return Place(schema, self.root, (*self.path, *step))


Check: TypeAlias = Callable[[Json, Json, Place], Iterator[str | list[Problem]]]
Found: TypeAlias = Iterator["str | list[Problem]"]


def problem_in(schema: JsonObject, given: Json) -> str | None:
    """Return the problem that explains most of the arguments; None if there is none."""
    found = _problems(Place(schema, schema, ()), given)
    if not found:
        return None
    best = max(found, key=_relevance)
    while best.alternatives:
        nearest = heapq.nsmallest(2, best.alternatives, key=_relevance)
        if len(nearest) > 1 and _relevance(nearest[0]) == _relevance(nearest[1]):
            break
        best = nearest[0]
    return best.text


def _relevance(problem: Problem) -> tuple[int, Path, bool, bool]:
    """Return a key by which problems near the top of the arguments come last."""
    return -len(problem.path), problem.path, problem.keyword not in WEAK, not problem.has_type


def _problems(place: Place, given: Json) -> list[Problem]:
    schema: Json = place.schema
    if schema is False:
        return [Problem(f"False schema does not allow {given!r}", place.path, "", has_type=False)]
    if not is_mapping(schema):
        return []
    found: list[Problem] = []
    for keyword, wanted in schema.items():
        check = CHECKS.get(keyword)
        for each in () if check is None else check(wanted, given, place):
            if isinstance(each, str):
                found.append(Problem(each, place.path, keyword, _fits_type(schema, given)))
            elif keyword in WEAK:
                text = f"{given!r} is not valid under any of the given schemas"
                has_type = _fits_type(schema, given)
                found.append(Problem(text, place.path, keyword, has_type, each))
            else:
                found += each
    return found


def _fits_type(schema: JsonObject, given: Json) -> bool:
    wanted = schema.get("type")
    return any(_is_type(given, each) for each in (wanted if is_array(wanted) else [wanted]))


# Types


def _is_number(given: Json) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


TYPES: Mapping[Json, Callable[[Json], bool]] = {
    "string": lambda given: isinstance(given, str),
    "integer": lambda given: _is_number(given) and (isinstance(given, int) or given.is_integer()),
    "number": _is_number,
    "boolean": lambda given: isinstance(given, bool),
    "array": is_array,
    "object": is_mapping,
    "null": lambda given: given is None,
}


def _is_type(given: Json, wanted: Json) -> bool:
    return wanted in TYPES and TYPES[wanted](given)


def _type(wanted: Json, given: Json, _: Place) -> Found:
    kinds = wanted if is_array(wanted) else [wanted]
    if all(kind in TYPES for kind in kinds) and not any(_is_type(given, kind) for kind in kinds):
        yield f"{given!r} is not of type {', '.join(map(repr, kinds))}"


# Values


def _is_equal(one: Json, other: Json) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _enum(wanted: Json, given: Json, _: Place) -> Found:
    if not any(_is_equal(given, each) for each in wanted):
        yield f"{given!r} is not one of {wanted!r}"


def _const(wanted: Json, given: Json, _: Place) -> Found:
    if not _is_equal(given, wanted):
        yield f"{wanted!r} was expected"


def _limit(kind: str, is_beyond: Callable[[Any, Any], bool], how: str) -> Check:
    def check(wanted: Json, given: Json, _: Place) -> Found:
        if TYPES[kind](given) and is_beyond(given, wanted):
            yield how.format(given=given, wanted=wanted)

    return check


def _multiple(wanted: Json, given: Json, _: Place) -> Found:
    if _is_number(given) and (given / wanted) % 1:
        yield f"{given!r} is not a multiple of {wanted!r}"


def _length(kind: str, *, is_least: bool, beyond: str, alone: str) -> Check:
    """Return a check of a size; `alone` is the text where the limit is the least or the most."""

    def check(wanted: Json, given: Json, _: Place) -> Found:
        if not TYPES[kind](given):
            return
        if is_least and len(given) < wanted:
            yield f"{given!r} {alone if wanted == 1 else beyond}"
        elif not is_least and len(given) > wanted:
            yield f"{given!r} {alone if wanted == 0 else beyond}"

    return check


def _pattern(wanted: Json, given: Json, _: Place) -> Found:
    if isinstance(given, str) and not _matches(wanted, given):
        yield f"{given!r} does not match {wanted!r}"


def _matches(pattern: str, given: str) -> bool:
    try:
        return re.search(pattern, given) is not None
    except re.error:  # JSON Schema has the syntax of JavaScript
        return True


def _unique(wanted: Json, given: Json, _: Place) -> Found:
    if wanted and is_array(given):
        seen: list[Json] = []
        for each in given:
            if any(_is_equal(each, other) for other in seen):
                yield f"{given!r} has non-unique elements"
                return
            seen.append(each)


# Parts


def _required(wanted: Json, given: Json, _: Place) -> Found:
    if is_mapping(given):
        yield from (f"{name!r} is a required property" for name in wanted if name not in given)


def _properties(wanted: Json, given: Json, place: Place) -> Found:
    if is_mapping(given):
        for name, schema in wanted.items():
            if name in given:
                yield _problems(place.at(schema, name), given[name])


def _patterns(wanted: Json, given: Json, place: Place) -> Found:
    if is_mapping(given):
        for pattern, schema in wanted.items():
            for name, value in given.items():
                if _matches(pattern, name):
                    yield _problems(place.at(schema, name), value)


def _others(wanted: Json, given: Json, place: Place) -> Found:
    if not is_mapping(given):
        return
    known, patterns = place.schema.get("properties", {}), place.schema.get("patternProperties", {})
    others = [
        name
        for name in given
        if name not in known and not any(_matches(each, name) for each in patterns)
    ]
    if is_mapping(wanted):
        for name in others:
            yield _problems(place.at(wanted, name), given[name])
    elif wanted is False and others:
        names, is_one = ", ".join(map(repr, sorted(others))), len(others) == 1
        if patterns:
            known_as = ", ".join(map(repr, sorted(patterns)))
            does = "does" if is_one else "do"
            yield f"{names} {does} not match any of the regexes: {known_as}"
        else:
            were = "was" if is_one else "were"
            yield f"Additional properties are not allowed ({names} {were} unexpected)"


def _items(wanted: Json, given: Json, place: Place) -> Found:
    if is_array(given) and not is_array(wanted):
        first = len(place.schema.get("prefixItems", ()))
        for position, each in enumerate(given[first:], first):
            yield _problems(place.at(wanted, str(position)), each)


def _first_items(wanted: Json, given: Json, place: Place) -> Found:
    if is_array(given):
        for position, (schema, each) in enumerate(zip(wanted, given, strict=False)):
            yield _problems(place.at(schema, str(position)), each)


# Combinations


def _all_of(wanted: Json, given: Json, place: Place) -> Found:
    yield from (_problems(place.at(schema), given) for schema in wanted)


def _any_of(wanted: Json, given: Json, place: Place) -> Found:
    found = [_problems(place.at(schema), given) for schema in wanted]
    if found and all(found):
        yield [problem for problems in found for problem in problems]


def _one_of(wanted: Json, given: Json, place: Place) -> Found:
    found = [_problems(place.at(schema), given) for schema in wanted]
    fitting: Sequence[Json] = [
        schema for schema, problems in zip(wanted, found, strict=True) if not problems
    ]
    if not fitting:
        yield [problem for problems in found for problem in problems]
    elif len(fitting) > 1:
        first, *more = fitting
        yield f"{given!r} is valid under each of {', '.join(map(repr, [*more, first]))}"


def _not(wanted: Json, given: Json, place: Place) -> Found:
    if not _problems(place.at(wanted), given):
        yield f"{given!r} should not be valid under {wanted!r}"


def _if(wanted: Json, given: Json, place: Place) -> Found:
    branch = "else" if _problems(place.at(wanted), given) else "then"
    if branch in place.schema:
        yield _problems(place.at(place.schema[branch]), given)


def _ref(wanted: Json, given: Json, place: Place) -> Found:
    found: Json = place.root
    if not isinstance(wanted, str) or not (wanted == "#" or wanted.startswith("#/")):
        return
    for step in wanted.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if is_mapping(found) else None
    if is_mapping(found) and found is not place.schema:
        yield _problems(place.at(found), given)


CHECKS: Mapping[str, Check] = {
    "$ref": _ref,
    "additionalProperties": _others,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "exclusiveMaximum": _limit(
        "number",
        lambda given, wanted: given >= wanted,
        "{given!r} is greater than or equal to the maximum of {wanted!r}",
    ),
    "exclusiveMinimum": _limit(
        "number",
        lambda given, wanted: given <= wanted,
        "{given!r} is less than or equal to the minimum of {wanted!r}",
    ),
    "if": _if,
    "items": _items,
    "maxItems": _length(
        "array", is_least=False, beyond="is too long", alone="is expected to be empty"
    ),
    "maxLength": _length(
        "string", is_least=False, beyond="is too long", alone="is expected to be empty"
    ),
    "maxProperties": _length(
        "object",
        is_least=False,
        beyond="has too many properties",
        alone="is expected to be empty",
    ),
    "maximum": _limit(
        "number",
        lambda given, wanted: given > wanted,
        "{given!r} is greater than the maximum of {wanted!r}",
    ),
    "minItems": _length("array", is_least=True, beyond="is too short", alone="should be non-empty"),
    "minLength": _length(
        "string", is_least=True, beyond="is too short", alone="should be non-empty"
    ),
    "minProperties": _length(
        "object",
        is_least=True,
        beyond="does not have enough properties",
        alone="should be non-empty",
    ),
    "minimum": _limit(
        "number",
        lambda given, wanted: given < wanted,
        "{given!r} is less than the minimum of {wanted!r}",
    ),
    "multipleOf": _multiple,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _patterns,
    "prefixItems": _first_items,
    "properties": _properties,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique,
}
