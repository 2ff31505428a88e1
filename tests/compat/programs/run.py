"""Runs programs in this process: `python -m tests.compat.programs.run PACKAGE CLI NAME...`.

Started by `playing`, with an environment that is built from nothing, because both packages hand
theirs on to the CLI. Writes the traces as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from tests.compat.programs.catalogue import Program, load
from tests.compat.programs.stage import Stage
from tests.compat.programs.traces import shown

SIDE_BY_SIDE = int(os.environ.get("SIDE_BY_SIDE", "4"))
LONGEST = 60.0
"""Seconds for one program."""


async def run(sdk: Any, cli: Path, program: Program) -> dict[str, Any]:
    """Run a program on a stage of its own, and return its trace."""
    with CliSandbox() as sandbox, ScriptedModel(program.script()) as model:
        stage = Stage(sdk, cli, sandbox, model)
        before = dict(os.environ)
        if program.alone:
            os.environ.update(sandbox.env(model.url))
        try:
            async with asyncio.timeout(LONGEST):
                await program.run(sdk, stage)
        except Exception as error:  # noqa: BLE001 - what it raises is what is compared
            stage.raised = shown(error)
        finally:
            if program.alone:
                os.environ.clear()
                os.environ.update(before)
        return stage.trace(await stage.close())


async def run_all(package: str, cli: Path, names: list[str]) -> dict[str, Any]:
    """Run programs side by side, those that need the process one after the other."""
    sdk = import_module(package)
    programs = [each for name, each in load().items() if not names or name in names]
    places = asyncio.Semaphore(SIDE_BY_SIDE)
    traces: dict[str, Any] = {}

    async def placed(program: Program) -> None:
        async with places:
            traces[program.name] = await run(sdk, cli, program)

    async with asyncio.TaskGroup() as group:
        for program in programs:
            if not program.alone:
                group.create_task(placed(program))
    for program in programs:
        if program.alone:
            await placed(program)
    return {program.name: traces[program.name] for program in programs}


def main() -> None:
    """Run the programs that the command line names, or all."""
    package, cli, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    traces = asyncio.run(run_all(package, Path(cli), names))
    sys.stdout.write(json.dumps(traces))


if __name__ == "__main__":
    main()
