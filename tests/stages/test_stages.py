"""The scripted CLI is proven against the stock one: the same scenario gives the same journal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from steersman.testing.script import say
from steersman.testing.stages import ExecutableStage, MemoryStage, Stage, StockStage
from tests.live.staging import LIMIT, entries_of
from tests.live.test_harness import stock_cli
from tests.stages.journals import NOT_COMPARED, TEXTS_NOT_COMPARED, told
from tests.stages.scenarios import AGreeting, Scenario, at_rest, scenarios

ALL = list(scenarios())
FEWEST = 30
AS_PROCESSES = ALL if os.environ.get("STEERSMAN_SOAK") else ALL[::3]
"""It is the same scripted CLI, so every third scenario shows what the pipe adds."""

ON_STOCK = [
    pytest.param(each, marks=pytest.mark.soak_only if number % 3 else ())
    for number, each in enumerate(ALL)
]
"""The suite plays every third one: the conformance scenes look at the stock CLI too."""


def in_memory(scenario: type[Scenario], folder: Path) -> MemoryStage:
    return MemoryStage(scenario.cli(), folder)


def as_a_process(scenario: type[Scenario], folder: Path) -> ExecutableStage:
    return ExecutableStage(f"{scenario.__module__}:{scenario.__name__}.cli", folder)


async def performed(scenario: Scenario, stage: Stage) -> list[str]:
    """The journal of a scenario, made comparable; all its steps must be taken."""
    agent = stage.agent(env=scenario.env, **scenario.options())
    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await scenario.play(session, stage)
            if scenario.comes_to_rest:
                await at_rest(session)
        entries = await entries_of(session)
    stage.assert_complete()
    return told(entries, str(stage.project))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "memory", tmp_path / "process"
    one.mkdir()
    other.mkdir()
    return one, other


@pytest.mark.process
@pytest.mark.soak
@pytest.mark.parametrize("scenario", AS_PROCESSES, ids=lambda each: each.__name__)
async def test_a_process_tells_what_memory_tells(
    scenario: type[Scenario], folders: tuple[Path, Path]
) -> None:
    in_one = await performed(scenario(), in_memory(scenario, folders[0]))
    in_other = await performed(scenario(), as_a_process(scenario, folders[1]))

    assert in_other == in_one


@pytest.mark.live
@pytest.mark.parametrize("scenario", ON_STOCK, ids=lambda each: each.__name__)
async def test_the_stock_cli_tells_what_the_scripted_one_tells(
    scenario: type[Scenario], tmp_path: Path
) -> None:
    scripted = await performed(scenario(), in_memory(scenario, tmp_path))

    with StockStage(scenario.script(), stock_cli()) as stage:
        stock = await performed(scenario(), stage)

    assert scripted == stock


def test_there_are_enough_scenarios() -> None:
    assert len(ALL) >= FEWEST


def test_whatever_is_not_compared_has_a_reason() -> None:
    reasons = [*NOT_COMPARED.values(), *TEXTS_NOT_COMPARED.values()]

    assert all(reasons)


async def test_a_journal_that_differs_is_found_out(tmp_path: Path) -> None:
    class Hello(AGreeting):
        pass

    class Goodbye(AGreeting):
        steps = (say("Goodbye"),)

    hello = await performed(Hello(), in_memory(Hello, tmp_path))
    goodbye = await performed(Goodbye(), in_memory(Goodbye, tmp_path))

    differing = [one for one, other in zip(hello, goodbye, strict=True) if one != other]
    assert len(differing) == len([line for line in hello if "Hello." in line])
