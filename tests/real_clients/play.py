"""Runs one row in this process: `python [-m steersman.compat] -m tests.real_clients.play ROW CLI`.

Started by `test_real_clients`, in the environment that `install` made. Writes what the package has
recorded as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path

from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script
from tests.compat.programs.stage import Stage
from tests.real_clients.workload import STEPS, comparable

LONGEST = 90.0
"""Seconds for one row."""


async def play(name: str, cli: Path) -> object:
    """Run a row on a stage of its own."""
    row = import_module(f"tests.real_clients.rows.{name}")
    with CliSandbox() as sandbox, ScriptedModel(Script(*STEPS)) as model:
        stage = Stage(None, cli, sandbox, model)
        async with asyncio.timeout(LONGEST):
            record = await row.record(stage)
        return comparable(record, stage)


def main() -> None:
    """Run the row that the command line names."""
    name, cli = sys.argv[1:]
    found = asyncio.run(play(name, Path(cli)))
    # Packages print too.
    sys.stdout.write(f"\nrecord {json.dumps(found)}\n")


if __name__ == "__main__":
    main()
