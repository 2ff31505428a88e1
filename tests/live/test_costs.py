"""What turns cost, each for itself, is together what the CLI says."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from steersman import Session
from steersman.journal import Entry, Kind, result_from_json, result_to_json
from steersman.journal.replaying import replay
from steersman.messages import Result
from steersman.options import Revival
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Usage, call, fail, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, entries_of, first_words, until

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


@pytest.mark.parametrize("has_partials", [True, False], ids=["partials", "no partials"])
async def test_the_tokens_that_a_killed_cli_had_spent_are_unreported(
    scripted: MakeScripted, sandbox: CliSandbox, *, has_partials: bool
) -> None:
    flag = sandbox.project / "flag"
    wait = f"[ -e {flag} ] || {{ touch {flag}; sleep 60; }}"
    script = Script(
        say("warm").using(Usage(50, 5)),
        call("Bash", command="true").using(Usage(200, 13, cache_read_input_tokens=30)),
        call("Bash", command=wait).using(Usage(300, 17)),
        say("All.").using(Usage(100, 2)),
        say("after").using(Usage(70, 7)),
        strict=True,
    )
    agent, model = scripted(
        script,
        allowed_tools=["Bash"],
        revive=Revival(backoff=0.01),
        include_partial_messages=None if has_partials else False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        before = await (await session.send("warm up"))
        turn = await session.send("go")
        await until(flag.exists)
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        done, after = await turn, await (await session.send("and"))
        entries = await entries_of(session)

    lost = done.unreported
    assert (done.text, done.usage.input_tokens, done.usage.output_tokens) == ("All.", 100, 2)
    assert (lost.messages, lost.usage.input_tokens) == (2, 500)
    assert lost.usage.cache_read_input_tokens == 30
    assert lost.is_exact is has_partials
    if has_partials:
        assert lost.usage.output_tokens == 30
    assert not before.unreported
    assert not after.unreported
    assert set(lost.model_usage) == set(done.model_usage)
    assert result_from_json(result_to_json(done)).unreported == lost
    replayed = replay(entries).turns
    assert replayed[turn.uuid].unreported == lost
    (settled,) = [each for each in entries if each.kind is Kind.SETTLED and turn.uuid in each.turns]
    assert settled.details["cost_usd"] == done.cost_usd
    assert settled.details["unreported"]["is_exact"] is has_partials
    model.script.assert_complete()


async def test_what_a_turn_had_spent_that_was_left_is_unreported(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    flag = sandbox.project / "flag"
    script = Script(call("Bash", command=f"touch {flag}; sleep 60").using(Usage(200, 13)))
    agent, _ = scripted(script, allowed_tools=["Bash"], close_grace=0.1)

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            turn = await session.send("go")
            await until(flag.exists)
        done = await turn

    # On a busy machine the CLI is killed before it has reported that it was interrupted.
    assert done.outcome in ("interrupted", "cancelled")
    counted = done.usage.input_tokens + done.unreported.usage.input_tokens
    assert counted == 200
