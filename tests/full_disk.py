"""A full disk that has room again later: a small one, if root may mount it, or a limit of files."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

FullDisk = Callable[[], AbstractContextManager[None]]
"""Has no room for what is written meanwhile."""


@contextmanager
def without_room(size: int) -> Generator[None, None, None]:
    """No file of this process may grow beyond `size`, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handled)


@pytest.fixture(params=["disk", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[tuple[Path, FullDisk]]:
    """A folder, and what fills its disk."""
    if request.param == "limit":
        yield tmp_path, lambda: without_room(_largest(tmp_path))
        return
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "steersman-test", place],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place, lambda: _filled(place)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, timeout=20)


def _largest(folder: Path) -> int:
    return max((path.stat().st_size for path in folder.rglob("*.jsonl")), default=0)


@contextmanager
def _filled(place: Path) -> Generator[None, None, None]:
    filler = place / "filler"
    number = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (4096, 1):
            try:
                while True:
                    os.write(number, b"x" * size)
            except OSError:
                continue
        yield
    finally:
        os.close(number)
        filler.unlink()
