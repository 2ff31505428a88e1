"""What `run` returns. mypy and pyright read this file, and must mark nothing; it is not run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_type

from msgspec import Struct
from pydantic import BaseModel

import steersman
from steersman import Agent, TurnResult


@dataclass
class Point:
    x: int


class Place(TypedDict):
    x: int


class Spot(Struct):
    x: int


class Corner(BaseModel):
    x: int


async def of_the_module() -> None:
    assert_type(await steersman.run("x"), TurnResult)
    assert_type(await steersman.run("x", output=None, model="opus"), TurnResult)
    assert_type(await steersman.run("x", output=Point), Point)
    assert_type(await steersman.run("x", output=Place), Place)
    assert_type(await steersman.run("x", output=Spot, model="opus"), Spot)
    assert_type(await steersman.run("x", output=Corner), Corner)
    assert_type(await steersman.run("x", output=list[Point]), list[Point])
    assert_type(await steersman.run("x", output=Point | None), Point | None)


async def of_an_agent(agent: Agent) -> None:
    assert_type(await agent.run("x"), TurnResult)
    assert_type(await agent.run("x", output=None, model="opus"), TurnResult)
    assert_type(await agent.run("x", output=Point), Point)
    assert_type(await agent.run("x", output=Place), Place)
    assert_type(await agent.run("x", output=Spot, model="opus"), Spot)
    assert_type(await agent.run("x", output=Corner), Corner)
    assert_type(await agent.run("x", output=list[Point]), list[Point])
    assert_type(await agent.run("x", output=Point | None), Point | None)
