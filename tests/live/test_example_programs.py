"""The larger examples run as they stand, on the stock CLI and a scripted model."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from examples import (
    budget,
    chat_bot,
    ci_bot,
    slow_approval,
    sse_server,
    steer,
    structured,
    subagents,
)
from steersman import Allow, Deny, Inbox
from steersman.options import Caps, Limits
from steersman.permissions import Ask, Decision
from steersman.testing.model import ScriptedModel
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall, when
from tests.examples.offline import ROOT, run_offline, stock_cli
from tests.live.staging import LIMIT, MakeScripted, until

pytestmark = pytest.mark.live

LARGEST = 80


def test_every_example_is_short_and_explains_how_to_run_it() -> None:
    examples = [path for path in (ROOT / "examples").glob("*.py") if path.stem != "__init__"]

    assert [
        path.name for path in examples if f"python examples/{path.name}" not in path.read_text()
    ] == []
    new = [path for path in examples if path.stem not in ("database", "process_files")]
    assert [path.name for path in new if len(path.read_text().splitlines()) > LARGEST] == []


def test_an_answer_is_an_instance_of_a_class() -> None:
    answer = call("StructuredOutput", mood="mixed", stars=3, complaints=["an hour"])

    run = run_offline([f"{ROOT}/examples/structured.py"], Script(answer, say("")))

    assert run.stderr == ""
    assert run.stdout == "Review(mood='mixed', stars=3, complaints=['an hour'])\n"


async def test_a_failure_shows_its_cost(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, _model = scripted(call("Bash", command="true"), max_turns=1, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT):
        found = await structured.review(agent, "Good.")

    assert found is None
    assert "max_turns" in capsys.readouterr().err


async def test_a_turn_over_its_budget_is_stopped(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = Limits(turn=Caps(tool_calls=1))
    steps = (call("Bash", command="true"), call("Bash", command="sleep 30"), say("done"))
    agent, _model = scripted(Script(*steps), allowed_tools=["Bash"], limits=limits)

    async with asyncio.timeout(LIMIT):
        (result,) = await budget.work(agent, "work")

    assert result.outcome == "failed"
    assert "stopped: the turn has reached its limit of 1 tool_calls" in capsys.readouterr().out


async def test_the_tree_of_subagents_is_shown(
    scripted: MakeScripted, sandbox: CliSandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (sandbox.project / "README.md").write_text("hello", encoding="utf-8")
    asked = {"description": "read", "prompt": "read it", "subagent_type": "reader"}
    script = Script(call("Agent", asked), say("All read.")).branch(
        "read it", call("Read", file_path=str(sandbox.project / "README.md")), say("It greets.")
    )
    agent, _model = scripted(script, agents=subagents.AGENTS, allowed_tools=["Agent", "Read"])

    async with asyncio.timeout(LIMIT):
        answer = await subagents.work(agent, "go")

    shown = capsys.readouterr().out
    assert answer == "All read."
    assert shown.startswith("reader: read [")
    assert "  Read {'file_path'" in shown


async def test_a_turn_is_corrected_while_it_works(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def answer(request: ModelRequest) -> Step:
        seen.append(json.dumps(request.body["messages"]))
        return say("As you like.")

    agent, _model = scripted(
        Script(call("Bash", command="sleep 1"), answer), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT):
        result = await steer.work(agent, "count", "leave out the tests")

    assert result.outcome == "completed"
    assert "leave out the tests" in seen[0]
    assert "withdrawn: True" in capsys.readouterr().out


async def test_ten_folders_are_checked_and_one_failure_is_the_exit_status(
    scripted: MakeScripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / f"part{number}" for number in range(3)]
    for folder in folders:
        folder.mkdir()
    missing = tmp_path / "nowhere"
    fine = (call("Bash", command="rm -r /"), say("It is fine."))
    agent, _model = scripted(Script(when("make check", *fine * 3)), policy=ci_bot.POLICY)

    async with asyncio.timeout(LIMIT):
        status = await ci_bot.check_all(agent, [*folders, missing])

    shown = capsys.readouterr().out
    assert status == 1
    assert shown.count("It is fine.") == 3
    assert "failed     nowhere: cwd: " in shown


async def test_a_message_that_is_delivered_twice_is_answered_once(scripted: MakeScripted) -> None:
    agent, model = scripted(when("one", say("first")), when("two", say("second")), tools=[])

    async with asyncio.timeout(LIMIT):
        bot = chat_bot.Bot(agent)
        first, again = await asyncio.gather(
            bot.answer("general", "17", "one"), bot.answer("general", "17", "one")
        )
        await bot.close()
        restarted = chat_bot.Bot(agent)
        later = await restarted.answer("general", "17", "one")
        other = await restarted.answer("general", "18", "two")
        await restarted.close()

    assert (first, again, later, other) == ("first", "first", "first", "second")
    assert len(model.asked) == 2


@pytest.mark.parametrize("verdict", [Allow(), Deny("not now")])
async def test_a_person_decides_later(
    scripted: MakeScripted, sandbox: CliSandbox, verdict: Decision
) -> None:
    inbox = Inbox()
    thinking = asyncio.Event()

    async def person(ask: Ask) -> Decision:
        assert ask.tool_input["command"].startswith("git push")
        thinking.set()
        await asyncio.sleep(0)
        return verdict

    effect = sandbox.project / "pushed"
    agent, _model = scripted(
        call("Bash", command=f"git push x; touch {effect}"),
        say("Done."),
        policy=slow_approval.POLICY,
        inbox=inbox,
    )

    async with asyncio.timeout(LIMIT):
        result = await slow_approval.work(agent, inbox, "push", person)

    assert thinking.is_set()
    assert result.outcome == "completed"
    assert effect.exists() is isinstance(verdict, Allow)


async def read_events(port: int) -> list[tuple[str, Any]]:
    """Read the stream of one viewer to its end: kinds and data."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /events HTTP/1.1\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    events = [each.split("\n") for each in text.split("\n\n") if each.startswith("id: ")]
    return [(kind[7:], json.loads(data[6:])) for _, kind, data in events]


