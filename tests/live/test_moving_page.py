"""The programs before and after a move do the same on the stock CLI."""

from __future__ import annotations

import pytest

from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from tests.docs.snippets import snippets_of
from tests.examples.offline import run_offline

pytestmark = pytest.mark.live


def test_the_program_before_and_after_a_move_do_the_same() -> None:
    before, after = (each.text for each in snippets_of("docs/moving-from-python.md")[:2])

    printed, asked, heard = zip(*map(played, (before, after)), strict=True)

    assert printed == ("It is 25.\nsuccess\n", "It is 25.\ncompleted\n")
    assert asked == ("What is 19.99 + 5.01?",) * 2
    assert heard == (["25.0"],) * 2


def played(program: str) -> tuple[str, str, list[str]]:
    """Run a program; return what it prints, what the model is asked, and what the tool returns."""
    requests: list[ModelRequest] = []

    def first(request: ModelRequest) -> Step:
        requests.append(request)
        return call("mcp__functions__add", a=19.99, b=5.01)

    def second(request: ModelRequest) -> Step:
        requests.append(request)
        return say("It is 25.")

    run = run_offline(["-c", program], Script(first, second, strict=True))

    assert run.stderr == ""
    return run.stdout, requests[0].last_text, list(requests[1].tool_results.values())
