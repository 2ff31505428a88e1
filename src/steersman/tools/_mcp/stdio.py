"""An MCP server as a process of ours: lines of bounded length, read in linear time.

The client of the `mcp` package reads a line again for each part of it that arrives, and stops
reading for good at a byte that is no UTF-8.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import IO

from steersman import _json
from steersman.ports import JsonObject
from steersman.tools._mcp.package import Streams, as_plain, default_environment, message_of

CHUNK = 1 << 18
SHOWN = 1000
"""Bytes of both ends of a line that is too long, where its id is looked for."""
ENDING = 2.0
"""Seconds that a server has to exit after its input was closed, and again after SIGTERM."""


class LineTooLong(ValueError):
    """The server has written a line that is longer than is read."""

    def __init__(self, start: str, length: int, longest: int) -> None:
        super().__init__(
            f"the message has {length} bytes, and the limit is {longest}: RemoteLimits.result"
        )
        self._start = start

    def errors(self) -> list[JsonObject]:
        """Return what is known of the message, as pydantic does."""
        return [{"input": self._start}]


@asynccontextmanager
async def open_stdio(config: JsonObject, stderr: IO[str], longest: int) -> AsyncGenerator[Streams]:
    """Run a server as a process and connect to its stdin and stdout.

    A line of more than `longest` bytes is a `LineTooLong`. In the end the server and its process
    group have exited.
    """
    given: Mapping[str, str] = config.get("env") or {}
    process = await asyncio.create_subprocess_exec(
        config["command"],
        *config.get("args", ()),
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        env={**default_environment(), **given},
        cwd=config.get("cwd"),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield read_messages(process.stdout, longest), _Writer(process.stdin)
    finally:
        # A second cancellation must not leave the process.
        await asyncio.shield(asyncio.Task(_end(process)))


async def read_messages(stdout: asyncio.StreamReader, longest: int) -> AsyncIterator[object]:
    """Yield each line as a message of the package, or the `ValueError` that it is none."""
    line, length, end = bytearray(), 0, b""
    while chunk := await stdout.read(CHUNK):
        first, *others = chunk.split(b"\n")
        for index, piece in enumerate((first, *others)):
            if index:
                yield _read(line, length, end, longest)
                line, length, end = bytearray(), 0, b""
            length += len(piece)
            line += piece[: max(0, longest - len(line))]
            end = (end + piece[-SHOWN:])[-SHOWN:]


def _read(line: bytearray, length: int, end: bytes, longest: int) -> object:
    if length > longest:
        shown = bytes(line[:SHOWN]) + end
        return LineTooLong(shown.decode("utf-8", "replace"), length, longest)
    try:
        return message_of(line.decode("utf-8", "replace"))
    except ValueError as error:
        return error


class _Writer:
    """The `WriteStream` of a process."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def send(self, item: object, /) -> None:
        """Write one message."""
        self._stdin.write(_json.dump_line(as_plain(item)))
        await self._stdin.drain()

    async def aclose(self) -> None:
        """Close the input of the server."""
        self._stdin.close()


async def _end(process: Process) -> None:
    """Have the server exit: by the end of its input, by SIGTERM, by SIGKILL."""
    assert process.stdin is not None
    process.stdin.close()
    draining = asyncio.Task(_drain(process))
    exiting = asyncio.Task(process.wait())
    for number in (signal.SIGTERM, signal.SIGKILL):
        await asyncio.wait({exiting}, timeout=ENDING)
        if exiting.done():
            break
        _signal(process, number)
    # What it has started is in its process group, and may outlive it.
    _signal(process, signal.SIGKILL)
    await asyncio.wait({exiting, draining}, timeout=ENDING)
    draining.cancel()
    exiting.cancel()


async def _drain(process: Process) -> None:
    """Read what the server still writes, so that it is not kept from its exit."""
    assert process.stdout is not None
    with suppress(OSError):
        while await process.stdout.read(CHUNK):
            pass


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
