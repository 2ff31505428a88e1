"""Python programs beside a test, which answer on their own lines."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


@asynccontextmanager
async def running(text: str, *arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run the program `text`; it is killed in the end, if it has not exited."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", text, *arguments), stdin=pipe, stdout=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line_of(process: asyncio.subprocess.Process) -> str:
    """The next line that the program writes."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()
