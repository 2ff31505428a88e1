"""The examples with tools, on the scripted CLI and on the stock one."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from examples import calculator, database
from steersman import Agent
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.examples.offline import ROOT, run_offline

OLDER = "SELECT name FROM users WHERE age > ? ORDER BY name"

WRITING = [
    "INSERT INTO users (name) VALUES ('Eve')",
    "DELETE FROM users",
    "DROP TABLE users",
    "CREATE TABLE mine (x)",
    "WITH gone AS (SELECT 1) UPDATE users SET name = 'Eve'",
    "ATTACH DATABASE 'other.db' AS other",
    "VACUUM INTO 'copy.db'",
]


class Collector:
    """Collects the results of the tools."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def then(self, step: Step) -> Any:
        def answer(request: ModelRequest) -> Step:
            self.results += request.tool_results.values()
            return step

        return answer


@pytest.fixture
def app_db(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    database.make_sample(path)
    return path


def names_in(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name FROM users ORDER BY name").fetchall()
    connection.close()
    return [name for (name,) in rows]


async def test_the_calculator_adds_subtracts_and_refuses_to_divide_by_zero() -> None:
    collector = Collector()
    script = Script(
        call("mcp__calc__add", a=100, b=50),
        collector.then(call("mcp__calc__subtract", a=150, b=25)),
        collector.then(call("mcp__calc__divide", a=125, b=0)),
        collector.then(call("StructuredOutput", value=125)),
        say("Done."),
    )
    agent = Agent(
        mcp_servers={"calc": calculator.calculator},
        allowed_tools=["mcp__calc"],
        transport=ScriptedCLI(script),
    )

    async with asyncio.timeout(10):
        answer = await calculator.calculate(agent, "Calculate.")

    assert answer == calculator.Answer(125)
    assert collector.results == ["150.0", "125.0", "Error: Division by zero"]


async def test_the_database_is_read(app_db: Path) -> None:
    collector = Collector()
    script = Script(
        call("mcp__db__query", sql=OLDER, params=[40]),
        collector.then(say("Alan and Grace.")),
    )
    agent = Agent(
        mcp_servers={"db": database.database(app_db)},
        allowed_tools=["mcp__db"],
        transport=ScriptedCLI(script),
    )

    async with asyncio.timeout(10):
        answer = await database.ask(agent, "Who is older than 40?")

    assert answer == "Alan and Grace."
    assert [json.loads(each) for each in collector.results] == [
        {"rows": [{"name": "Alan"}, {"name": "Grace"}]}
    ]


@pytest.mark.parametrize("sql", WRITING)
async def test_sqlite_itself_refuses_to_write(
    app_db: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app_db.parent)
    collector = Collector()
    script = Script(call("mcp__db__query", sql=sql), collector.then(say("It would not.")))
    agent = Agent(
        mcp_servers={"db": database.database(app_db)},
        allowed_tools=["mcp__db"],
        transport=ScriptedCLI(script),
    )

    async with asyncio.timeout(10):
        await database.ask(agent, "Write something.")

    (refused,) = collector.results
    assert refused.startswith("Query error: ")
    assert names_in(app_db) == ["Ada", "Alan", "Grace"]
    assert [each.name for each in app_db.parent.iterdir()] == ["app.db"]


@pytest.mark.live
def test_the_database_runs_on_the_stock_cli_as_it_stands(app_db: Path) -> None:
    collector = Collector()
    script = Script(
        call("ReadMcpResourceTool", server="db", uri="db://schema"),
        collector.then(call("mcp__db__query", sql="DELETE FROM users")),
        collector.then(call("mcp__db__query", sql=OLDER, params=[40])),
        collector.then(say("Alan and Grace.")),
    )

    run = run_offline([f"{ROOT}/examples/database.py", str(app_db)], script)

    schema, refused, found = collector.results
    assert (run.stdout, run.stderr) == ("Alan and Grace.\n", "")
    assert "CREATE TABLE users" in schema
    assert "Query error: attempt to write a readonly database" in refused
    assert json.loads(found) == {"rows": [{"name": "Alan"}, {"name": "Grace"}]}
    assert names_in(app_db) == ["Ada", "Alan", "Grace"]