async def test_two_viewers_see_the_same_and_one_of_them_allows(
    scripted: MakeScripted, sandbox: CliSandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox = Inbox()
    effect = sandbox.project / "hello.txt"
    agent, _model = scripted(
        call("Write", file_path=str(effect), content="hello"), say("Written."), inbox=inbox
    )

    async def allow_on_the_page(port: int) -> bytes:
        async for change in inbox.watch():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"POST /asks/{change.ask.id}/allow HTTP/1.1\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            return answer
        return b""

    async with asyncio.timeout(LIMIT):
        serving = asyncio.ensure_future(sse_server.serve(agent, inbox, "write", 0))
        shown = ""

        def is_serving() -> bool:
            nonlocal shown
            shown += capsys.readouterr().out
            return "/events" in shown

        await until(is_serving)
        port = int(shown.rsplit(":", 1)[1].partition("/")[0])
        viewers = [asyncio.ensure_future(read_events(port)) for _ in range(2)]
        answer = await allow_on_the_page(port)
        text = await serving
        one, two = await asyncio.gather(*viewers)

    assert (text, effect.read_text(encoding="utf-8")) == ("Written.", "hello")
    assert b"204" in answer
    assert one == two
    assert [kind for kind, _ in one if kind == "asked"] == ["asked"]


def test_the_terminal_chat_answers_and_leaves_at_the_end_of_its_input() -> None:
    script = Script(say("Hello.", chunks=2), say("Bye."))

    run = run_offline([f"{ROOT}/examples/terminal_chat.py"], script, typed="hi\n\nbye\n")

    assert run.stderr == ""
    assert "Hello.\n[completed, 0.0" in run.stdout
    assert "Bye.\n[completed, 0.0" in run.stdout


async def test_ctrl_c_stops_the_answer_and_the_chat_goes_on() -> None:
    script = Script(say("half") + stall() + say(" never"), say("Fine."))
    with CliSandbox() as box, ScriptedModel(script) as model:
        added = {"STEERSMAN_CLI": str(stock_cli()), "PYTHONPATH": str(ROOT / "src")}
        chat = await asyncio.create_subprocess_exec(
            sys.executable,
            f"{ROOT}/examples/terminal_chat.py",
            cwd=box.project,
            env=box.env(model.url, added),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert chat.stdin is not None
        assert chat.stdout is not None
        async with asyncio.timeout(LIMIT):
            chat.stdin.write(b"long\n")
            await chat.stdout.readuntil(b"half")
            chat.send_signal(signal.SIGINT)
            stopped = await chat.stdout.readuntil(b"USD]")
            chat.stdin.write(b"short\n")
            answered = await chat.stdout.readuntil(b"USD]")
            chat.send_signal(signal.SIGINT)
            status = await chat.wait()

    assert b"\n[interrupted, 0.0" in stopped
    assert b"Fine.\n[completed, 0.0" in answered
    assert status == 0
