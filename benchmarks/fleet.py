"""Measures a fleet on the stock CLI: sessions, memory, our own time a turn, and warm turns.

`python -m benchmarks.fleet` runs 200 conversations with 3 turns each on 4 slots; `python -m
benchmarks.fleet 20 2 3` fewer. The scripted model runs in a process of its own, so that our CPU
seconds are those of steersman. Prints one line per figure, with its bar.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

from steersman import Agent
from steersman.fleet import Fleet, FleetStatus, Governor
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.transports.kernel import below
from steersman.transports.locate import locate

WARM = 20
"""Turns on one warm session, beside as many on a plain one."""


def main(arguments: list[str]) -> int:
    """Measure and print; `model` as the only argument serves the model instead."""
    if arguments == ["model"]:
        with ScriptedModel() as model:
            print(model.url, flush=True)
            sys.stdin.read()
        return 0
    conversations, turns, slots = map(int, arguments or ("200", "3", "4"))
    command = [sys.executable, "-m", "benchmarks.fleet", "model"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with CliSandbox() as box, subprocess.Popen(command, text=True, **pipes) as model:  # type: ignore[call-overload]  # noqa: S603 - ourselves
        assert model.stdin is not None
        assert model.stdout is not None
        url = model.stdout.readline().strip()
        env = box.env(url, None)
        agent = Agent(inherit_env=False, cwd=box.project, cli_path=locate(None), env=env)
        try:
            asyncio.run(_measure(agent, conversations, turns, slots))
        finally:
            model.stdin.close()
    return 0


async def _measure(agent: Agent, conversations: int, turns: int, slots: int) -> None:
    async with Fleet(agent, slots=slots, governor=Governor(memory_free=0)) as fleet:
        began, cpu = time.perf_counter(), time.process_time()
        jobs = [
            await fleet.send(f"customer {number}", f"question {turn} of {number}")
            for turn in range(turns)
            for number in range(conversations)
        ]
        watching = asyncio.Task(_watch(fleet, len(jobs)))
        results = [await job for job in jobs]
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        most, memory, wrong, watched = await watching
    right = sum(
        each.text == f"Echo: question {number // conversations} of {number % conversations}"
        for number, each in enumerate(results)
    )
    print(f"right answers: {right} of {len(jobs)}")
    print(f"moments at which status() does not add up: {wrong}")
    _print("sessions at once, most", most, slots)
    _print("memory of all CLIs, most, MB", memory, 1000)
    _print("our own CPU a turn, ms", 1000 * (cpu - watched) / len(jobs), 50)
    print(f"a turn, s: {took / len(jobs):.2f} ({len(jobs)} in {took:.0f} s)")
    await _warm(agent)


async def _watch(fleet: Fleet, sent: int) -> tuple[int, float, int, float]:
    """Return the most sessions, the most memory in MB, how often the status was wrong; and our CPU.

    That of this function, in seconds: it is not the fleet's.
    """
    most, memory, wrong, looks, cpu = 0, 0.0, 0, 0, 0.0
    while True:
        before = time.thread_time()
        status = fleet.status()
        most = max(most, status.slots - status.free)
        wrong += not _adds_up(status)
        cpu += time.thread_time() - before
        if status.settled >= sent:
            return most, memory, wrong, cpu
        looks += 1
        if looks % 10 == 0:
            found, spent = await asyncio.to_thread(_memory, _own_pid())
            memory, cpu = max(memory, found), cpu + spent
        await asyncio.sleep(0.1)


def _adds_up(status: FleetStatus) -> bool:
    jobs = status.queued + status.held + status.running + status.parked + status.settled
    idle = status.warm + status.ready + status.starting + status.closing + status.free
    return jobs == status.sent and status.working + idle == status.slots


def _own_pid() -> int:
    """Return the id of this process."""
    return int(Path("/proc/self").readlink().name)


def _memory(parent: int) -> tuple[float, float]:
    """Return the MB of the CLIs below a process, shared pages counted once, and our CPU seconds."""
    before, total = time.thread_time(), 0
    for pid in (row[0] for row in below(parent)):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        if b"stream-json" in command:
            total += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return total / 1000, time.thread_time() - before


async def _warm(agent: Agent) -> None:
    """Compare turns of a warm session of a fleet with those of a plain session."""
    plain, warm = list[float](), list[float]()
    one = Fleet(agent, slots=1, governor=Governor(memory_free=0))
    async with one as fleet, agent.session() as session:
        await session.run("begin")
        await (await fleet.send("warm", "begin"))
        for number in range(WARM):
            before = time.perf_counter()
            await session.run(f"question {number}")
            plain.append(time.perf_counter() - before)
            before = time.perf_counter()
            await (await fleet.send("warm", f"question {number}"))
            warm.append(time.perf_counter() - before)
    bar = 1000 * statistics.median(plain)
    _print("a warm turn of a fleet, median, ms", 1000 * statistics.median(warm), bar)


def _print(what: str, figure: float, bar: float) -> None:
    print(f"{what}: {figure:,.1f} (bar {bar:,.1f})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
