"""The bridge under load: latency, CPU a frame and memory a viewer.

python -m benchmarks.web --sessions 100 --viewers 5 --rate 200 --seconds 10

The server runs in a process of its own, behind uvicorn. Entries are written to each session's
journal file and to its feed, as a session writes them; `--rate` is events per second of all
sessions together. Viewers are bare sockets in this process, because a client in Python would take
longer than the server. Each entry has the time at which it was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

TIME = re.compile(rb'"t":([0-9.]+)')
TEXT = "a few words of text that a model writes " * 3
GRACE = 2.0


# The server


async def serve(order: dict[str, Any]) -> None:
    """Run a bridge and write entries at the rate of the order."""
    import uvicorn  # noqa: PLC0415 - only the server needs it

    from steersman import Agent  # noqa: PLC0415 - as above
    from steersman.web import Bridge, WebLimits  # noqa: PLC0415 - as above

    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        limits = WebLimits(connections=100_000)
        bridge = Bridge(Agent(), journals=folder, limits=limits, token=order["token"])
        config = uvicorn.Config(
            bridge, log_level="warning", access_log=False, ws_per_message_deflate=False
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        inside: Any = bridge
        found = [
            inside._conversations.begin(None, "b", str(i), "")[0] for i in range(order["sessions"])
        ]
        unwatched = await _cpu_of_unwatched(order, Path(folder))
        _print(port=listener.getsockname()[1], sessions=[each.id for each in found])
        before = _memory()
        await _line()
        viewers = order["sessions"] * order["viewers"]
        _print(memory=(_memory() - before) / viewers)
        await _line()
        began = time.process_time()
        await _write(found, order, Path(folder))
        await asyncio.sleep(GRACE / 2)
        _print(cpu=time.process_time() - began, unwatched=unwatched)
        await _line()
        await bridge.aclose()
        await server.shutdown(sockets=[listener])


async def _cpu_of_unwatched(order: dict[str, Any], folder: Path) -> float:
    """Return the CPU seconds of the same entries without viewers, which a session needs anyhow."""
    from steersman.web.feed import Feed  # noqa: PLC0415 - only the server needs it

    names = [f"unwatched-{number}" for number in range(order["sessions"])]
    found = [Unwatched(name, Feed(name, folder / name, lambda _: None)) for name in names]
    began = time.process_time()
    await _write(found, order, folder)
    await asyncio.sleep(GRACE / 2)
    return time.process_time() - began


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A session without viewers."""

    id: str
    feed: Any


async def _write(found: list[Any], order: dict[str, Any], folder: Path) -> None:
    """Write entries to the file and the feed of each session in turn."""
    from steersman.journal import Entry, Kind  # noqa: PLC0415 - only the server needs it
    from steersman.stores import JournalFile  # noqa: PLC0415 - as above

    files = [JournalFile(folder / f"{each.id}.jsonl") for each in found]
    seqs = [0] * len(found)
    begin, count = time.monotonic(), 0
    total = round(order["rate"] * order["seconds"])
    while count < total:
        due = min(total, int((time.monotonic() - begin) * order["rate"]) + 1)
        while count < due:
            place = count % len(found)
            seqs[place] += 1
            line = b'{"type":"stream_event","t":%.6f,"text":"%b"}' % (
                time.monotonic(),
                TEXT.encode(),
            )
            entry = Entry(seqs[place], time.time(), Kind.PARTIAL, line, ("a-turn",))
            files[place].write([entry])
            found[place].feed.write([entry])
            count += 1
        await asyncio.sleep(max(0.001, 1 / order["rate"]))
    for each in files:
        each.close()


def _memory() -> int:
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * resource.getpagesize()


def _print(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


async def _line() -> None:
    await asyncio.to_thread(sys.stdin.readline)


# The viewers


class Viewer(asyncio.Protocol):
    """Follows one session; notes how old each entry is when it comes."""

    def __init__(self, request: bytes, follow: bytes, ages: list[float]) -> None:
        self._request = request
        self._follow = follow
        self._ages = ages
        self._is_open = False

    def connection_made(self, transport: Any) -> None:
        """Ask for the upgrade."""
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Follow after the first answer, and note the ages of entries in all others."""
        if not self._is_open:
            self._is_open = True
            self._transport.write(self._follow)
            return
        now = time.monotonic()
        for found in TIME.findall(data):
            self._ages.append(now - float(found))


async def measure(order: dict[str, Any]) -> dict[str, Any]:
    """Start the server and the viewers, and return the figures."""
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - this program, before anything is measured
        [sys.executable, "-m", "benchmarks.web", "--serve", json.dumps(order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    written, read = process.stdin, process.stdout
    assert written is not None
    assert read is not None

    async def heard() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await asyncio.to_thread(read.readline))
        return found

    def go() -> None:
        written.write("\n")
        written.flush()

    begun = await heard()
    ages: list[float] = []
    loop = asyncio.get_running_loop()
    transports: list[asyncio.BaseTransport] = []
    for session in begun["sessions"]:
        for _ in range(order["viewers"]):
            viewer = Viewer(_request(begun["port"], order["token"]), _follow(session), ages)
            transport, _ = await loop.create_connection(
                partial(_same, viewer), "127.0.0.1", begun["port"]
            )
            transports.append(transport)
    await asyncio.sleep(GRACE)
    go()
    memory = (await heard())["memory"]
    go()
    spent = await heard()
    await asyncio.sleep(GRACE / 2)
    go()
    process.wait(10)
    for each in transports:
        each.close()
    ages.sort()
    expected = round(order["rate"] * order["seconds"]) * order["viewers"]
    return {
        "frames": len(ages),
        "expected": expected,
        "frames a second": round(expected / order["seconds"]),
        "median ms": round(1000 * statistics.median(ages), 2),
        "p99 ms": round(1000 * ages[int(len(ages) * 0.99)], 2),
        "CPU µs a frame": round(1e6 * (spent["cpu"] - spent["unwatched"]) / len(ages), 1),
        "with the journal": round(1e6 * spent["cpu"] / len(ages), 1),
        "KB a viewer": round(memory / 1024, 1),
    }


def _same(viewer: Viewer) -> Viewer:
    return viewer


def _request(port: int, token: str) -> bytes:
    lines = ["GET /live HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {token}"]
    lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", ""]
    return "\r\n".join(lines).encode()


def _follow(session: str) -> bytes:
    frame = json.dumps({"type": "follow", "session": session, "after": 0}).encode()
    return bytes([0x81, 0x80 | len(frame), 0, 0, 0, 0]) + frame


def main() -> None:
    """Measure, or serve for a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--viewers", type=int, default=5)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(json.loads(chosen.serve)))
        return
    order = {name: getattr(chosen, name) for name in ("sessions", "viewers", "rate", "seconds")}
    figures = asyncio.run(measure({**order, "token": "benchmark"}))
    for name, value in figures.items():
        print(f"{name:>18}  {value}")


if __name__ == "__main__":
    main()
