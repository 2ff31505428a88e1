"""A pytest plugin that collects the tests once and runs some of them for each mutant, in a fork.

`python -m pytest -p tests.mutants.forking ...`; the environment names two descriptors. Orders come
as lines of JSON, reports go back in the same way. The first order is the base run: every test, with
the lines that it enters. In each later one the code of one function is replaced before the tests
run. What this cannot show (a function that has run before, a table of a module) is reported as
such, and a process of its own then runs the tests on the changed file.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

ORDERS, REPORTS = "MUTANTS_ORDERS", "MUTANTS_REPORTS"
SOURCE, ROOM = "MUTANTS_SOURCE", "MUTANTS_ROOM"
MEMORY = 4 * 1024**3
KILLED, SURVIVED, NOT_REPLACED = 1, 0, 77
DEATH_SIGNAL = 1


_measured = coverage.Coverage(
    data_file=None, include=[f"{os.environ[SOURCE]}/*"], config_file=False
)
_measured.start()


class Failed:
    """Remembers whether a test has failed, or was skipped."""

    def __init__(self) -> None:
        self.tests: set[str] = set()
        self.skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the report of one phase of a test."""
        if report.failed:
            self.tests.add(report.nodeid)
        elif report.skipped:
            self.skipped.add(report.nodeid)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Follow orders until they end."""
    _end_with_parent()
    failed = Failed()
    session.config.pluginmanager.register(failed)
    items = {item.nodeid: item for item in session.items}
    orders = os.fdopen(int(os.environ.pop(ORDERS)), "r")
    reports = os.fdopen(int(os.environ.pop(REPORTS)), "w")
    _import_all(os.environ.pop(ROOM))
    reports.write(json.dumps({"early": _early()}) + "\n")
    reports.flush()
    for line in orders:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _end_with_parent()
            _follow(order, items, failed)
        reports.write(json.dumps({"pid": child}) + "\n")
        reports.flush()
        _, status, usage = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        reports.write(json.dumps({"code": code, "cpu": cpu}) + "\n")
        reports.flush()
    return True


def _end_with_parent() -> None:
    """Have the kernel kill this process if its parent is killed."""
    ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _import_all(name: str) -> None:
    """Import every module of a room, so that its functions are there to be replaced."""
    room = importlib.import_module(name)
    for each in pkgutil.walk_packages(room.__path__, f"{name}."):
        importlib.import_module(each.name)


def _early() -> dict[str, list[int]]:
    """Return the lines that have run before the first test."""
    _measured.stop()
    data = _measured.get_data()
    return {file: data.lines(file) or [] for file in data.measured_files()}


def _follow(order: dict[str, Any], items: dict[str, pytest.Item], failed: Failed) -> None:
    code = NOT_REPLACED
    try:
        os.setsid()
        if "base" in order:
            _base(order, items, failed)
            code = SURVIVED
        elif _replace(order["file"], order["source"], order["function"]):
            _limit(order["cpu"])
            chosen = [items[name] for name in order["tests"]]
            code = KILLED if _run(chosen, failed) else SURVIVED
    except BaseException:
        # In a forked copy nothing may go on after this.
        code = KILLED
        if "base" in order:
            raise
    finally:
        os._exit(code)


def _run(chosen: list[pytest.Item], failed: Failed) -> bool:
    """Run tests until one fails, and return whether one did."""
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        # Skipped by a mutant that makes a quick test start a program.
        if failed.tests or failed.skipped:
            return True
    return False


def _limit(cpu: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _base(order: dict[str, Any], items: dict[str, pytest.Item], failed: Failed) -> None:
    """Run every test; write the lines that each enters, its time, and if it starts a Python."""
    measured = coverage.Coverage(data_file=None, include=[f"{order['base']}/*"], config_file=False)
    measured.start()
    seconds: dict[str, float] = {}
    running, programs = "", set[str]()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        # What is started so reads the source, where this process has functions that are replaced.
        if event == "subprocess.Popen" and sys.executable in map(os.fsdecode, arguments[1]):
            programs.add(running)

    sys.addaudithook(heard)
    each = list(items.values())
    for item, following in zip(each, [*each[1:], None], strict=True):
        running = item.nodeid
        measured.switch_context(item.nodeid)
        began = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        seconds[item.nodeid] = time.process_time() - began
    measured.stop()
    data = measured.get_data()
    lines = {
        file: {line: sorted({*tests} - {""} - failed.skipped) for line, tests in found.items()}
        for file in data.measured_files()
        if (found := data.contexts_by_lineno(file))
    }
    base = {
        "lines": lines,
        "seconds": seconds,
        "programs": sorted(programs - failed.tests),
        "failed": sorted(failed.tests),
    }
    Path(order["report"]).write_text(json.dumps(base))


def _replace(file: str, source: str, function: str) -> bool:
    """Replace the code of a function that is already imported; return whether that worked."""
    module = next((m for m in list(sys.modules.values()) if _is_of(m, file)), None)
    if module is None or not function:
        return False
    names = function.split(".")
    wanted = [
        code for code in _codes(compile(source, file, "exec")) if code.co_qualname == function
    ]
    try:
        place: Any = module
        for name in names[:-1]:
            place = vars(place)[name]
        targets = list(_functions(vars(place)[names[-1]]))
    except KeyError:
        return False
    done = False
    for target in targets:
        for code in wanted:
            old = target.__code__
            same_place = old.co_firstlineno == code.co_firstlineno and old.co_filename == file
            if same_place and old != code:
                with contextlib.suppress(ValueError):
                    target.__code__ = code
                    done = True
    return done


def _is_of(module: object, file: str) -> bool:
    return getattr(module, "__file__", None) == file


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _functions(value: object) -> Iterator[types.FunctionType]:
    """Yield the functions behind a method, a property or a decorated function."""
    if isinstance(value, types.FunctionType):
        yield value
    for name in ("__wrapped__", "__func__", "fget", "fset", "func"):
        inner = getattr(value, name, None)
        if inner is not None and inner is not value:
            yield from _functions(inner)
