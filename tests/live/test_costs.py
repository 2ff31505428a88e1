"""What turns cost, each for itself, is together what the CLI says."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Session
from steersman.journal import Entry, Kind
from steersman.messages import Result
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Usage, call, fail, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, first_words, until

pytestmark = pytest.mark.live


async def last_total(session: Session) -> float:
    """The CLI's own last word about money, in a session that is closed."""
    entries = [each async for each in session.journal() if isinstance(each, Entry)]
    messages = [each.message for each in entries if each.kind is Kind.MESSAGE]
    totals = [each.total_cost_usd for each in messages if isinstance(each, Result)]
    return totals[-1] or 0.0


async def test_five_turns_of_all_kinds_and_a_resume_add_up_to_the_last_total(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    started = sandbox.project / "started"
    look = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    script = Script(
        when("plain", say("hello").using(Usage(100, 10)), say("again").using(Usage(100, 20))),
        when("tools", call("Bash", command="true").using(Usage(200, 30)), say("done")),
        when("someone", call("Agent", {**look, "run_in_background": False}), say("back")),
        when("fold", call("Bash", command=f"touch {started}; sleep 0.5")),
        when("and this", say("both")),
        when("refused", fail(400)),
        when("stopped", say("half") + stall()),
        strict=True,
    ).branch("look around", say("found").using(Usage(300, 40)))
    agent, _model = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            results = [await (await first.send(prompt)) for prompt in ("plain", "tools", "someone")]
            folding = await first.send("fold")
            await until(started.exists)
            folded = await first.send("and this", when="next")
            results += [await folding, await folded]
        async with agent.session(resume=first.id) as second:
            results += [await (await second.send(prompt)) for prompt in ("refused", "plain")]
            stopped = await second.send("stopped")
            await first_words(stopped, "half")
            await stopped.interrupt()
            results.append(await stopped)

    assert [each.outcome for each in results] == [
        *["completed"] * 5,
        "failed",
        "completed",
        "interrupted",
    ]
    costs = [each.cost_usd for each in results]
    assert sum(costs) == pytest.approx(await last_total(second))
    assert first.cost_usd == pytest.approx(sum(costs[:5])) == pytest.approx(await last_total(first))
    assert second.cost_usd == pytest.approx(sum(costs[5:]))
    # Two prompts that share a result: the first bears the cost.
    assert (costs[4], folded.delivery) == (0.0, "folded")
    models = [sum(each.cost_usd for each in result.model_usage.values()) for result in results]
    assert models == pytest.approx(costs)
