"""A conversation of the scripted CLI is resumed by another process, as with the stock CLI."""

from __future__ import annotations

from steersman import Allow
from steersman.options import Revival
from steersman.permissions import PermissionContext
from steersman.testing.faults import FaultPlan, FaultyTransport, Kill
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI, Subagent
from steersman.testing.scripted.conversation import CONTINUE
from tests._session.peers import opened


async def test_a_conversation_that_is_resumed_has_its_history() -> None:
    cli = ScriptedCLI(Script(say("Hello, Ann."), say("Ann.")))

    async with opened(cli) as first:
        await (await first.send("I am Ann."))
    async with opened(cli, resume=first.id) as second:
        settled = await (await second.send("Who am I?"))

    assert settled.text == "Ann."
    said = str(cli.asked[-1].body["messages"])
    assert all(each in said for each in ("I am Ann.", "Hello, Ann.", "Who am I?"))


async def test_a_conversation_that_is_not_resumed_begins_anew() -> None:
    cli = ScriptedCLI(Script(say("Hello, Ann."), say("Nobody.")))

    async with opened(cli) as first:
        await (await first.send("I am Ann."))
    async with opened(cli) as second:
        await (await second.send("Who am I?"))

    assert "Ann" not in str(cli.asked[-1].body["messages"])


async def test_a_turn_that_was_lost_is_taken_up_again_under_its_uuid() -> None:
    cli = ScriptedCLI(Script(say("Half ", 2) + stall(0.0), say("Half and all.")))
    transport = FaultyTransport(cli, FaultPlan(0, Kill('"text_delta"')))

    async with opened(transport, revive=Revival(backoff=0.0)) as session:
        turn = await session.send("go")
        settled = await turn

    assert (settled.outcome, settled.text) == ("completed", "Half and all.")
    assert settled.result is not None
    assert settled.result.user_message_uuids == [turn.uuid]
    assert [each.last_text for each in cli.asked] == ["go", CONTINUE]


async def test_a_prompt_that_an_earlier_process_has_answered_is_dropped() -> None:
    cli = ScriptedCLI(Script(say("Paid."), strict=True))

    async with opened(cli) as first:
        await (await first.send("pay", key="invoice 7"))
    async with opened(cli, resume=first.id) as second:
        again = await (await second.send("pay", key="invoice 7"))

    assert again.outcome == "completed"
    assert len(cli.asked) == 1
    assert cli.script.surprises == []


async def test_a_subagent_asks_under_its_own_id_and_leaves_only_its_answer() -> None:
    """As in `tests/samples/traces/subagent_foreground.jsonl`."""
    helper = Subagent(lambda given: [("Bash", {"command": given["prompt"]})])
    cli = ScriptedCLI(
        Script(call("Task", prompt="pay 7"), say("Paid.")),
        tools={"Task": helper, "Bash": lambda given: f"did {given['command']}"},
    )
    asked: list[str | None] = []

    def decide(_name: str, _given: object, context: PermissionContext) -> Allow:
        asked.append(context.agent_id)
        return Allow()

    async with opened(cli, can_use_tool=decide) as session:
        result = await (await session.send("go"))
        made, task = sorted(result.tool_calls, key=lambda each: each.name)

    assert (made.parent_tool_use_id, made.agent_id) == (task.tool_use_id, asked[0])
    assert (task.parent_tool_use_id, len(asked)) == (None, 1)
    lines = b"\n".join(cli.stage.memory.lines(session.id or "") or ())
    assert (b"did pay 7" in lines, b'"name":"Bash"' in lines) == (True, False)
