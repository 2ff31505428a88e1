"""The pytest plugin: scripted agents, the stock CLI offline, and a guard against real CLIs.

pytest loads it wherever steersman is installed, so it imports no other module of steersman before a
test uses a fixture. The fixtures are synchronous and return factories, so they work with plain
pytest, pytest-asyncio and anyio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import pytest

if TYPE_CHECKING:
    from typing import Unpack

    from steersman.options.fields import Options
    from steersman.options.keywords import OptionKwargs
    from steersman.testing.model import ScriptedModel
    from steersman.testing.script import Answer, Scene, Script
    from steersman.testing.scripted.stage import Faults
    from steersman.testing.stages import StagedAgent

GUARD_INI = "steersman_no_real_cli"
ATTEMPTS = pytest.StashKey[list[str]]()
MARKERS = (
    "no_real_cli: fail if this test runs a CLI that is not scripted",
    "real_cli: let this test run a real CLI where steersman_no_real_cli is on",
)
REFUSED = (
    "this test tried to run {}, but no real CLI may be run here: use the fixture scripted_agent or"
    " a transport of steersman.testing, or mark the test with real_cli"
)


class MakeAgent(Protocol):
    """Creates an agent whose model follows a script; keywords are the fields of `Options`."""

    def __call__(
        self,
        *steps: Answer | Scene | Script,
        complete: bool = True,
        faults: Faults | None = None,
        options: Options | None = None,
        **words: Unpack[OptionKwargs],
    ) -> StagedAgent:
        """Return the agent. With `complete`, all steps must be used when the test ends.

        Steps make a strict script: a request without a step fails. `faults` make a scripted CLI
        misbehave. A mapping as `tools` replaces built-in tools of a scripted CLI.
        """
        ...


class MakeModel(Protocol):
    """Creates a model on loopback that follows a script."""

    def __call__(self, *steps: Answer | Scene | Script, complete: bool = True) -> ScriptedModel:
        """Return the model, which runs until the test ends. `complete`: all steps must be used."""
        ...


# --- Fixtures ----------------------------------------------------------------------------


@pytest.fixture
def scripted_agent() -> Iterator[MakeAgent]:
    """Return a factory of agents on a scripted CLI in memory: no process, no key, milliseconds.

    `tools` replaces built-in tools, `faults` makes the CLI misbehave; see `ScriptedCLI`.
    """
    from steersman._json import is_mapping  # noqa: PLC0415
    from steersman.testing.scripted.cli import ScriptedCLI  # noqa: PLC0415
    from steersman.testing.stages import MemoryStage  # noqa: PLC0415

    with _Scripts() as scripts:

        def make(
            *steps: Answer | Scene | Script,
            complete: bool = True,
            faults: Faults | None = None,
            options: Options | None = None,
            **words: Unpack[OptionKwargs],
        ) -> StagedAgent:
            fakes = words.get("tools")
            if is_mapping(fakes):
                del words["tools"]
            script = scripts.add(steps, complete=complete)
            cli = ScriptedCLI(script, tools=fakes if is_mapping(fakes) else None, faults=faults)
            return MemoryStage(cli).agent(options, **words)

        yield make


@pytest.fixture
def scripted_model() -> Iterator[MakeModel]:
    """Return a factory of Messages APIs on loopback, for the stock CLI or any other client."""
    from steersman.testing.model import ScriptedModel  # noqa: PLC0415

    with _Scripts() as scripts, ExitStack() as models:

        def make(*steps: Answer | Scene | Script, complete: bool = True) -> ScriptedModel:
            return models.enter_context(ScriptedModel(scripts.add(steps, complete=complete)))

        yield make


@pytest.fixture
def live_cli(request: pytest.FixtureRequest) -> Iterator[MakeAgent]:
    """Return a factory of agents on the stock CLI, in a sandbox, offline, with a scripted model.

    The test runs once for each CLI that is found: that of the official wheel, the one that
    `STEERSMAN_CLI` names, and those in `older-cli/*/claude` of the virtual environment. Without a
    CLI the test is skipped; if the variable `CI` is set, it fails.
    """
    from steersman.errors import UsageError  # noqa: PLC0415
    from steersman.testing.stages import StockStage  # noqa: PLC0415

    program: Path | None = request.param
    if program is None:
        _without_a_cli()
    assert program is not None
    with _Scripts() as scripts, ExitStack() as stages:

        def make(
            *steps: Answer | Scene | Script,
            complete: bool = True,
            faults: Faults | None = None,
            options: Options | None = None,
            **words: Unpack[OptionKwargs],
        ) -> StagedAgent:
            if faults is not None:
                raise UsageError(
                    "faults", faults, "None: the stock CLI has none; use scripted_agent"
                )
            script = scripts.add(steps, complete=complete)
            return stages.enter_context(StockStage(script, program)).agent(options, **words)

        yield make


@pytest.fixture
def no_real_cli(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test if it starts a CLI that is not scripted."""
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
    """Add the ini option of the guard."""
    parser.addini(GUARD_INI, "fail every test that runs a CLI that is not scripted", type="bool")


def pytest_configure(config: pytest.Config) -> None:
    """Register our markers, for `--strict-markers`."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses `live_cli` once for each CLI."""
    if "live_cli" in metafunc.fixturenames:
        found = _clis() or {"none": None}
        metafunc.parametrize("live_cli", list(found.values()), ids=list(found), indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose code has caught the guard's exception."""
    yield
    for program in item.stash.get(ATTEMPTS, list[str]()):
        pytest.fail(REFUSED.format(program))


# --- Their parts -------------------------------------------------------------------------


class _Scripts:
    """The scripts of one test; they must be complete when the test ends."""

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


def _clis() -> dict[str, Path | None]:
    """Return the CLIs of this machine that tests may run, by a short name, each one once."""
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
    reason = "no stock CLI: install steersman[cli], or set STEERSMAN_CLI to the path of one"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
