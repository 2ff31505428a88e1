"""Runs the fast tests of a room on mutants, and leaves no process behind.

Most mutants are run in a fork of a process that has collected the tests (`forking.py`), with only
the tests that enter the changed line. A mutant of what runs at import, and one that survives where
tests start programs, is written to a copy of the tree and gets a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.mutants.making import Mutant

FAST = "not live and not slow and not real and not soak"
NO_PROGRAMS = " and not process"
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
NOT_REPLACED = 77
COPIED = ("src", "tests", "packages")
SUBREAPER = 36
MOST_FAILED = 3
SLICE = 0.05
PATIENCE = 60.0
"""Seconds that a trial may take in any case; a busy machine is slow."""


@dataclass(frozen=True, slots=True)
class Room:
    """A part of the source, its fast tests, and the share of mutants that they must kill."""

    name: str
    tests: list[str]
    bar: float
    programs: bool = False


@dataclass(slots=True)
class Base:
    """What the tests of a room do with the code as it is."""

    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """For each file and line, the tests that enter it."""
    seconds: dict[str, float] = field(default_factory=dict)
    early: dict[str, set[int]] = field(default_factory=dict)
    """Lines that run before the first test."""
    wall: float = 0.0
    programs: list[str] = field(default_factory=list[str])
    """Tests that start a Python, which knows nothing of a function that is replaced here."""
    failed: set[str] = field(default_factory=set)
    """Tests that fail without a mutant, on a busy machine; they are left out."""


class Trial:
    """The tests of one room, ready to be run on mutants. Use it in a `with`."""

    def __init__(self, root: Path, room: Room) -> None:
        self._root, self._room = root, room
        self._on_exit = contextlib.ExitStack()
        self._forker: subprocess.Popen[bytes] | None = None
        self._clock = time.time() - 10_000_000
        self.base = Base()

    def __enter__(self) -> Self:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        with contextlib.ExitStack() as stack:
            self._copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
            for entry in self._root.iterdir():
                if entry.name in COPIED:
                    shutil.copytree(entry, self._copy / entry.name)
                elif not entry.name.startswith(".git"):
                    (self._copy / entry.name).symlink_to(entry)
            # Servers of tests run as another user, who must reach their files.
            self._copy.chmod(0o711)
            self._servers = self._copy / "servers"
            self._servers.mkdir()
            stack.callback(self._end)
            self._start()
            self._on_exit = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._on_exit.close()

    def run(self, mutant: Mutant) -> str:
        """Return whether the tests of the room notice a mutant."""
        file = str(self._root / mutant.file)
        span = range(mutant.first, mutant.last + 1)
        tests = self._tests_of(file, span)
        is_early = not mutant.function or any(n in self.base.early.get(file, ()) for n in span)
        code = NOT_REPLACED
        if not is_early:
            code = self._run_in_fork(mutant, tests) if tests else 0
        if code == NOT_REPLACED:
            code = self._run_in_copy(mutant, None if is_early or self._room.programs else tests)
        elif code == 0 and self.base.programs:
            code = self._run_in_copy(mutant, self.base.programs)
        if code in {0, 5}:
            return SURVIVED
        return TIMED_OUT if code in {-signal.SIGKILL, -signal.SIGXCPU} else KILLED

    def _tests_of(self, file: str, span: range) -> list[str]:
        lines = self.base.lines.get(file, {})
        found = {test for line in span for test in lines.get(line, ())}
        return sorted(found - self.base.failed, key=lambda test: self.base.seconds[test])

    def _start(self) -> None:
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        environment = self._environment(self._root)
        environment |= {"MUTANTS_ORDERS": str(orders), "MUTANTS_REPORTS": str(reports)}
        environment["MUTANTS_SOURCE"] = str(self._root / "src")
        environment["MUTANTS_ROOM"] = f"steersman.{self._room.name}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._forker = subprocess.Popen(
            [*self._pytest(), "-p", "tests.mutants.forking", *self._room.tests],
            cwd=self._root,
            env=environment,
            pass_fds=(orders, reports),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(reports)
        self._buffer = b""
        early = self._read(600)
        self.base.early = {file: set(lines) for file, lines in early["early"].items()}
        self._run_base()

    def _run_base(self) -> None:
        report = self._copy / "base.json"
        began = time.monotonic()
        code = self._order({"base": str(self._root / "src"), "report": str(report)}, 1800)
        if code != 0 or not report.exists():
            raise SystemExit(f"the base run ended with {code}:\n{self._output()}")
        self.base.wall = time.monotonic() - began
        found = json.loads(report.read_text())
        self.base.failed = set(found["failed"])
        if len(self.base.failed) > MOST_FAILED:
            raise SystemExit("these fail without a mutant: " + ", ".join(found["failed"]))
        self.base.seconds = found["seconds"]
        self.base.programs = found["programs"]
        self.base.lines = {
            file: {int(line): tests for line, tests in lines.items()}
            for file, lines in found["lines"].items()
        }

    def _output(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-4000:]

    def _run_in_fork(self, mutant: Mutant, tests: list[str]) -> int:
        seconds = sum(self.base.seconds[test] for test in tests)
        cpu = 5 + 10 * seconds
        # A test that hangs is ended after two minutes, but its clean-up may hang too.
        slowness = self.base.wall / max(sum(self.base.seconds.values()), 0.1)
        order = {
            "file": str(self._root / mutant.file),
            "source": mutant.source(),
            "function": mutant.function,
            "tests": tests,
            "cpu": cpu,
        }
        return self._order(order, 2 * PATIENCE + 5 * slowness * seconds)

    def _order(self, order: dict[str, Any], patience: float) -> int:
        with open(self._orders, "wb", closefd=False) as file:
            file.write(json.dumps(order).encode() + b"\n")
        pid = self._read(PATIENCE)["pid"]
        try:
            code = self._read(patience)["code"]
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            code = self._read(PATIENCE)["code"]
        self._kill_leftovers()
        return int(code)

    def _read(self, patience: float) -> dict[str, Any]:
        until = time.monotonic() + patience
        while b"\n" not in self._buffer:
            rest = until - time.monotonic()
            if rest <= 0:
                raise TimeoutError
            if not select.select([self._reports], [], [], min(rest, SLICE))[0]:
                self._reap()
                continue
            chunk = os.read(self._reports, 65536)
            if not chunk:
                raise SystemExit(f"the process with the tests has ended:\n{self._output()}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _reap(self, running: int = 0) -> None:
        """Reap orphans of tests that have ended: some tests wait until a process is gone."""
        mine = (running, self._forker.pid if self._forker is not None else 0)
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in mine:
                    return
                os.waitpid(ended.si_pid, 0)

    def _run_in_copy(self, mutant: Mutant, tests: list[str] | None) -> int:
        path = self._copy / mutant.file
        kept = path.read_bytes()
        chosen = tests if tests is not None and len(tests) <= 300 else self._by_name(path)
        seconds = sum(self.base.seconds.values())
        path.write_text(mutant.source())
        self._touch(path)
        process = subprocess.Popen(
            [*self._pytest(), "-x", *chosen, *(f"--deselect={each}" for each in self.base.failed)],
            cwd=self._copy,
            env=self._environment(self._copy),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return self._wait_for(process, PATIENCE + 20 * seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._kill_leftovers()
            path.write_bytes(kept)
            self._touch(path)

    def _wait_for(self, process: subprocess.Popen[bytes], patience: float) -> int:
        until = time.monotonic() + patience
        while time.monotonic() < until:
            try:
                return process.wait(SLICE)
            except subprocess.TimeoutExpired:
                self._reap(process.pid)
        return -signal.SIGKILL

    def _by_name(self, path: Path) -> list[str]:
        """Return all tests of the room, those that are named like the file first."""
        named = [
            str(found.relative_to(self._root))
            for tests in self._room.tests
            for found in sorted((self._root / tests).rglob(f"test_{path.stem}*.py"))
        ]
        return [*named, *self._room.tests]

    def _touch(self, path: Path) -> None:
        """Give a file a time of its own, so that no compiled form of another text is used."""
        self._clock += 10
        os.utime(path, (self._clock, self._clock))
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def _pytest(self) -> list[str]:
        marks = FAST if self._room.programs else FAST + NO_PROGRAMS
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks]

    def _environment(self, root: Path) -> dict[str, str]:
        path = os.pathsep.join(
            [str(root), str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        # As `make quick` runs them.
        quick = {"HYPOTHESIS_PROFILE": "quick", "STEERSMAN_SEEDS": "20"}
        if not self._room.programs:
            quick["STEERSMAN_QUICK"] = "1"
        quick["STEERSMAN_POSTGRES_FILES"] = str(self._servers)
        return os.environ | quick | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def _kill_leftovers(self) -> None:
        """Kill the programs that tests have left; they are children of this process then.

        The files of their servers go, too.
        """
        mine = self._forker.pid if self._forker is not None else 0
        while left := [pid for pid in _children(os.getpid()) if pid != mine]:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, 0)
        for folder in self._servers.glob("steersman-*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _end(self) -> None:
        os.close(self._orders)
        if self._forker is not None:
            try:
                self._forker.wait(5)
            except subprocess.TimeoutExpired:
                self._forker.kill()
                self._forker.wait()
            self._forker = None
        os.close(self._reports)
        self._kill_leftovers()


def _children(parent: int) -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                about = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
                if int(about[1]) == parent:
                    yield int(entry.name)
