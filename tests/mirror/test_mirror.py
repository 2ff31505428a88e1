"""A store gets what the CLI writes, whatever the store does meanwhile; in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from steersman._background import BackgroundTasks
from steersman.mirror.comparing import FileComparer
from steersman.mirror.mirror import CLOSING, MOST_WAITING, StoreMirror
from steersman.mirror.queue import MirrorKeys
from steersman.testing.faults import VirtualClockLoop
from steersman.transcripts.keys import SessionKey
from tests.keeping_store import Fault, KeepingStore, healthy

LOG = logging.getLogger("steersman.tests")
ID = "70394432-1c03-4518-94bc-f71433d629d1"
MAIN = f"-p/{ID}"
SUB = f"-p/{ID}/subagents/agent-a1"


async def here(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function that reads files, without a thread: virtual time does not wait for one."""
    return function(*given)


async def passes(seconds: float) -> None:
    """Let virtual time pass."""
    is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, is_over.set)
    await is_over.wait()


class Play:
    """A CLI that writes files, the mirror, and a store."""

    def __init__(
        self, root: Path, fault: Fault = healthy, *, eager: bool = False, far: bool = False
    ) -> None:
        self.store = KeepingStore(fault)
        self.is_quiet = False
        self.errors: list[tuple[str, SessionKey | None]] = []
        self.root = root / "projects"
        self.defects: list[Exception] = []
        """What the next reports raise."""
        self.unsent: list[bytes] = []
        self.background = BackgroundTasks(LOG)
        self.mirror = StoreMirror(
            self.store,
            is_eager=eager,
            files=None if far else FileComparer(self.store, 60.0, here),
            is_quiet=lambda: self.is_quiet,
            report=self._report,
            background=self.background,
        )
        self._numbers = 0

    def _report(self, error: str, key: SessionKey | None) -> None:
        self.errors.append((error, key))
        if self.defects:
            raise self.defects.pop(0)

    def entry(self, kind: str = "user", **fields: Any) -> dict[str, Any]:
        """Return an entry with a uuid of its own."""
        self._numbers += 1
        return {"type": kind, "uuid": f"uuid-{self._numbers}", **fields}

    def write(self, *entries: dict[str, Any], name: str = MAIN, sends: bool = True) -> None:
        """Write entries to a file, and report them."""
        path = self.root / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in entries)
        told = [each for each in entries if not each["type"].startswith("api-request")]
        frame = {"type": "transcript_mirror", "filePath": str(path), "entries": told}
        self.unsent.append(json.dumps(frame, separators=(",", ":")).encode())
        if sends:
            self.send()

    def send(self, most: int = 1000) -> None:
        """Report what was written and not reported."""
        now, self.unsent = self.unsent[:most], self.unsent[most:]
        for frame in now:
            self.mirror.received(frame)

    def written(self, name: str = MAIN) -> list[dict[str, Any]]:
        """Return the file, without what the CLI does not report."""
        lines = map(json.loads, (self.root / f"{name}.jsonl").read_text().splitlines())
        return [each for each in lines if not each["type"].startswith("api-request")]


