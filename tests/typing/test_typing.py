"""Type checkers know the options, in the wheel as it is shipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.typing.checkers import REFUSED, Mode, Place, marked_by, place
from tests.typing.pages import page_files

pytestmark = pytest.mark.process

STRICT: tuple[Mode, ...] = ("mypy strict", "pyright strict")
MODES = (*STRICT, "pyright basic") if "STEERSMAN_WHOLE" in os.environ else STRICT
"""What the basic mode marks, the strict one marks too; `.ci/run` looks at both."""

SIGNATURES: Mapping[str, str] = {
    "Agent": "Agent({})",
    "Agent.session": "agent.session({})",
    "Agent.start": 'await agent.start("x", {})',
    "Agent.open": 'await agent.open("x", {})',
    "Agent.query": 'agent.query("x", {})',
    "Agent.run": 'await agent.run("x", {})',
    "Agent.run with output": 'await agent.run("x", output=int, {})',
    "query": 'steersman.query("x", {})',
    "run": 'await steersman.run("x", {})',
    "run with output": 'await steersman.run("x", output=int, {})',
    "Session.fork": "session.fork({})",
    "Options": "Options({})",
    "Options.replace": "options.replace({})",
    "scripted_agent": "make({})",
    "Stage.agent": "stage.agent({})",
}
"""Everything that takes options, and how a call of it is written."""

MISTAKES = (
    # A wrong name
    *('modle="opus"', 'allowed_tool=["Read"]', 'permissionMode="plan"', "stage=None"),
    # A wrong type
    *("model=3", 'max_turns="3"', 'max_budget_usd="5"', 'memory="yes"', "cwd=5"),
    *('policy="allow"', "limits=5", "can_use_tool=5", "can_use_tool=lambda: None", "stderr=5"),
    # A word that is not one of them
    *('permission_mode="yolo"', 'effort="huge"', 'plugin_delivery="file"'),
    # A wrong item
    *("allowed_tools=[5]", 'setting_sources=["everything"]', "functions=[1]", "add_dirs=[5]"),
    # A wrong value of a mapping
    *('env={"A": 1}', 'tool_aliases={"Bash": 5}', 'mcp_servers={"a": 5}', 'agents={"a": 5}'),
    *('hooks={"Stop": 5}', "hooks={5: print}"),
)

HEAD = """
from __future__ import annotations
import steersman
from steersman import Agent, Options, Session
from steersman.testing.plugin import MakeAgent
from steersman.testing.stages import Stage

async def programs(
    agent: Agent, session: Session, options: Options, make: MakeAgent, stage: Stage
) -> None:
"""

EVERY = "every_signature.py"
HERE = Path(__file__).parent
KEPT = {
    name: (HERE / name).read_text(encoding="utf-8")
    for name in ("given.py", "mistakes.py", "outputs.py", "right_forms.py", "sync_forms.py")
}


def every_signature() -> str:
    """Return a program with each of the mistakes in each of the signatures."""
    calls = [
        f"    {call.format(mistake)}{REFUSED}\n"
        for call in SIGNATURES.values()
        for mistake in MISTAKES
    ]
    return HEAD + "".join(calls)


FILES = {**KEPT, EVERY: every_signature(), **page_files()}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place(tmp_path_factory.mktemp("typing"))


def refused_in(name: str) -> set[int]:
    lines = FILES[name].splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith(REFUSED)}


def differences(name: str, marked: Mapping[int, str]) -> Iterator[str]:
    """Yield the lines that are marked and should not be, and those that are not and should be."""
    lines, refused = FILES[name].splitlines(), refused_in(name)
    for number in sorted(marked.keys() ^ refused):
        text = marked.get(number, "is not marked")
        yield f"{name}:{number}: {lines[number - 1].strip()}: {text}"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_is_refused_is_marked_and_nothing_else(where: Place) -> None:
    """One test for all three, so that each checker is started once."""
    marks = marked_by(where, FILES, has_basic="pyright basic" in MODES)

    wrong = [
        f"{mode}: {each}"
        for mode in MODES
        for name in FILES
        for each in differences(name, marks[mode].get(name, {}))
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_twenty_mistakes_and_forty_right_forms() -> None:
    right = KEPT["right_forms.py"].splitlines()

    assert len(MISTAKES) >= 20
    assert len([line for line in right if line.startswith("Agent(")]) >= 40


def test_the_checkers_read_the_wheel_and_not_the_checkout(where: Place) -> None:
    asking = "import steersman; print(steersman.__file__)"
    said = subprocess.run(
        [where.python, "-c", asking], capture_output=True, text=True, check=True, timeout=60
    )

    assert Path(said.stdout.strip()).is_relative_to(where.folder / "env")
