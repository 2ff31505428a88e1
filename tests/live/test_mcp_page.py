"""The program in `docs/mcp.md` runs, word by word."""

from __future__ import annotations

import pytest

from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from tests.examples.offline import run_offline
from tests.house.test_docs import programs

pytestmark = pytest.mark.live


def test_the_first_program_runs_as_it_stands() -> None:
    heard: list[str] = []

    def answer(request: ModelRequest) -> Step:
        heard.extend(request.tool_results.values())
        return say("It costs 3.50.")

    script = Script(call("mcp__shop__price", item="tea"), answer, strict=True)

    run = run_offline(["-c", programs("docs/mcp.md")[0]], script)

    assert run.stdout == "It costs 3.50.\n"
    assert heard == ['{"result":3.5}']
    script.assert_complete()
