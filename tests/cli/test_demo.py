from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable

import pytest

from steersman.cli.demo import Screen, StageName, show
from steersman.cli.main import main
from steersman.errors import CliNotFound
from steersman.testing.sandbox import find_any_cli
from tests.examples.offline import stock_cli

STOCK = re.compile(
    r"steersman demo: stock Claude Code CLI \d+\.\d+\.\d+ on a scripted model, offline"
)

HAPPENINGS = [
    "  state  starting → idle",
    "  state  idle → running",
    " claude  I'll add the two amounts first.",
    "  state  running → waiting_tool_call",
    "   tool  add(19.99, 5.01) runs here, in Python, and returns 25.0",
    "  state  running → waiting_permission",
    "    ask  may it write total.txt?",
    "allowed  it lies in the project's folder",
    "   hook  before Bash: git push",
    "    ask  may it run Bash: git push?",
    " denied  this needs a review by the user",
    "   hook  before Bash: rm total.txt",
    " denied  by the hook: nothing is deleted here",
    "  state  running → idle",
    "   file  total.txt holds 25.0",
    "   turn  completed, 2 tool calls denied",
    "  state  idle → completed",
]


async def shown(where: StageName, find: Callable[[], str] = find_any_cli) -> list[str]:
    out = io.StringIO()
    async with asyncio.timeout(60):
        status = await show(Screen(out), where, pause=0.05, find=find)
    assert status == 0
    return out.getvalue().splitlines()


def in_order(wanted: list[str], lines: list[str]) -> bool:
    rest = iter(lines)
    return all(each in rest for each in wanted)


@pytest.mark.live
async def test_the_demo_shows_everything_on_the_stock_cli() -> None:
    stock_cli()

    lines = await shown("any")

    assert STOCK.fullmatch(lines[0])
    assert in_order(HAPPENINGS, lines), "\n".join(lines)
    assert any(re.match(r"   cost  \$0\.0[1-9]", line) for line in lines)


async def test_the_demo_shows_everything_on_the_embedded_cli() -> None:
    lines = await shown("embedded")

    assert lines[0] == "steersman demo: the embedded scripted CLI (as you asked)"
    assert in_order(HAPPENINGS, lines), "\n".join(lines)


async def test_where_there_is_no_cli_the_first_line_says_so() -> None:
    def find() -> str:
        raise CliNotFound(["everywhere"])

    lines = await shown("any", find)

    assert lines[0] == "steersman demo: the embedded scripted CLI (no stock CLI was found)"
    assert in_order(HAPPENINGS, lines), "\n".join(lines)


@pytest.mark.process
async def test_where_the_cli_does_not_start_the_first_line_says_why() -> None:
    lines = await shown("any", lambda: "/bin/false")

    assert lines[0].startswith("steersman demo: the embedded scripted CLI (the stock one did not")
    assert in_order(HAPPENINGS, lines), "\n".join(lines)


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stdin", [io.StringIO("y\n"), Keyboard("n\n"), Keyboard("\n"), Keyboard()])
def test_the_real_thing_is_not_run_without_consent(
    stdin: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["demo", "--real"], stdin)

    assert status == 1
    assert "your own Claude login" in capsys.readouterr().out
