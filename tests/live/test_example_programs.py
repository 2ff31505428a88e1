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
    hook_replies,
    max_budget,
    partial_messages,
    permission_callback,
    plugin,
    project_settings,
    quick_start,
    slow_approval,
    sse_server,
    stderr_lines,
    steer,
    streaming,
    structured,
    subagents,
    system_prompts,
    which_tools,
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

LARGEST = 60
LONGER = (
    *("database", "leave_and_go_on", "process_files", "sessions", "sse_server", "terminal_chat"),
    *("fastapi_app", "redis_store", "s3_store"),
)
"""Whole programs of up to a hundred lines, and two whole session stores."""


def test_every_example_is_short_and_explains_how_to_run_it() -> None:
    examples = [*(ROOT / "examples").glob("[!_]*.py")]

    # A store is no program: its text tells how to check it.
    ways = {path: (f"python examples/{path.name}", f"examples.{path.stem}:") for path in examples}
    assert [
        path.name for path in examples if not any(way in path.read_text() for way in ways[path])
    ] == []
    short = [path for path in examples if path.stem not in LONGER]
    assert [path.name for path in short if len(path.read_text().splitlines()) > LARGEST] == []


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


# --- What the examples of the official SDKs show ---------------------------------------------


async def test_the_first_steps_ask_and_write_a_file(
    scripted: MakeScripted, sandbox: CliSandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sandbox.project / "hello.txt"
    write = call("Write", file_path=str(file), content="Hello, World!")
    agent, _model = scripted(say("A language."), write, say("Written."))

    async with asyncio.timeout(LIMIT):
        answer = await quick_start.ask(agent)
        await quick_start.make_a_file(agent)

    shown = "Claude uses Write\nClaude: Written.\ndone for 0.0"
    assert (answer, file.read_text(encoding="utf-8")) == ("A language.", "Hello, World!")
    assert capsys.readouterr().out.startswith(shown)


async def test_one_conversation_has_several_prompts_and_an_interrupt(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    long = say("1 2 3") + stall() + say(" 4")
    agent, model = scripted(Script(say("Paris.", chunks=2), long, say("Two million.")), tools=[])

    async with asyncio.timeout(LIMIT):
        outcomes = await streaming.talk(agent)

    assert outcomes == ["completed", "interrupted", "completed"]
    assert "capital of France" in json.dumps(model.asked[-1].body["messages"])
    shown = capsys.readouterr().out
    assert "Two million.  [completed]" in shown
    assert "3 messages of the model" in shown


@pytest.mark.soak_only
async def test_prompts_come_from_a_generator(scripted: MakeScripted) -> None:
    agent, _model = scripted(when("2 + 2", say("4")), when("4 times", say("16")), tools=[])

    async with asyncio.timeout(LIMIT):
        assert await streaming.from_a_generator(agent) == ["4", "16"]


@pytest.mark.soak_only
async def test_every_event_of_a_message_is_seen(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, _model = scripted(say("Roses are red", chunks=3), tools=[])

    async with asyncio.timeout(LIMIT):
        seen = await partial_messages.watch(agent, "a poem")

    assert (seen["message_start"], seen["message_stop"]) == (1, 1)
    assert seen["content_block_delta"] >= 3
    assert "Roses are red\n[complete: 13 characters]" in capsys.readouterr().out


async def test_hooks_add_deny_comment_and_stop(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, model = scripted(
        say("Hot pink."),
        *(call("Bash", command="./foo.sh", id_="foo"), say("It was denied.")),
        call("Bash", command="echo critical"),
        hooks=hook_replies.hooks,
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT):
        reasons = await hook_replies.work(agent, "colour?", "run foo", "run echo")

    assert "hot pink" in json.dumps(model.asked[0].body["messages"])
    assert "use bar.sh" in model.asked[2].tool_results["foo"]
    assert reasons == ["", "", "a hook ended the turn: a critical error: look at the log first"]
    assert "[a hook ended the turn: a critical error" in capsys.readouterr().out


async def test_a_callback_changes_where_a_file_is_written_and_denies(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    safe = sandbox.project / "safe"
    safe.mkdir()
    callback = permission_callback.Callback(safe)
    agent, model = scripted(
        call("Write", file_path=str(sandbox.project / "hello.py"), content="print(1)"),
        call("Bash", command="sudo touch x", id_="sudo"),
        say("Done."),
    )

    async with asyncio.timeout(LIMIT):
        text = await permission_callback.work(agent, "write", callback)

    assert text == "Done."
    assert [path.name for path in sandbox.project.rglob("*.py")] == ["hello.py"]
    assert (safe / "hello.py").read_text(encoding="utf-8") == "print(1)"
    assert "'sudo' is not allowed here" in model.asked[-1].tool_results["sudo"]
    assert len(callback.calls) == 2


@pytest.mark.soak_only
async def test_system_prompts_are_compared(scripted: MakeScripted) -> None:
    agent, model = scripted(Script(when("2 + 2", say("4"), say("4"))), tools=[])

    async with asyncio.timeout(LIMIT):
        answers = await system_prompts.compare(agent, "What is 2 + 2?")

    systems = sorted(json.dumps(request.body["system"]) for request in model.asked)
    assert answers == {"yours": "4", "preset and more": "4"}
    assert ["pirate" in each for each in systems].count(True) == 1
    assert ["fun fact" in each for each in systems].count(True) == 1


async def test_files_of_a_project_are_read_if_they_are_asked_for(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    project_settings.prepare(sandbox.project)
    agent, _model = scripted()

    async with asyncio.timeout(LIMIT):
        assert await project_settings.found(agent) == (False, False)
        assert await project_settings.found(agent, "project") == (True, True)


async def test_a_plugin_brings_a_command(
    scripted: MakeScripted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, model = scripted(say("Hello, Ada."))

    async with asyncio.timeout(LIMIT):
        assert await plugin.greet(agent, plugin.write_plugin(tmp_path), "Ada") == "Hello, Ada."

    assert "Greet Ada in one short sentence" in json.dumps(model.asked[0].body["messages"])
    assert "commands of the plugin: ['demo:greet']" in capsys.readouterr().out


@pytest.mark.soak_only
async def test_only_the_chosen_tools_exist(scripted: MakeScripted) -> None:
    agent, _model = scripted(Script(say("Read.")))

    async with asyncio.timeout(LIMIT):
        assert await which_tools.tools_of(agent, ["Read", "Glob"]) == ["Glob", "Read"]


@pytest.mark.soak_only
async def test_the_clis_own_budget_ends_a_task_and_its_cost_is_known(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, _model = scripted(call("Bash", command="true"), allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT):
        cost = await max_budget.work(agent, "work", 0.0001)

    assert cost > 0.0001
    assert "over the budget: the session reached max_budget_usd" in capsys.readouterr().out


async def test_the_debug_log_is_read_from_stderr(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("4"))

    async with asyncio.timeout(LIMIT):
        lines = await stderr_lines.errors_of(agent, "2 + 2?")

    assert "[DEBUG]" in "".join(lines)
