"""Who loads the room: only a session whose inbox is in a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, sys
from steersman import Agent, Inbox, Policy
from steersman.permissions import allow
from steersman.stores import SqliteStore
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI

async def main(path, **options):
    cli = ScriptedCLI(Script(call("Write", file_path="paid", content="x"), say("Paid.")))
    store = SqliteStore(path)
    if options.pop("is_stored"):
        options["inbox"] = store.inbox()
    async with asyncio.timeout(30), store, Agent(transport=cli, **options).session() as session:
        print((await session.run("pay")).text)

asyncio.run(main(sys.argv[1], {options}))
print(*sorted(name for name in sys.modules if name.startswith("steersman.durable")))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "is_loaded"),
    [
        ("is_stored=False", False),
        ("is_stored=False, inbox=Inbox(), policy=Policy(allow('Write'))", False),
        ("is_stored=True, policy=Policy(allow('Write'))", True),
    ],
    ids=["no inbox", "an inbox in memory", "an inbox in a store"],
)
def test_only_a_session_with_a_store_loads_what_makes_it_durable(
    tmp_path: Path, options: str, *, is_loaded: bool
) -> None:
    program = PROGRAM.replace("{options}", options)

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "work.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.startswith("Paid."), done.stderr
    assert ("steersman.durable.parking" in done.stdout) is is_loaded
    assert ("steersman.durable" in done.stdout) is is_loaded
