"""What a turn of a resumed conversation costs on a CLI whose results do not say it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steersman.journal.replaying import replay
from tests._session.peers import GREETING, Frame, FramePeer, answer_to, entries_of, opened, result

OLD, NEW = "2.1.300", "2.1.325"
PAST, SUM = 0.5, 0.75


def usage(cost: float) -> Frame:
    return {"m": {"inputTokens": int(cost * 100), "costUSD": cost}}


def resuming(version: str, report: Any) -> FramePeer:
    """Return a CLI of this version with a past, whose answer to `get_usage` is `report`."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            added: Frame = {"total_cost_usd": SUM, "modelUsage": usage(SUM)}
            if version == NEW:
                added["model_usage_since_last_result"] = usage(SUM - PAST)
            peer.say(result([frame["uuid"]], **added))
        elif frame["type"] == "control_request":
            peer.say(_answer(frame, version, report))

    return FramePeer(play, greets=False)


def _answer(frame: Frame, version: str, report: Any) -> Frame:
    if frame["request"]["subtype"] == "initialize":
        return answer_to(frame, {**GREETING, "claude_code_version": version})
    if report is not None:
        return answer_to(frame, {"session": report})
    refusal = {"subtype": "error", "request_id": frame["request_id"], "error": "no such request"}
    return {"type": "control_response", "response": refusal}


REPORT = {"total_cost_usd": PAST, "model_usage": usage(PAST)}


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_turn_is_not_charged_the_past_of_its_conversation(version: str) -> None:
    async with (
        asyncio.timeout(5),
        opened(resuming(version, REPORT).transport, resume="s") as session,
    ):
        turn = await (await session.send("go"))

        assert (turn.cost_usd, turn.model_usage["m"].input_tokens) == (0.25, 25)
        assert session.cost_usd == 0.25
    again = replay(await entries_of(session))
    assert again.turns[turn.uuid].cost_usd == again.snapshot.stats.cost_usd == 0.25


@pytest.mark.parametrize(("version", "options"), [(OLD, {}), (NEW, {"resume": "s"})])
async def test_only_an_old_cli_that_resumes_is_asked(version: str, options: Any) -> None:
    peer = resuming(version, REPORT)

    async with asyncio.timeout(5), opened(peer.transport, **options):
        asked = [each["request"]["subtype"] for each in peer.sent("control_request")]

    assert asked == ["initialize"]


async def test_a_refusal_is_logged_and_the_cost_is_the_whole_total(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        async with (
            asyncio.timeout(5),
            opened(resuming(OLD, None).transport, resume="s") as session,
        ):
            turn = await (await session.send("go"))

    assert turn.cost_usd == SUM
    assert "the cost of the next turn may be too large: no such request" in caplog.text