def in_virtual_time(play: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(100_000):
            await play()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(bounded())


def gone_until(seconds: float, *, hangs: bool = False) -> Fault:
    """Return the fault of a store that is away for so long."""

    def fault(_number: int) -> BaseException | float | None:
        if asyncio.get_running_loop().time() >= seconds:
            return None
        return 100_000.0 if hangs else ConnectionError("no route")

    return fault


def test_a_defect_in_the_mirror_loses_no_entries(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.defects = [RuntimeError("the report has failed")]
        stage.write(stage.entry(), name="no session file")
        stage.write(stage.entry())
        stage.mirror.flush()
        await passes(0.1)
        assert stage.background.faults == {
            "the mirror of the conversation": "RuntimeError: the report has failed"
        }

        stage.write(stage.entry())
        stage.is_quiet = True
        stage.mirror.flush()
        await passes(60)

        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_entries_wait_for_the_result_of_the_turn(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.write(stage.entry())
        stage.write(stage.entry(), {"type": "api-request"}, stage.entry())
        await passes(10)
        assert stage.store.appends == []

        stage.mirror.flush()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert stage.store.appends == [3]
        assert stage.store.kept[MAIN] == stage.written()
        assert await stage.mirror.close()
        assert stage.errors == []

    in_virtual_time(play)


def test_a_full_batch_does_not_wait_and_none_is_larger(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.write(*[stage.entry() for _ in range(1200)])
        await passes(1)
        assert stage.store.appends == [500, 500, 200]

        stage.write(stage.entry(text="x" * 700_000))
        await passes(1)
        assert len(stage.store.appends) == 3
        stage.write(stage.entry(text="y" * 700_000))
        await passes(1)

        assert stage.store.appends[3:] == [1, 1]
        assert await stage.mirror.close()
        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_eager_appends_each_report(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, eager=True)
        for _ in range(3):
            stage.write(stage.entry())
            await passes(0.01)

        assert stage.store.appends == [1, 1, 1]
        assert await stage.mirror.close()

    in_virtual_time(play)


def test_three_attempts_with_pauses_between(tmp_path: Path) -> None:
    async def play() -> None:
        at: list[float] = []

        def fault(number: int) -> BaseException | None:
            at.append(round(asyncio.get_running_loop().time(), 3))
            return ConnectionError("no") if number < 3 else None

        stage = Play(tmp_path, fault, eager=True)
        stage.write(stage.entry())
        await passes(5)

        assert at == [0.0, 0.2, 1.0]
        assert stage.errors == []
        assert await stage.mirror.close()

    in_virtual_time(play)


def test_a_time_out_is_not_repeated(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(50, hangs=True), eager=True)
        stage.write(stage.entry())
        await passes(59.9)
        assert stage.errors == []

        await passes(0.2)

        assert stage.store.appends == [1]
        ((error, key),) = stage.errors
        assert "did not take 1 entries: TimeoutError" in error
        assert key == {"project_key": "-p", "session_id": ID}
        stage.is_quiet = True
        await passes(1)
        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_after_a_failure_the_file_is_compared_when_no_turn_runs(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(60))
        latch = {"type": "atis-latch", "atis": True}
        stage.write(latch, stage.entry(), latch)
        stage.mirror.flush()
        await passes(30)
        stage.write(stage.entry("assistant"), latch, {"type": "api-request-blob"})
        stage.write({"type": "cost-state", "totalCostUSD": 1.0})
        stage.mirror.flush()
        await passes(40)
        assert stage.store.kept == {}
        assert len(stage.errors) == 1
        assert "is compared with the store when no turn runs" in stage.errors[0][0]

        stage.is_quiet = True
        await passes(60)

        assert stage.store.kept[MAIN] == stage.written()
        stage.is_quiet = False
        stage.write(latch, stage.entry())
        stage.mirror.flush()
        assert await stage.mirror.close()
        assert stage.store.kept[MAIN] == stage.written()
        assert len(stage.errors) == 1

    in_virtual_time(play)


def test_entries_that_the_file_had_before_they_were_reported_are_not_doubled(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(3), eager=True)
        latch = {"type": "atis-latch", "atis": True}
        stage.write(stage.entry(), latch)
        await passes(5)
        stage.write(latch, stage.entry(), latch, sends=False)

        stage.is_quiet = True
        await passes(5)
        assert stage.store.kept[MAIN] == stage.written()
        stage.send()
        stage.write(latch)
        await passes(5)

        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_subagents_and_what_they_are_are_compared_too(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(20))
        stage.write(stage.entry())
        meta = {"agentType": "general-purpose", "toolUseId": "t1"}
        stage.write(stage.entry(), name=SUB)
        told = {"type": "agent_metadata", **meta}
        path = stage.root / f"{SUB}.jsonl"
        frame = {"type": "transcript_mirror", "filePath": str(path), "entries": [told]}
        stage.mirror.received(json.dumps(frame).encode())
        path.with_name("agent-a1.meta.json").write_text(json.dumps(meta))
        stage.mirror.flush()
        await passes(21)

        assert await stage.mirror.close()

        assert stage.store.kept == {MAIN: stage.written(), SUB: [*stage.written(SUB), told]}

    in_virtual_time(play)


def test_a_lost_cli_may_have_written_more_than_it_reported(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.write(stage.entry(), {"type": "last-prompt"})
        stage.write(stage.entry(), {"type": "last-prompt"}, sends=False)
        stage.unsent.clear()
        stage.mirror.lost_sight(at_once=True)
        await passes(1)

        assert stage.store.kept[MAIN] == stage.written()
        stage.write({"type": "last-prompt"})
        assert await stage.mirror.close()
        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_a_lost_cli_may_have_reported_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.write(stage.entry(), {"type": "last-prompt"}, sends=False)
        stage.unsent.clear()
        stage.mirror.lost_sight(at_once=True)
        await passes(1)
        assert stage.store.kept == {}

        stage.write(stage.entry())

        assert await stage.mirror.close()
        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


@pytest.mark.parametrize("place", ["here", "far"])
def test_a_store_that_hangs_does_not_fill_the_memory(tmp_path: Path, place: str) -> None:
    far = place == "far"

    async def play() -> None:
        stage = Play(tmp_path, gone_until(70, hangs=True), far=far)
        big = MOST_WAITING // 20
        for _ in range(30):
            stage.write(stage.entry(text="x" * big))
            await passes(0.1)
            assert stage.mirror.waiting <= MOST_WAITING
        assert any("too slow" in error for error, _ in stage.errors)

        await passes(100)

        assert await stage.mirror.close() is not far
        if not far:
            assert stage.store.kept[MAIN] == stage.written()
        assert far == any("stay missing" in error for error, _ in stage.errors)

    in_virtual_time(play)


def test_far_files_cannot_be_compared_and_the_error_says_so(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, lambda number: OSError("no") if number <= 3 else None, far=True)
        stage.write(stage.entry())
        stage.mirror.flush()
        await passes(2)
        stage.write(stage.entry())

        assert await stage.mirror.close() is False

        ((error, _),) = stage.errors
        assert "the CLI's files are not on this machine" in error
        assert stage.store.kept[MAIN] == stage.written()[1:]

    in_virtual_time(play)


def test_the_close_is_bounded_and_reports_what_is_missing(tmp_path: Path) -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        stage = Play(tmp_path, gone_until(1000, hangs=True))
        stage.write(stage.entry())
        began = loop.time()

        assert await stage.mirror.close() is False

        assert loop.time() - began == pytest.approx(CLOSING)
        assert (
            "the next session that opens the conversation here appends them" in stage.errors[-1][0]
        )

    in_virtual_time(play)


def test_a_close_waits_for_a_store_that_comes_back(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(6))
        stage.write(stage.entry(), {"type": "last-prompt"})

        assert await stage.mirror.close()

        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_a_cancelled_task_loses_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, gone_until(5, hangs=True), eager=True)
        stage.write(stage.entry(), {"type": "last-prompt"})
        await passes(1)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await passes(5)

        assert await stage.mirror.close()

        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


def test_a_file_outside_of_projects_is_reported_once(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path, eager=True)
        for _ in range(2):
            frame = {
                "type": "transcript_mirror",
                "filePath": "/x/y.jsonl",
                "entries": [{"type": "a"}],
            }
            stage.mirror.received(json.dumps(frame).encode())
            await passes(1)
        stage.mirror.received(b'{"type":"transcript_mirror","entries":7}')

        await stage.mirror.close()

        assert ["/x/y.jsonl" in error for error, _ in stage.errors] == [True, False]
        assert "cannot be read" in stage.errors[1][0]

    in_virtual_time(play)


def test_half_of_a_surrogate_pair_is_mirrored(tmp_path: Path) -> None:
    async def play() -> None:
        stage = Play(tmp_path)
        stage.write(stage.entry(text="\ud800"), {"type": "last-prompt", "lastPrompt": "\udfff"})
        assert await stage.mirror.close()
        assert stage.store.kept[MAIN] == stage.written()

    in_virtual_time(play)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/h/.claude/projects/-p/" + ID + ".jsonl", ("-p", ID, None)),
        ("/projects/projects/-p/" + ID + ".jsonl", ("-p", ID, None)),
        (f"/h/projects/-p/{ID}/subagents/w/agent-1.jsonl", ("-p", ID, "subagents/w/agent-1")),
        (f"/private/{ID}.jsonl", ("-q", ID, None)),
        (f"/private/{ID}/subagents/agent-1.jsonl", ("-q", ID, "subagents/agent-1")),
        (f"/h/projects/-p/{ID}/../x.jsonl", None),
        (f"/h/projects/-p/{ID}", None),
        ("/h/projects/-p/notes.jsonl", None),
        (f"/elsewhere/{ID}.jsonl", None),
    ],
)
def test_files_have_keys(path: str, key: tuple[str, str, str | None] | None) -> None:
    keys = MirrorKeys()
    keys.open(f"/private/{ID}.jsonl", {"project_key": "-q", "session_id": ID})

    found = keys.find(path)

    as_tuple = found and (found["project_key"], found["session_id"], found.get("subpath"))
    assert as_tuple == key


KINDS = ("last-prompt", "atis-latch", "mode")


async def drawn_session(stage: Play, draw: random.Random) -> None:
    """Write, report, fail, be lost, be quiet: in any order."""
    for _ in range(draw.randint(3, 30)):
        match draw.choice(("write", "write", "write", "send", "result", "quiet", "lost", "wait")):
            case "write":
                entries = [
                    stage.entry() if draw.random() < 0.5 else {"type": draw.choice(KINDS)}
                    for _ in range(draw.randint(1, 4))
                ]
                if draw.random() < 0.3:
                    entries.insert(0, {"type": "api-request-shape"})
                name = draw.choice((MAIN, MAIN, SUB))
                stage.write(*entries, name=name, sends=False)
                stage.send(draw.randint(0, 3))
            case "send":
                stage.send()
            case "result":
                stage.mirror.flush()
            case "quiet":
                stage.is_quiet = True
                await passes(draw.choice((0.0, 0.3, 5.0)))
                stage.is_quiet = False
            case "lost":
                # Reported up to some point, and the rest is lost with the process.
                stage.send(draw.randint(0, 2))
                stage.unsent.clear()
                stage.mirror.lost_sight(at_once=True)
                await passes(draw.choice((0.0, 2.0)))
            case _:
                await passes(draw.choice((0.0, 0.1, 1.5, 70.0)))
    stage.send()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_fails_the_store_is_equal_to_the_files_in_the_end(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)

    async def play() -> None:
        is_over = False

        def fault(number: int) -> BaseException | float | None:
            if is_over:
                return None
            return draw.choice(
                (None, None, ConnectionError("no"), 90.0 if number % 5 == 0 else 0.5)
            )

        stage = Play(tmp_path, fault, eager=draw.random() < 0.5)
        stage.write(stage.entry())
        with suppress(ConnectionError):
            await drawn_session(stage, draw)
        is_over = True
        await passes(100)

        assert await stage.mirror.close()

        names = [each for each in (MAIN, SUB) if (stage.root / f"{each}.jsonl").exists()]
        assert stage.store.kept == {name: stage.written(name) for name in names}

    in_virtual_time(play)
