"""File processing with state tracking: prints each state, and how long each tool takes.

Run it with `python examples/process_files.py data/`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import csv
import sys
from collections.abc import Mapping
from pathlib import Path

from steersman import Agent, Session, Toolbox, tool
from steersman.journal.calls import ToolCallRecord
from steersman.journal.snapshot import SessionSnapshot, StateChanged
from steersman.tools import ToolError


def processor(folder: Path) -> Toolbox:
    """Return the tools that read the files of one folder and write a report there."""

    @tool(read_only=True)
    def list_files() -> list[str]:
        """List the CSV files."""
        return sorted(path.name for path in folder.glob("*.csv"))

    @tool(read_only=True)
    def summarize(name: str) -> Mapping[str, object]:
        """Count the rows of a CSV file, and sum its columns of numbers."""
        path = folder / Path(name).name
        if not path.is_file():
            raise ToolError(f"there is no {name}")
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
        sums = {key: sum(map(float, found)) for key, found in columns.items() if _numbers(found)}
        return {"rows": len(rows), "sums": sums}

    @tool
    def write_report(text: str) -> str:
        """Write the summary report."""
        (folder / "report.md").write_text(text, encoding="utf-8")
        return "written"

    return Toolbox("processor", [list_files, summarize, write_report])


def _numbers(found: list[str]) -> bool:
    return all(each.replace(".", "", 1).isdecimal() for each in found)


def follow(session: Session) -> None:
    """Print the states and tool calls of the session as they happen."""

    def on_state(change: StateChanged) -> None:
        print(f"State: {change.before} -> {change.after}")
        if change.after == "waiting_tool_call":
            for call in change.snapshot.pending_tool_calls:
                print(f"Executing tool: {call.name} {dict(call.arguments)}")

    def on_result(call: ToolCallRecord) -> None:
        print(f"Tool {call.name} took {1000 * (call.duration or 0):.0f} ms")

    session.on("state_change", on_state)
    session.on("tool_result", on_result)


async def process(agent: Agent, task: str) -> SessionSnapshot:
    """Do the task, and return the last snapshot of the session."""
    session = agent.session()
    follow(session)
    async with session:
        turn = await session.send(task)
        last = await session.finish()
        result = await turn
    print(result.answer)
    print(f"Final state: {last.state}, {last.stats.tool_calls} tool calls")
    return last


if __name__ == "__main__":
    data = Path(sys.argv[1])
    asyncio.run(
        process(
            Agent(
                mcp_servers={"processor": processor(data)},
                allowed_tools=["mcp__processor"],
                tools=[],
            ),
            f"Process all CSV files in {data} and generate a summary report",
        )
    )
