"""What a call of the public surface raises is a `SteersmanError`, as docs/errors.md states."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Session
from steersman.errors import RequestTimeout, SteersmanError
from steersman.messages import parse_message
from steersman.stores import read_journal
from steersman.testing.script import Script, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import LIMIT, opened


def agent(**options: Any) -> Agent:
    return Agent(transport=ScriptedCLI(Script(stall(), say("late"))), **options)


async def wait_too_short(session: Session) -> None:
    await session.send("go")
    await session.finish(0.01)


async def send_after_the_end(session: Session) -> None:
    await session.aclose()
    await session.send("go")


async def start_again(session: Session) -> None:
    await session.start()


async def call_no_verb(session: Session) -> None:
    await session.call(5)  # type: ignore[arg-type]


async def listen_to_nothing(session: Session) -> None:
    session.on("nothing", print)  # type: ignore[call-overload]


async def send_a_number(session: Session) -> None:
    await session.send(5)  # type: ignore[arg-type]


async def rewind_to_nowhere(session: Session) -> None:
    await session.rewind("nowhere")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "act",
    [
        wait_too_short,
        send_after_the_end,
        start_again,
        call_no_verb,
        listen_to_nothing,
        send_a_number,
        rewind_to_nowhere,
    ],
    ids=lambda act: act.__name__,
)
async def test_what_a_session_raises_is_ours(act: Callable[[Session], Awaitable[None]]) -> None:
    async with opened(ScriptedCLI(Script(stall(), say("late")))) as session:
        with pytest.raises(SteersmanError):
            await act(session)


async def test_a_wait_that_is_too_short_is_a_timeout_that_says_of_what() -> None:
    async with opened(ScriptedCLI(Script(stall(), say("late")))) as session:
        with pytest.raises(RequestTimeout, match=r"finish: .* 0\.01 s") as caught:
            await wait_too_short(session)

    assert isinstance(caught.value, TimeoutError)


STARTS: dict[str, Callable[[Path], Agent]] = {
    "journal is a folder": lambda place: agent(journal=place),
    "journal in no folder": lambda place: agent(journal=place / "none" / "journal"),
    "no cwd": lambda place: Agent(cwd=place / "none", cli_path="/bin/sh"),
    "no CLI": lambda place: Agent(cli_path=place / "none"),
    "CLI is a folder": lambda place: Agent(cli_path=place),
}


PROGRAMS = ("no cwd",)


@pytest.mark.parametrize(
    "how",
    [pytest.param(how, marks=pytest.mark.process if how in PROGRAMS else ()) for how in STARTS],
)
async def test_what_a_start_raises_is_ours(how: str, tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        with pytest.raises(SteersmanError):
            await STARTS[how](tmp_path).start()


def test_what_reading_raises_is_ours(tmp_path: Path) -> None:
    with pytest.raises(SteersmanError):
        list(read_journal(tmp_path / "none"))
    with pytest.raises(SteersmanError):
        parse_message(b"nonsense")
