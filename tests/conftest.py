"""How hard hypothesis tries, who begins first, and who starts programs.

The profile `ci` is the same on every run, `deep` is for the night, `quick` is for `make quick`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
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

PROGRAMS = ("benchmarks", "console", "examples", "live", "real", "transports")
"""Folders whose tests start programs, all of them or most."""

STARTS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.system"})
"""What Python reports when a program is started."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave `soak_only` to `make soak`, mark who starts programs, begin with what takes longest.

    So no worker ends alone with one of those.
    """
    _mark_variations(items)
    left = [item for item in items if item.get_closest_marker("soak_only")]
    for item in left:
        item.add_marker("soak")
    if left and "STEERSMAN_SOAK" not in os.environ:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("soak_only")]
    for item in items:
        if item.nodeid.removeprefix("tests/").partition("/")[0] in PROGRAMS:
            item.add_marker("process")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _mark_variations(items: list[pytest.Item]) -> None:
    """Mark the tests of the list as `soak_only`."""
    named = set(VARIATIONS.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid.removeprefix("tests/") in named:
            item.add_marker("soak_only")


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
