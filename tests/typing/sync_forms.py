"""What `steersman.sync` returns and refuses. mypy and pyright read this file; it is not run.

They mark every line that ends in `# refused`, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_type

from steersman import Message, TurnResult
from steersman.agent import TypedResult
from steersman.control import GetContextUsage
from steersman.control.context import ContextUsage
from steersman.inbox import Change
from steersman.sync import Agent, Inbox, Query, Session, Sessions, Turn, query, run, run_result


@dataclass
class Point:
    x: int


def of_the_module() -> None:
    assert_type(run("x"), TurnResult)
    assert_type(run("x", output=None, model="opus"), TurnResult)
    assert_type(run("x", output=Point), Point)
    assert_type(run("x", output=list[Point]), list[Point])
    assert_type(run("x", output=Point | None), Point | None)
    assert_type(run_result("x", output=Point), TypedResult[Point])
    assert_type(query("x"), Query)
    assert_type(next(query(iter(["x", "y"]))), Message)
    run("x", modle="opus")  # refused
    run(5)  # refused
    query("x", max_turns="3")  # refused


def of_an_agent(agent: Agent) -> None:
    assert_type(agent.run("x"), TurnResult)
    assert_type(agent.run("x", output=Point, model="opus"), Point)
    assert_type(agent.run("x", output=Point | None), Point | None)
    assert_type(agent.session(), Session)
    assert_type(agent.open("key", missing="fail"), Session)
    assert_type(agent.start("x"), Session)
    Agent(permission_mode="yolo")  # refused
    agent.session(max_turns="3")  # refused
    agent.open("key", missing="never")  # refused
    with agent.session() as session, agent.open("key") as other:
        assert_type(session, Session)
        assert_type(other, Session)


async def of_an_agent_in_a_coroutine(agent: Agent) -> None:
    await agent.run("x")  # refused
    async with agent.session():  # refused
        pass


def of_a_session(session: Session) -> None:
    turn = session.send("x")
    assert_type(turn, Turn)
    assert_type(turn.result(), TurnResult)
    assert_type(turn.result(timeout=5), TurnResult)
    assert_type(turn.text(), Iterator[str])
    assert_type(list(turn), list[Message])
    assert_type(session.call(GetContextUsage()), ContextUsage)
    assert_type(session.fork(model="opus"), Session)
    assert_type(session.turns, tuple[Turn, ...])
    session.send("x", when="soon")  # refused
    turn.result(timeout="5")  # refused


def of_an_inbox(inbox: Inbox) -> None:
    Agent(inbox=inbox)
    assert_type(inbox.watch(), Iterator[Change])
    Sessions().list()
