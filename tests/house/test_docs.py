"""The programs in README and docs run, word by word."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from steersman._launch.environment import INHERITED
from steersman.journal.results import Outcome
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from steersman.transports.locate import USUAL_PLACES
from tests.examples.offline import ROOT, run_offline

DOCS = ROOT / "docs"
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs(page: str) -> list[str]:
    return PROGRAM.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.live
def test_the_readme_example_runs_as_it_stands() -> None:
    (program,) = programs("README.md")
    heard: list[str] = []

    def answer(request: ModelRequest) -> Step:
        heard.extend(request.tool_results.values())
        return say("It is 25.", chunks=3)

    script = Script(call("mcp__functions__add", a=19.99, b=5.01), answer, strict=True)

    run = run_offline(["-c", program], script)

    assert run.stderr == ""
    assert re.fullmatch(r"It is 25\.\n0\.\d{4} USD\n", run.stdout)
    assert heard == ["25.0"]
    script.assert_complete()


def test_the_readme_example_is_short() -> None:
    (program,) = programs("README.md")

    assert len([line for line in program.splitlines() if line.strip()]) <= 12


def test_the_safety_page_lists_every_inherited_variable_with_its_reason() -> None:
    page = (ROOT / "docs/safety.md").read_text(encoding="utf-8")

    assert dict(re.findall(r"^\| `([\w*]+)` \| (.*) \|$", page, re.MULTILINE)) == INHERITED


def test_the_page_about_transports_has_the_search_order_of_the_cli() -> None:
    page = (DOCS / "transports.md").read_text(encoding="utf-8")
    section = page.partition("## On this machine")[2].partition("\n## ")[0]

    usual = [f"`{each}`" for each in USUAL_PLACES[:2]]
    places = ["`cli_path=`", "`STEERSMAN_CLI`", "on `PATH`, in the usual", *usual, "`cli` extra"]
    found = [section.find(each) for each in places]

    assert -1 not in found
    assert found == sorted(found)


def test_the_glossary_has_every_outcome_and_what_parked_is() -> None:
    rows = (DOCS / "glossary.md").read_text(encoding="utf-8").splitlines()
    (outcome,) = (each for each in rows if each.startswith("| outcome |"))

    assert [each for each in get_args(Outcome) if f"`{each}`" not in outcome] == []
    assert any(each.startswith("| parked |") for each in rows)
