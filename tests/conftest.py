"""How hard hypothesis tries, what is left to CI, who begins first, and who starts programs.

The profile `ci` is the same on every run, `deep` is for the night, `quick` is for `make quick`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.full_disk import disk
from tests.postgres import postgres_server, postgres_url

__all__ = ["disk", "postgres_server", "postgres_url"]

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "ci",
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=SLOW,
)
settings.register_profile("deep", max_examples=500, deadline=None, suppress_health_check=SLOW)
settings.register_profile(
    "quick", settings.get_profile("ci"), max_examples=10, suppress_health_check=SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Started in the background of a script or by `nohup`, where SIGINT is ignored, all programs that
# tests start would ignore it, too. What is handled here is reset for them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

VARIATIONS = Path(__file__).with_name("variations.txt")

IS_SOAK = "STEERSMAN_SOAK" in os.environ
IS_WHOLE = IS_SOAK or "STEERSMAN_WHOLE" in os.environ
LEFT_OUT = {"soak_only": not IS_SOAK, "ci_only": not IS_WHOLE}
"""Markers, and whether their tests are left out of this run. `.ci/run` sets `STEERSMAN_WHOLE`."""

# Which third of the programs of `tests/compat` is played: another one each day. It is chosen once,
# in the process that starts the workers, so that all of them choose alike at midnight.
os.environ.setdefault("STEERSMAN_THIRD", str(int(time.time() // 86_400) % 3))

PROGRAMS = ("benchmarks", "console", "examples", "live", "real", "transports")
"""Folders whose tests start programs, all of them or most."""

STARTS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system"})
"""What Python reports when a program is started."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what others run, mark who starts programs, begin with what takes longest.

    So no worker ends alone with one of those.
    """
    _mark_variations(items)
    left = [item for item in items if _is_left_out(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not _is_left_out(item)]
    for item in items:
        if item.nodeid.removeprefix("tests/").partition("/")[0] in PROGRAMS:
            item.add_marker("process")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _mark_variations(items: list[pytest.Item]) -> None:
    """Mark the tests of the list as `ci_only`, and what `make test` leaves out as `soak`."""
    named = set(VARIATIONS.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid.removeprefix("tests/") in named:
            item.add_marker("ci_only")
        if any(item.get_closest_marker(name) for name in LEFT_OUT):
            item.add_marker("soak")


def _is_left_out(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name, is_so in LEFT_OUT.items() if is_so)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what a run of `tests/compat` did not play, and how to play it."""
    played = (str(each.nodeid) for each in terminalreporter.getreports("passed"))
    if not IS_WHOLE and any("test_programs_go_the_same_way" in each for each in played):
        third = os.environ["STEERSMAN_THIRD"]
        terminalreporter.write_line(
            f"Played a third of the programs of tests/compat: STEERSMAN_THIRD={third} plays it"
            " again, STEERSMAN_WHOLE=1 all programs and the tests that only CI runs."
        )


# Collecting makes millions of objects that stay: looking at them again and again for garbage takes
# a quarter of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests that will be there to the end."""
    gc.enable()
    gc.collect()
    gc.freeze()


if "STEERSMAN_QUICK" in os.environ:
    # A test that starts a program without the marker is refused, and counts as skipped.
    running: list[pytest.Item] = []
    refused: set[pytest.Item] = set()

    def _refuse(event: str, _arguments: object) -> None:
        if event in STARTS and running:
            refused.update(running)
            raise RuntimeError("a quick test starts no programs")

    sys.addaudithook(_refuse)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
        """Know when a test runs."""
        running.append(item)
        try:
            return (yield)
        finally:
            running.remove(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        item: pytest.Item,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a test that was refused a program."""
        report = yield
        if item in refused and report.outcome == "failed":
            report.outcome = "skipped"
            path, line, _ = item.location
            report.longrepr = (path, line or 0, "Skipped: starts a program")
        return report


def _eager_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
    return loop


def _uvloop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    return loop


LOOPS = {"eager": _eager_loop, "uvloop": _uvloop}

if "STEERSMAN_LOOP" in os.environ:

    def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
        """Run the tests in another event loop; `make test-pythons` does."""
        name = os.environ["STEERSMAN_LOOP"]
        return {name: LOOPS[name]}
