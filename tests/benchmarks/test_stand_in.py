from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contestants.measuring import Order
from benchmarks.contestants.ours import open_ours
from benchmarks.entrants import pythons, run_order
from benchmarks.rows import BARE, OFFICIAL, OURS
from benchmarks.stand_in.build import stand_in

INITIALIZE = (
    '{"type":"control_request","request_id":"r1","request":{"subtype":"initialize",'
    '"hooks":{"PreToolUse":[{"hookCallbackIds":["hook_0"]}]},"sdkMcpServers":["bench"]}}'
)
ANSWER = (
    '{"type":"control_response","response":{"subtype":"success","request_id":"x","response":%s}}'
)
ANSWERS = {
    "can_use_tool": ANSWER % '{"behavior":"allow","updatedInput":{"content":"hello"}}',
    "hook_callback": ANSWER % "{}",
    "mcp_message": ANSWER % '{"mcp_response":{"result":{"content":[]}}}',
}
KINDS = (
    *("partial", "trickle", "stamped", "assistant"),
    *("permission", "hook", "tool", "mixed", "backlog"),
)
STAMP = re.compile(r'"text":"\d+"')

has_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler is installed")


def prompt(kind: str, count: int = 3, window: int = 2) -> str:
    text = f"bench {kind} {count} 40 {window}"
    return f'{{"type":"user","uuid":"u-1","message":{{"role":"user","content":"{text}"}}}}'


def replies(line: str, kind: str) -> Iterator[str]:
    """Yield the lines that a host writes after a line: answers to requests, and the prompt."""
    if '"subtype":"success","request_id":"r1"' in line:
        yield prompt(kind)
    yield from (answer for asked, answer in ANSWERS.items() if f'"subtype":"{asked}"' in line)


async def conversation(program: Path, kind: str) -> list[str]:
    """Return all lines that a stand-in writes in one turn."""
    process = await asyncio.create_subprocess_exec(
        program,
        "--replay-user-messages",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", "PATH": "/usr/bin:/bin"},
        limit=1 << 20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{INITIALIZE}\n".encode())
    lines: list[str] = []
    async with asyncio.timeout(30):
        while not lines or '"state":"idle"' not in lines[-1]:
            lines.append((await process.stdout.readline()).decode())
            assert lines[-1]
            for reply in replies(lines[-1], kind):
                process.stdin.write(f"{reply}\n".encode())
        process.stdin.close()
        assert await process.wait() == 0
    return lines


@has_compiler
@pytest.mark.parametrize("kind", KINDS)
async def test_both_stand_ins_write_the_same_bytes(kind: str) -> None:
    compiled, interpreted = [stand_in(compiled=each) for each in (True, False)]

    first, second = [await conversation(each, kind) for each in (compiled, interpreted)]

    assert [STAMP.sub("a time", line) for line in first] == [
        STAMP.sub("a time", line) for line in second
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_our_turns_settle_on_it(kind: str) -> None:
    order = Order(program=str(stand_in()), kind=kind, count=5, window=3)

    async with asyncio.timeout(30):
        talk = await open_ours(order, asyncio.Event())
        weights = [await talk.turn(order.prompt) for _ in range(2)]
        await talk.close()

    messages = {"partial": 6, "trickle": 6, "assistant": 5, "backlog": 5}.get(kind, 0)
    if kind == "stamped":
        # Nanoseconds between writing and reading, of five messages.
        assert all(0 < each < 5 * 30e9 for each in weights)
        return
    assert weights == [messages * order.size] * 2


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=has_compiler), False])
async def test_the_messages_of_a_trickle_are_as_far_apart_as_asked(*, compiled: bool) -> None:
    order = Order(program=str(stand_in(compiled=compiled)), kind="trickle", count=5, window=20_000)

    async with asyncio.timeout(30):
        talk = await open_ours(order, asyncio.Event())
        began = time.monotonic()
        await talk.turn(order.prompt)
        took = time.monotonic() - began
        await talk.close()

    assert took >= 5 * 0.020


@pytest.mark.parametrize("reading", ["typed", "text"])
async def test_typed_messages_and_text_have_the_same_length(reading: str) -> None:
    order = Order(program=str(stand_in()), kind="assistant", count=4, reading=reading)

    async with asyncio.timeout(30):
        talk = await open_ours(order, asyncio.Event())
        weight = await talk.turn(order.prompt)
        await talk.close()

    between = 3 * len("\n\n") if reading == "text" else 0
    assert weight == 4 * order.size + between


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=has_compiler), False])
@pytest.mark.parametrize(
    ("kind", "answer", "complaint"),
    [
        ("permission", '{"type":"control_response","response":{"error":"no"}}', "an error for"),
        ("permission", ANSWERS["hook_callback"], "no request is open for this answer"),
        ("tool", ANSWERS["can_use_tool"], "no request is open for this answer"),
        ("mixed", "\n".join([ANSWERS["mcp_message"]] * 2), "no request is open for this answer"),
    ],
)
async def test_an_answer_without_a_request_ends_it(
    kind: str, answer: str, complaint: str, *, compiled: bool
) -> None:
    process = await asyncio.create_subprocess_exec(
        stand_in(compiled=compiled),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )

    initialize = INITIALIZE.replace(',"sdkMcpServers":["bench"]', "")
    lines = "\n".join([initialize, prompt(kind), answer, ""])
    async with asyncio.timeout(30):
        _, stderr = await process.communicate(lines.encode())

    assert process.returncode == 3
    assert complaint in stderr.decode()


@pytest.mark.parametrize("name", [OFFICIAL, BARE, OURS])
@pytest.mark.parametrize("kind", ["trickle", "mixed"])
def test_every_python_contestant_runs_an_order(name: str, kind: str) -> None:
    order = {"program": str(stand_in()), "kind": kind, "count": 4, "window": 4, "warm": 2}

    report: dict[str, Any] = run_order(pythons()[name], order)

    assert (report["note"], report["items"]) == ("", 4)
    assert report["weight"] == (200 if kind == "trickle" else 0)
    assert report["cpu"] > 0


async def test_a_journal_on_disk_is_written_and_removed() -> None:
    order = Order(program=str(stand_in()), count=50, journal=True)

    async with asyncio.timeout(30):
        talk = await open_ours(order, asyncio.Event())
        await talk.turn(order.prompt)
        written = size_of(talk.journal)
        await talk.close()

    assert written > order.count * order.size
    assert size_of(talk.journal) == 0


def size_of(file: Path | None) -> int:
    return file.stat().st_size if file and file.exists() else 0


async def test_a_request_behind_unread_messages_is_answered() -> None:
    order = Order(program=str(stand_in()), kind="backlog", count=2_000, size=200)
    asked = asyncio.Event()

    async with asyncio.timeout(30):
        talk = await open_ours(order, asked)
        await talk.send(order.prompt)
        await asked.wait()
        await talk.close()

    assert asked.is_set()
