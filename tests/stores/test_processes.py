"""Session stores that several processes use, and that are killed, or run out of space."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stores.writing import BATCH, KEY, batch_of, make

pytestmark = pytest.mark.process


@pytest.fixture(params=["directory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A kind of store, and where it is."""
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres_url")
    return request.param, str(tmp_path / "place")


def test_processes_that_write_at_once_lose_nothing(place: tuple[str, str]) -> None:
    names, count = "abc", 20
    writers = [start(*place, name, count) for name in names]

    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    found = asyncio.run(load(*place))

    for name in names:
        wanted = [entry for number in range(count) for entry in batch_of(name, number)]
        mine = [each for each in found if str(each.get("uuid") or each["tag"]).startswith(name)]
        assert mine == wanted
    # Batches are not mixed.
    assert len(found) == len(names) * count * BATCH
    for at in range(0, len(found), BATCH):
        tag = found[at + BATCH - 1]["tag"]
        assert all(each["uuid"].startswith(tag) for each in found[at : at + BATCH - 1])


def test_a_writer_that_is_killed_leaves_whole_batches(place: tuple[str, str]) -> None:
    told: list[list[str]] = []
    for name in "abc":
        with start(*place, name, 100_000) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(12)]
            writer.kill()
            told.append([*lines, *writer.stdout.read().splitlines()])

    found = asyncio.run(load(*place))
    for name, lines in zip("abc", told, strict=True):
        mine = [each for each in found if str(each.get("uuid") or each["tag"]).startswith(name)]
        whole = [entry for n in range(len(mine) // BATCH) for entry in batch_of(name, n)]
        assert mine == whole
        assert len(mine) // BATCH >= len([line for line in lines if line.startswith("stored")])


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path, kind: str) -> None:
    place = str(tmp_path / "place")
    with start(kind, place, "a", 100, limit=400_000) as writer:
        assert writer.stdout is not None
        lines = writer.stdout.read().splitlines()
        assert writer.wait(30) == 0

    assert lines[-1].startswith("failed")
    found = asyncio.run(load(kind, place))
    assert found == [
        entry for number in range(len(lines) - 1) for entry in batch_of("a", number, 20_000)
    ]


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_writer_that_dies_in_the_middle_of_a_batch_leaves_nothing_of_it(
    tmp_path: Path, kind: str
) -> None:
    place = str(tmp_path / "place")
    with start(kind, place, "a", 100, 450_000, "dies") as writer:
        assert writer.stdout is not None
        count = len(writer.stdout.read().splitlines())
        assert writer.wait(30) == -signal.SIGXFSZ

    stored = [entry for number in range(count) for entry in batch_of("a", number, 20_000)]
    assert asyncio.run(load(kind, place)) == stored
    with start(kind, place, "b", 1) as writer:
        assert writer.wait(30) == 0
    assert asyncio.run(load(kind, place)) == [*stored, *batch_of("b", 0)]


def test_a_program_ends_although_it_has_not_closed_its_store(place: tuple[str, str]) -> None:
    with start(*place, "a", 1, 0, "leaves it open") as writer:
        try:
            assert writer.wait(60) == 0
        finally:
            writer.kill()

    assert asyncio.run(load(*place)) == batch_of("a", 0)


def start(
    kind: str, place: str, name: str, count: int, limit: int = 0, *how: str
) -> subprocess.Popen[str]:
    arguments = [kind, place, name, str(count), str(limit), *how]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.writing", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]},
    )


async def load(kind: str, place: str) -> list[Any]:
    async with make(kind, place) as store:
        return await store.load(KEY) or []
