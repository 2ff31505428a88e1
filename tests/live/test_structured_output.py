"""`run(output=T)` gives a `T`, or an error that has the text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from steersman.errors import BadOutput, NoOutput, TurnFailed
from steersman.testing.request import ModelRequest
from steersman.testing.script import Answer, Step, call, fail, say
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live


class PydanticCity(pydantic.BaseModel):
    name: str
    people: int = pydantic.Field(ge=0)


@dataclass
class DataclassCity:
    name: str
    people: int


class TypedCity(TypedDict):
    name: str
    people: int


class StructCity(msgspec.Struct):
    name: str
    people: int


OSLO = {"name": "Oslo", "people": 709_037}

EXPECTED: Mapping[Any, Any] = {
    PydanticCity: PydanticCity(name="Oslo", people=709_037),
    DataclassCity: DataclassCity("Oslo", 709_037),
    TypedCity: {"name": "Oslo", "people": 709_037},
    StructCity: StructCity("Oslo", 709_037),
    list[StructCity]: [StructCity("Oslo", 709_037)],
    int: 709_037,
}


@pytest.mark.parametrize("wanted", EXPECTED, ids=str)
async def test_the_answer_comes_as_an_instance(scripted: MakeScripted, wanted: Any) -> None:
    agent, _model = scripted(lambda request: say("Here.") + answer(request, wanted))

    async with asyncio.timeout(LIMIT):
        city = await agent.run("Which city?", output=wanted)

    assert city == EXPECTED[wanted]
    assert type(city) is type(EXPECTED[wanted])


def answer(request: ModelRequest, wanted: Any) -> Step:
    """Call the tool as its schema wants it: what is no object stands under the one key it has."""
    if wanted not in (int, list[StructCity]):
        return call("StructuredOutput", OSLO)
    tools = {tool["name"]: tool for tool in request.body["tools"]}
    (key,) = tools["StructuredOutput"]["input_schema"]["properties"]
    return call("StructuredOutput", {key: OSLO["people"] if wanted is int else [OSLO]})


async def test_an_answer_that_does_not_fit_is_asked_for_again(scripted: MakeScripted) -> None:
    agent, model = scripted(
        call("StructuredOutput", name="Oslo", people="many"),
        call("StructuredOutput", name="Oslo"),
        call("StructuredOutput", OSLO),
    )

    async with asyncio.timeout(LIMIT):
        city = await agent.run("Which city?", output=StructCity)

    assert city == StructCity("Oslo", 709_037)
    assert len(model.asked) == 3


async def test_a_model_that_only_talks_gives_no_output_but_its_text(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("It is Oslo."), say("I told you."))

    with pytest.raises(NoOutput) as caught:
        async with asyncio.timeout(LIMIT):
            await agent.run("Which city?", output=StructCity)

    assert caught.value.text == "It is Oslo.\n\nI told you."
    assert caught.value.hint


MALFORMED: Mapping[str, dict[str, Any]] = {
    "a missing field": {"name": "Oslo"},
    "a wrong type": {"name": "Oslo", "people": "many"},
    "a null": {"name": None, "people": 1},
    "a list": {"name": ["Oslo"], "people": 1},
    "another thing": {"country": "Norway"},
}


async def test_an_answer_that_never_fits_fails_with_the_text(scripted: MakeScripted) -> None:
    steps: list[Answer] = [
        say(f"Try {n}.") + call("StructuredOutput", given)
        for n, given in enumerate(MALFORMED.values())
    ]
    agent, _model = scripted(*steps, say("I give up."), say("Really."))

    with pytest.raises((TurnFailed, NoOutput)) as caught:
        async with asyncio.timeout(LIMIT):
            await agent.run("Which city?", output=StructCity)

    assert "Try 0." in caught.value.text
    assert "Try 4." in caught.value.text


async def test_what_only_our_type_refuses_is_told_with_the_value(scripted: MakeScripted) -> None:
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("odd")
            return number

    agent, _model = scripted(say("Three.") + call("StructuredOutput", number=3))

    with pytest.raises(BadOutput, match="odd") as caught:
        async with asyncio.timeout(LIMIT):
            await agent.run("An even number?", output=Even)

    assert caught.value.output == {"number": 3}
    assert caught.value.text == "Three."


async def test_a_turn_that_fails_is_no_missing_output(scripted: MakeScripted) -> None:
    agent, _model = scripted(fail(400, "too strange"))

    with pytest.raises(TurnFailed, match="too strange"):
        async with asyncio.timeout(LIMIT):
            await agent.run("Which city?", output=StructCity)
