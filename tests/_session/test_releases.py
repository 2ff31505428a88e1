"""What a session knows of the release of its CLI from the start, and what it makes of it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from steersman import _factory
from steersman._releases import MEANINGS, ReleaseTable
from steersman.agent import Session
from steersman.control.mcp import McpCall
from steersman.errors import RequestRefused, UnsafeCli
from steersman.options import Options
from tests._session.peers import GREETING, INIT, Frame, FramePeer, answer_to, opened, result

CHECKED = "mcp_call_check_permissions_v1"
TABLE = ReleaseTable(
    newest="2.1.325",
    tested=("2.1.191", "2.1.300", "2.1.325"),
    unsafe=(("2.1.285", "2.1.302", "calls run unasked"),),
)


def reporting(version: str, *listed: str, opens: tuple[str, ...] = ()) -> FramePeer:
    """Return a CLI of this version that lists these capabilities, and others when a turn opens."""

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say({**INIT, "capabilities": [*listed, *opens]}, result([frame["uuid"]]))
        elif frame.get("request", {}).get("subtype") == "initialize":
            told = {"claude_code_version": version, "capabilities": list(listed)}
            peer.say(answer_to(frame, {**GREETING, **told}))
        elif frame["type"] == "control_request":
            peer.say(answer_to(frame, {"content": "ran"}))

    return FramePeer(play, greets=False)


def no_fork(*_: object) -> Any:
    raise AssertionError("nothing is forked")


def of(peer: FramePeer, **options: Any) -> Session:
    return _factory.build_session(
        Options(**options), peer.transport, time.time, no_fork, releases=TABLE
    )


async def test_the_promises_of_a_release_are_known_before_the_first_turn() -> None:
    async with opened(reporting("2.1.260").transport) as old:
        assert old.capabilities is not None
        assert {"lifecycle", "interrupt_receipts"} <= old.capabilities
        assert not {"continues_turns", "soft_pause", "deferral"} & old.capabilities
    async with opened(reporting("2.1.325", "ui_surface_v1").transport) as new:
        assert new.capabilities is not None
        assert {*MEANINGS, "ui_surface_v1"} <= new.capabilities


async def test_what_a_turn_lists_is_added() -> None:
    async with opened(reporting("2.1.325", "one", opens=("two",)).transport) as session:
        await (await session.send("go"))
        assert session.capabilities is not None
        assert {"continues_turns", "one", "two"} <= session.capabilities


async def test_a_promise_that_does_not_hold_is_logged_once_and_described(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "steersman.session"):
        async with opened(reporting("2.1.260").transport) as session:
            await (await session.send("go"))
            described = session.describe()

    (said,) = caplog.messages
    assert "version 2.1.260" in said
    assert MEANINGS["continues_turns"] in said
    assert described == "idle; not on CLI 2.1.260: continues_turns, soft_pause, deferral"


async def test_of_a_release_that_keeps_all_promises_nothing_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "steersman.session"):
        async with opened(reporting("2.1.325", "ui_surface_v1").transport) as session:
            assert session.describe() == "idle"

    assert caplog.messages == []


async def test_a_release_newer_than_the_newest_tested_starts_and_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "steersman.session"):
        async with opened(reporting("2.1.999", "ui_surface_v1").transport) as session:
            await (await session.send("go"))
            await (await session.send("go on"))

    (said,) = caplog.messages
    assert "version 2.1.999" in said
    assert "steersman conform" in said


async def test_a_release_whose_guards_are_broken_is_refused() -> None:
    peer = reporting("2.1.300")

    async with asyncio.timeout(5):
        with pytest.raises(UnsafeCli) as refused:
            await of(peer).start()

    error = refused.value
    assert (error.found, error.broken, error.good) == ("2.1.300", "calls run unasked", "2.1.325")
    assert "2.1.325" in error.hint
    assert "allow_unsafe_cli=True" in error.hint
    assert peer.was_killed


async def test_a_release_whose_guards_are_broken_can_be_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "steersman.session"):
        async with asyncio.timeout(5), of(reporting("2.1.300"), allow_unsafe_cli=True) as session:
            assert session.state == "idle"

    assert any("calls run unasked" in each for each in caplog.messages)


async def test_a_call_that_must_be_checked_is_refused_until_the_cli_lists_the_check() -> None:
    peer = reporting("2.1.260")

    async with opened(peer.transport) as session:
        with pytest.raises(RequestRefused, match=CHECKED):
            await session.call(McpCall(tool="mcp__a__b", check_permissions=True))
        assert (await session.call(McpCall(tool="mcp__a__b"))).content == "ran"

    calls = [each["request"] for each in peer.sent("control_request")]
    assert [each.get("check_permissions") for each in calls if each["subtype"] == "mcp_call"] == [
        None
    ]


@pytest.mark.parametrize("where", ["initialize", "init"])
async def test_a_call_that_must_be_checked_is_sent_once_the_cli_lists_the_check(where: str) -> None:
    early, late = ((CHECKED,), ()) if where == "initialize" else ((), (CHECKED,))

    async with opened(reporting("2.1.325", *early, opens=late).transport) as session:
        if where == "init":
            await (await session.send("go"))
        answer = await session.call(McpCall(tool="mcp__a__b", check_permissions=True))

    assert answer.content == "ran"
