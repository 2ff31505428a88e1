"""Lines of an MCP server's output become messages, however they are cut into pieces."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from steersman.tools._mcp.package import as_plain
from steersman.tools._mcp.stdio import LineTooLong, read_messages

LONGEST = 400


def response(number: int, text: str) -> bytes:
    body = {"jsonrpc": "2.0", "result": {"text": text}, "id": number}
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


LINES = [
    response(1, "é" * 20),
    b"a line of a log\n",
    b"\xff\xfe\n",
    response(2, "x" * LONGEST),
    response(3, "after them"),
]


async def read(pieces: list[bytes]) -> list[object]:
    stdout = asyncio.StreamReader()
    for piece in pieces:
        stdout.feed_data(piece)
    stdout.feed_eof()
    return [each async for each in read_messages(stdout, LONGEST)]


@given(size=st.integers(1, 700))
def test_each_line_is_a_message_or_says_why_it_is_none_whatever_the_pieces(size: int) -> None:
    stream = b"".join(LINES)

    async def read_in_pieces() -> list[object]:
        stdout = asyncio.StreamReader()
        found: list[object] = []

        async def collect() -> None:
            found.extend([each async for each in read_messages(stdout, LONGEST)])

        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            tasks.create_task(collect())
            for at in range(0, len(stream), size):
                stdout.feed_data(stream[at : at + size])
                await asyncio.sleep(0)
            stdout.feed_eof()
        return found

    first, noise, bad, long, last = asyncio.run(read_in_pieces())

    assert as_plain(first)["result"] == {"text": "é" * 20}
    assert isinstance(noise, ValueError)
    assert isinstance(bad, ValueError)
    assert isinstance(long, LineTooLong)
    assert f"the message has {len(LINES[3]) - 1} bytes, and the limit is {LONGEST}" in str(long)
    assert as_plain(last)["id"] == 3


async def test_the_id_of_a_line_that_is_too_long_is_found_at_its_end() -> None:
    (found,) = await read([response(7, "x" * 5000)])

    assert isinstance(found, LineTooLong)
    assert '"id": 7}' in str(found.errors()[0]["input"])


async def test_a_line_without_an_end_is_no_message() -> None:
    assert await read([b'{"jsonrpc": "2.0", "id": 1']) == []
