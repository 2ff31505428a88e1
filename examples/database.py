"""A database that Claude can read but not write: SQLite itself refuses.

Run it with `python examples/database.py [app.db]`; it uses your own login. Without a file it
makes a small database.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from steersman import Agent, Toolbox, ToolContext, tool
from steersman.tools import Resource, ToolError

MOST_ROWS = 200
STEPS = 10_000
"""After this many steps SQLite checks whether the tool call was cancelled."""


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    """Open a database read-only, and without access to other files."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.row_factory = sqlite3.Row
        yield connection
    finally:
        connection.close()


def database(path: Path) -> Toolbox:
    """Return a toolbox for one database: a tool for queries, and its schema as a resource."""

    @tool(read_only=True, timeout=10)
    def query(
        context: ToolContext,
        sql: Annotated[str, "one statement, with ? for each parameter"],
        params: Annotated[list[Any] | None, "the values for the question marks"] = None,
    ) -> Any:
        """Execute a read-only SQL query."""
        with opened(path) as connection:
            connection.set_progress_handler(lambda: context.is_cancelled, STEPS)
            try:
                rows = connection.execute(sql, params or ()).fetchmany(MOST_ROWS)
            except sqlite3.Error as error:
                raise ToolError(f"Query error: {error}") from error
        return {"rows": [dict(row) for row in rows]}

    def schema() -> str:
        with opened(path) as connection:
            tables = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
            return "\n".join(row["sql"] for row in tables)

    return Toolbox("database", [query], resources=[Resource("db://schema", schema, "schema")])


def make_sample(path: Path) -> None:
    """Make a small database."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INTEGER)")
        connection.executemany(
            "INSERT INTO users (name, age) VALUES (?, ?)",
            [("Ada", 36), ("Alan", 41), ("Grace", 85)],
        )
    connection.close()


async def ask(agent: Agent, question: str) -> str:
    """Ask Claude about the data, and return the answer."""
    return (await agent.run(question)).text


def main() -> None:
    """Ask about the file that was named, or about the sample."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "app.db"
        if not path.exists():
            make_sample(path)
        agent = Agent(
            mcp_servers={"db": database(path)},
            allowed_tools=["mcp__db"],
            tools=["ListMcpResourcesTool", "ReadMcpResourceTool"],
        )
        print(asyncio.run(ask(agent, "Who in the users table is older than 40?")))


if __name__ == "__main__":
    main()
