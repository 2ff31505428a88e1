"""A conversation of the scripted CLI is resumed by another process, as with the stock CLI."""

from __future__ import annotations

from steersman.options import Revival
from steersman.testing.faults import FaultPlan, FaultyTransport, Kill
from steersman.testing.script import Script, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
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
