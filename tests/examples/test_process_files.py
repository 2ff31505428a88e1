"""The example that processes files prints its states and the times of its tools."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from examples import process_files
from steersman import Agent
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.examples.offline import ROOT, run_offline

FILES = {
    "apples.csv": "kind,count\nred,3\ngreen,4\n",
    "pears.csv": "kind,count\nold,1.5\n",
    "notes.txt": "nothing to see",
}

EXPECTED = """\
State: idle -> starting
State: starting -> idle
State: idle -> running
State: running -> waiting_tool_call
Executing tool: mcp__processor__list_files {}
State: waiting_tool_call -> running
Tool mcp__processor__list_files took N ms
State: running -> waiting_tool_call
Executing tool: mcp__processor__summarize {'name': 'apples.csv'}
Executing tool: mcp__processor__summarize {'name': 'pears.csv'}
State: waiting_tool_call -> running
Tool mcp__processor__summarize took N ms
Tool mcp__processor__summarize took N ms
State: running -> waiting_tool_call
Executing tool: mcp__processor__write_report {'text': '8.5 fruits'}
State: waiting_tool_call -> running
Tool mcp__processor__write_report took N ms
State: running -> idle
State: idle -> completed
The report is written.
Final state: completed, 4 tool calls
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


class Reader:
    """A model that adds up the results of the tools."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    @property
    def script(self) -> Script:
        return Script(call("mcp__processor__list_files"), self.ask, self.report, self.end)

    def ask(self, request: ModelRequest) -> Step:
        names = self._hear(request)[0]
        return calls(*(call("mcp__processor__summarize", name=name) for name in names))

    def report(self, request: ModelRequest) -> Step:
        total = sum(each["sums"]["count"] for each in self._hear(request))
        return call("mcp__processor__write_report", text=f"{total} fruits")

    def end(self, _request: ModelRequest) -> Step:
        return say("The report is written.")

    def _hear(self, request: ModelRequest) -> list[Any]:
        found = [json.loads(each) for each in request.tool_results.values()]
        self.results += found
        return found


def without_times(shown: str) -> str:
    """What was printed, with N for milliseconds; in the order in which tools were called."""
    return re.sub(r"took \d+ ms", "took N ms", shown)


async def test_it_prints_its_states_and_the_times_of_its_tools(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = Agent(
        mcp_servers={"processor": process_files.processor(data)},
        allowed_tools=["mcp__processor"],
        transport=ScriptedCLI(Reader().script),
    )

    async with asyncio.timeout(10):
        last = await process_files.process(agent, "Process.")

    shown = capsys.readouterr().out
    assert sorted(without_times(shown).splitlines()) == sorted(EXPECTED.splitlines())
    assert (last.state, last.stats.tool_calls) == ("completed", 4)
    assert (data / "report.md").read_text(encoding="utf-8") == "8.5 fruits"


@pytest.mark.live
def test_it_runs_on_the_stock_cli_as_it_stands(data: Path) -> None:
    reader = Reader()

    run = run_offline([f"{ROOT}/examples/process_files.py", str(data)], reader.script)

    assert run.stderr == ""
    assert {"rows": 2, "sums": {"count": 7.0}} in reader.results
    shown = without_times(run.stdout).splitlines()
    assert [each for each in shown if each.startswith("Tool ")] == [
        each for each in EXPECTED.splitlines() if each.startswith("Tool ")
    ]
    assert shown[:4] == EXPECTED.splitlines()[:4]
    assert shown[-3:] == EXPECTED.splitlines()[-3:]
    assert (data / "report.md").read_text(encoding="utf-8") == "8.5 fruits"
