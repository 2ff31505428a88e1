from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from steersman.agent import Agent
from steersman.errors import BadOutput, NoOutput, TurnFailed, UsageError
from steersman.testing.script import Script, call, fail, say
from steersman.testing.scripted.cli import ScriptedCLI


@dataclass
class City:
    name: str
    people: int


class Place(TypedDict):
    name: str
    people: int


class Town(msgspec.Struct):
    name: str
    people: int


class Village(pydantic.BaseModel):
    name: str
    people: int = pydantic.Field(gt=0)


BERN = {"name": "Bern", "people": 134_000}


async def run(output: Any, *steps: Any, checks: bool = True) -> Any:
    cli = ScriptedCLI(Script(*steps), checks_output=checks)
    async with asyncio.timeout(5):
        return await Agent(transport=cli).run("Which city?", output=output)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (City, City("Bern", 134_000)),
        (Place, BERN),
        (Town, Town("Bern", 134_000)),
        (Village, Village(name="Bern", people=134_000)),
    ],
)
async def test_the_answer_comes_as_what_was_asked_for(output: Any, expected: Any) -> None:
    found = await run(output, call("StructuredOutput", BERN))

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("output", [list[int], int, str | None, dict[str, float]])
async def test_what_is_no_object_is_wrapped_for_the_model(output: Any) -> None:
    values: dict[Any, Any] = {list[int]: [1, 2], int: 5, str | None: None}
    value = values.get(output, {"a": 0.5})
    answer = value if output == dict[str, float] else {"output": value}

    assert await run(output, call("StructuredOutput", answer)) == value


async def test_the_cli_lets_the_model_try_again() -> None:
    wrong, right = call("StructuredOutput", {"name": "Bern"}), call("StructuredOutput", BERN)

    assert await run(City, wrong, right) == City("Bern", 134_000)


async def test_a_model_that_is_reminded_may_still_answer() -> None:
    assert await run(City, say("It is Bern."), call("StructuredOutput", BERN)) == City(
        "Bern", 134_000
    )


async def test_a_model_that_never_gives_output_is_told_of_with_its_text() -> None:
    with pytest.raises(NoOutput) as raised:
        await run(City, say("It is Bern."), say("I said Bern."))

    assert raised.value.text == "It is Bern.\n\nI said Bern."
    assert raised.value.hint


async def test_a_model_that_never_gets_it_right_fails_the_turn() -> None:
    wrong = call("StructuredOutput", {"name": "Bern"})

    with pytest.raises(TurnFailed) as raised:
        await run(City, *[say("Try: ") + wrong] * 5)

    assert raised.value.outcome == "failed"
    assert "Try:" in raised.value.text


MALFORMED: list[dict[str, Any]] = [
    {"name": "Bern"},
    {"name": "Bern", "people": "many"},
    {"name": 3011, "people": 134_000},
    {"town": "Bern", "inhabitants": 134_000},
    {"name": "Bern", "people": None},
]


@pytest.mark.parametrize("output", [City, Place, Town, Village])
@pytest.mark.parametrize("given", MALFORMED)
async def test_output_that_does_not_fit_is_told_of_with_the_output_and_the_text(
    output: Any, given: dict[str, Any]
) -> None:
    with pytest.raises(BadOutput) as raised:
        await run(output, say("Here: ") + call("StructuredOutput", given), checks=False)

    assert raised.value.output == given
    assert raised.value.text == "Here: "
    assert "does not fit" in raised.value.what


async def test_a_rule_that_no_schema_told_is_checked_all_the_same() -> None:
    class Capital(pydantic.BaseModel):
        name: str

        @pydantic.field_validator("name")
        @classmethod
        def is_capital(cls, name: str) -> str:
            if name != "Bern":
                raise ValueError("not the capital")
            return name

    with pytest.raises(BadOutput, match="not the capital"):
        await run(Capital, call("StructuredOutput", {"name": "Basel"}))


async def test_without_output_the_result_of_the_turn_is_given() -> None:
    async with asyncio.timeout(5):
        settled = await Agent(transport=ScriptedCLI(Script(say("Bern.")))).run("Which city?")

    assert (settled.text, settled.outcome) == ("Bern.", "completed")


async def test_a_turn_that_fails_is_raised_with_its_reason() -> None:
    cli = ScriptedCLI(Script(fail(400, "too strange")))

    async with asyncio.timeout(5):
        with pytest.raises(TurnFailed, match="too strange") as raised:
            await Agent(transport=cli).run("Which city?")

    assert raised.value.outcome == "failed"
    assert cli.running == 0


async def test_a_type_that_json_cannot_carry_is_told_before_anything_runs() -> None:
    cli = ScriptedCLI()

    with pytest.raises(UsageError, match="output"):
        await Agent(transport=cli).run("Which city?", output=asyncio.Event)

    assert cli.launches == []
