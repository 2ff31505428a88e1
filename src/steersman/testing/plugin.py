"""The pytest plugin: agents on a script, the stock CLI offline, and a guard against the real one.

Loaded by pytest itself wherever steersman is installed, so it imports nothing of steersman until a
test asks for it. Its fixtures are synchronous and give factories: they work with plain pytest,
pytest-asyncio and anyio alike.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import pytest

if TYPE_CHECKING:
    from steersman.testing.model import ScriptedModel
    from steersman.testing.script import Answer, Scene, Script
    from steersman.testing.stages import StagedAgent

__all__ = ["MakeAgent", "MakeModel", "live_cli", "no_real_cli", "scripted_agent", "scripted_model"]

GUARD_INI = "steersman_no_real_cli"
ATTEMPTS = pytest.StashKey[list[str]]()
MARKERS = (
    "no_real_cli: fail if this test runs a CLI that is not scripted",
    "real_cli: let this test run a real CLI where steersman_no_real_cli is on",
)
REFUSED = (
    "this test tried to run {}, and no real CLI may be run here: use the fixture scripted_agent,"
    " a transport of steersman.testing, or mark the test with real_cli"
)


class MakeAgent(Protocol):
    """Makes an agent whose model follows a script; keywords are the fields of `Options`."""

    def __call__(
        self, *steps: Answer | Scene | Script, complete: bool = True, **options: Any
    ) -> StagedAgent:
        """Make it. At the end of the test its script must be complete, unless told otherwise.

        Steps make a strict script: a request that no step is left for is a failure.
        """
        ...


class MakeModel(Protocol):
    """Makes a model on loopback that follows a script."""

    def __call__(self, *steps: Answer | Scene | Script, complete: bool = True) -> ScriptedModel:
        """Make it; it serves until the test ends, when its script must be complete."""
        ...


# --- Fixtures ----------------------------------------------------------------------------


@pytest.fixture
def scripted_agent() -> Iterator[MakeAgent]:
    """A factory of agents on a scripted CLI in memory: no process, no key, milliseconds.

    `tools` plays built-in tools, `faults` breaks the CLI; see `ScriptedCLI`.
    """
    from steersman.testing.scripted.cli import ScriptedCLI  # noqa: PLC0415
    from steersman.testing.stages import MemoryStage  # noqa: PLC0415

    with _Scripts() as scripts:

        def make(
            *steps: Answer | Scene | Script,
            complete: bool = True,
            tools: Any = None,
            faults: Any = None,
            **options: Any,
        ) -> StagedAgent:
            if _names_built_in(tools):
                options["tools"], tools = tools, None
            script = scripts.add(steps, complete=complete)
            return MemoryStage(ScriptedCLI(script, tools=tools, faults=faults)).agent(**options)

        yield make


@pytest.fixture
def scripted_model() -> Iterator[MakeModel]:
    """A factory of Messages APIs on loopback, for the stock CLI or any other client."""
    from steersman.testing.model import ScriptedModel  # noqa: PLC0415

    with _Scripts() as scripts, ExitStack() as models:

        def make(*steps: Answer | Scene | Script, complete: bool = True) -> ScriptedModel:
            return models.enter_context(ScriptedModel(scripts.add(steps, complete=complete)))

        yield make


@pytest.fixture
def live_cli(request: pytest.FixtureRequest) -> Iterator[MakeAgent]:
    """A factory of agents on the stock CLI, in a sandbox, with a scripted model: offline.

    The test runs once for each CLI that is found: that of the official wheel, the one that
    `STEERSMAN_CLI` names, and those in `older-cli/*/claude` of the virtual environment. Where there
    is none it is skipped; where `CI` is set it fails.
    """
    from steersman.testing.stages import StockStage  # noqa: PLC0415

    program: Path | None = request.param
    if program is None:
        _without_a_cli()
    assert program is not None
    with _Scripts() as scripts, ExitStack() as stages:

        def make(
            *steps: Answer | Scene | Script, complete: bool = True, **options: Any
        ) -> StagedAgent:
            script = scripts.add(steps, complete=complete)
            return stages.enter_context(StockStage(script, program)).agent(**options)

        yield make


@pytest.fixture
def no_real_cli(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no process be started but scripted CLIs; a test that tries fails, and says so."""
    from steersman.testing.no_real_cli import refusing_real_clis  # noqa: PLC0415

    attempts = request.node.stash.setdefault(ATTEMPTS, [])

    def refuse(program: str) -> None:
        attempts.append(program)
        pytest.fail(REFUSED.format(program))

    with refusing_real_clis(refuse):
        yield


@pytest.fixture(autouse=True)
def _guard_where_it_is_wanted(request: pytest.FixtureRequest) -> None:
    node = request.node
    is_live = "live_cli" in request.fixturenames or node.get_closest_marker("real_cli")
    is_wanted = request.config.getini(GUARD_INI) or node.get_closest_marker("no_real_cli")
    if is_wanted and not is_live:
        request.getfixturevalue("no_real_cli")


# --- Hooks -------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch of the guard."""
    parser.addini(GUARD_INI, "fail every test that runs a CLI that is not scripted", type="bool")


def pytest_configure(config: pytest.Config) -> None:
    """Name our markers, for `--strict-markers`."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that wants `live_cli` once for each CLI."""
    if "live_cli" in metafunc.fixturenames:
        found = _clis() or {"none": None}
        metafunc.parametrize("live_cli", list(found.values()), ids=list(found), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose code has swallowed the guard's refusal."""
    yield
    for program in item.stash.get(ATTEMPTS, list[str]()):
        pytest.fail(REFUSED.format(program))


# --- Their parts -------------------------------------------------------------------------


class _Scripts:
    """The scripts of one test; at its end they must be complete."""

    def __init__(self) -> None:
        self._scripts: list[tuple[Script, bool]] = []

    def add(self, steps: tuple[Answer | Scene | Script, ...], *, complete: bool) -> Script:
        from steersman.testing.script import Script  # noqa: PLC0415

        given = [each for each in steps if isinstance(each, Script)]
        if given and len(steps) > 1:
            raise TypeError("give either one Script or any number of steps")
        plain = [each for each in steps if not isinstance(each, Script)]
        script = given[0] if given else Script(*plain, strict=bool(plain))
        self._scripts.append((script, complete))
        return script

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        for script, must_be_complete in self._scripts:
            if must_be_complete:
                script.assert_complete()


def _names_built_in(tools: Any) -> bool:
    """Whether `tools` is the option of that name, a list, and no table of fakes."""
    return tools is not None and not hasattr(tools, "items")


def _clis() -> dict[str, Path | None]:
    """The CLIs of this machine that tests may run, by a short name; each of them once."""
    from steersman.errors import CliNotFound  # noqa: PLC0415
    from steersman.testing.sandbox import find_stock_cli  # noqa: PLC0415

    found: dict[str, Path | None] = {}
    with suppress(CliNotFound):
        found["wheel"] = find_stock_cli()
    named = os.environ.get("STEERSMAN_CLI")
    if named and Path(named).is_file() and Path(named) not in found.values():
        found["STEERSMAN_CLI"] = Path(named)
    for program in sorted(Path(sys.prefix, "older-cli").glob("*/claude")):
        found[program.parent.name] = program
    return found


def _without_a_cli() -> None:
    reason = "no stock CLI: install steersman[cli], or name one in STEERSMAN_CLI"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
