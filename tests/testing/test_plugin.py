"""The pytest plugin, in projects of its own: plain pytest, pytest-asyncio, anyio."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.errors import CliNotFound
from steersman.testing.sandbox import find_stock_cli

pytestmark = pytest.mark.process

SRC = Path(__file__).parents[2] / "src"
LIMIT = 60
IMPORT_BUDGET = 0.02

TOOLS = """
import asyncio
import pytest
from steersman.testing import Script, call, say

def add(a: float, b: float) -> float:
    return a + b

async def sums(agent):
    result = await agent.run("2 + 3?")
    assert result.answer == "It is 5."
    assert list(agent.asked[1].tool_results.values()) == ["5.0"]

STEPS = (call("mcp__functions__add", a=2, b=3), say("It is 5."))
"""

PLAIN = """
def test_sums(scripted_agent):
    asyncio.run(sums(scripted_agent(*STEPS, functions=[add])))
"""
ASYNCIO = """
@pytest.mark.asyncio
async def test_sums(scripted_agent):
    await sums(scripted_agent(*STEPS, functions=[add]))
"""
ANYIO = """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_sums(scripted_agent):
    await sums(scripted_agent(*STEPS, functions=[add]))
"""


class Project:
    """A folder with tests, run by a pytest of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, tests: str, *flags: str, ini: str = "", env: dict[str, str] | None = None
    ) -> tuple[dict[str, int], str]:
        """Return the counts of passed and failed tests, and the whole output."""
        (self.folder / "test_it.py").write_text(TOOLS + tests)
        (self.folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers\n{ini}\n")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *self.loaded(), *flags],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), **(env or {})},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        counts = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout.splitlines()[-1])
        return {word: int(number) for number, word in counts}, done.stdout + done.stderr

    def loaded(self) -> list[str]:
        """Name the plugin, where steersman is not installed but only on the path."""
        from importlib.metadata import entry_points  # noqa: PLC0415

        names = [each.value for each in entry_points(group="pytest11")]
        return [] if "steersman.testing.plugin" in names else ["-p", "steersman.testing.plugin"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("tests", "flags"),
    [
        (PLAIN, ("-p", "no:asyncio", "-p", "no:anyio")),
        (ASYNCIO, ("-p", "no:anyio")),
        pytest.param(ANYIO, ("-p", "no:asyncio"), marks=pytest.mark.soak_only),
    ],
    ids=["plain pytest", "pytest-asyncio", "anyio"],
)
def test_a_scripted_agent_works_under(project: Project, tests: str, flags: tuple[str, ...]) -> None:
    counts, said = project.run(tests, *flags)

    assert counts == {"passed": 1}, said


def test_a_step_that_was_not_reached_fails_the_test_at_its_end(project: Project) -> None:
    counts, said = project.run(
        """
def test_it(scripted_agent):
    scripted_agent(say("never"))

def test_that_does_not_mind(scripted_agent):
    scripted_agent(say("never"), complete=False)

def test_that_fails_anyway(scripted_agent):
    scripted_agent(say("never"))
    assert False
"""
    )

    assert counts == {"passed": 2, "error": 2, "failed": 1}, said
    assert "step 1 of 1 was not reached: say('never')" in said


def test_a_scripted_agent_takes_fakes_faults_and_options(project: Project) -> None:
    counts, said = project.run(
        """
from steersman.errors import SteersmanError
from steersman.testing import Faults

def test_fakes(scripted_agent):
    steps = [call("Bash", command="echo hi"), say("done")]
    agent = scripted_agent(*steps, tools={"Bash": lambda given: "played"}, model="sonnet")
    asyncio.run(agent.run("go"))
    assert list(agent.asked[1].tool_results.values()) == ["played"]
    assert agent.asked[0].model == "claude-sonnet-5-5"

def test_no_tools(scripted_agent):
    agent = scripted_agent(say("done"), tools=[])
    asyncio.run(agent.run("go"))
    assert agent.asked[0].tools == ()

def test_faults(scripted_agent):
    agent = scripted_agent(faults=Faults(exit_at="initialize"))
    with pytest.raises(SteersmanError):
        asyncio.run(agent.run("go"))

def test_a_script(scripted_agent):
    with pytest.raises(TypeError):
        scripted_agent(Script(), say("both"))
    asyncio.run(scripted_agent(Script(say("one"))).run("go"))
"""
    )

    assert counts == {"passed": 4}, said


def test_a_scripted_model_serves_while_the_test_runs(project: Project) -> None:
    counts, said = project.run(
        """
import json
from urllib.request import Request, urlopen

def test_it(scripted_model):
    model = scripted_model(say("hello"))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with urlopen(Request(model.url + "/v1/messages", body)) as answer:
        assert json.load(answer)["content"][0]["text"] == "hello"
"""
    )

    assert counts == {"passed": 1}, said


LIVE = """
def test_sums(live_cli):
    asyncio.run(sums(live_cli(*STEPS, functions=[add])))
"""


@pytest.mark.live
def test_the_stock_cli_plays_the_same_test(project: Project) -> None:
    try:
        find_stock_cli()
    except CliNotFound as error:
        pytest.skip(str(error))

    counts, said = project.run(LIVE, "-k", "wheel", "-v")

    assert counts == {"passed": 1}, said
    assert "test_sums[wheel] PASSED" in said


@pytest.mark.parametrize(
    ("env", "counts"), [({}, {"skipped": 1}), ({"CI": "1"}, {"error": 1})], ids=["here", "in CI"]
)
def test_without_a_cli_it_is_skipped_but_not_in_ci(
    project: Project, env: dict[str, str], counts: dict[str, int]
) -> None:
    hide = "import sys\nsys.modules['claude_agent_sdk'] = None\nsys.prefix = '/nowhere'\n"
    (project.folder / "conftest.py").write_text(hide)

    found, said = project.run(LIVE, "-rs", env=env)

    assert found == counts, said
    assert "install steersman[cli], or set STEERSMAN_CLI to the path of one" in said


GUARDED = """
from steersman import Agent
from steersman.testing import executable

def run(program):
    asyncio.run(Agent(cli_path=program).run("hi"))

def test_real(tmp_path):
    run("/bin/cat")

def test_that_swallows_it(tmp_path):
    try:
        run("/bin/cat")
    except BaseException:
        pass

def test_scripted(tmp_path):
    run(executable(say("hello"), tmp_path))

@pytest.mark.real_cli
def test_that_may():
    with pytest.raises(Exception, match="not|CLI"):
        run("/bin/false")
"""


def test_the_guard_lets_only_scripted_clis_run(project: Project) -> None:
    counts, said = project.run(GUARDED, ini="steersman_no_real_cli = true")

    assert counts == {"passed": 2, "failed": 2}, said
    assert "this test tried to run /bin/cat, but no real CLI may be run here" in said


def test_the_guard_stands_where_a_marker_wants_it(project: Project) -> None:
    counts, said = project.run(
        """
from steersman import Agent

@pytest.mark.no_real_cli
def test_marked():
    asyncio.run(Agent(cli_path="/bin/false").run("hi"))

def test_free():
    with pytest.raises(Exception, match="not|CLI"):
        asyncio.run(Agent(cli_path="/bin/false").run("hi"))
"""
    )

    assert counts == {"passed": 1, "failed": 1}, said
    assert "no real CLI may be run here" in said


def test_loading_it_costs_next_to_nothing(tmp_path: Path) -> None:
    """Every pytest run pays for it, also where no test uses steersman."""
    code = (
        "import pytest, sys, time; before = set(sys.modules); t = time.process_time();"
        "import steersman.testing.plugin; print(time.process_time() - t);"
        "print(*(each for each in set(sys.modules) - before))"
    )
    env = {"PYTHONPATH": str(SRC), "PYTHONPYCACHEPREFIX": str(tmp_path)}

    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        for _ in range(4)
    ]

    seconds = min(float(run.stdout.splitlines()[0]) for run in runs)
    loaded = set(runs[0].stdout.splitlines()[1].split())
    plugin = {"steersman", "steersman._lazy", "steersman.testing", "steersman.testing.plugin"}
    assert loaded == plugin
    assert seconds < IMPORT_BUDGET
