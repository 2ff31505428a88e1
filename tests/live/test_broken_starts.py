"""A start that cannot work says why, in time, and leaves nobody behind."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import (
    CliNotExecutable,
    CliNotFound,
    NotLoggedIn,
    OptionRefused,
    ProtocolViolation,
    ResumeNotFound,
    SessionInUse,
    StartupExited,
    StartupTimeout,
    SteersmanError,
    TurnFailed,
    WorkingDirectoryMissing,
)
from steersman.options import StartupLimits
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, fail, say
from steersman.transports.command import CommandTransport
from tests.live.staging import LIMIT, MakeScripted, inhabitants, vanished

pytestmark = pytest.mark.live

NOBODY = str(uuid.UUID(int=7))

IMPATIENT = StartupLimits(spawn=5, first_byte=0.3, initialize=0.3)


@dataclass(frozen=True, slots=True)
class Broken:
    """A start that fails: how it is asked for, and what we must be told."""

    error: type[SteersmanError]
    names: tuple[str, ...]
    """Words that the message must have."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    script: str | None = None
    """What stands in for the CLI: a shell script."""
    phase: str = "initialize"
    status: int | None = None


STOCK: Mapping[str, Broken] = {
    "unknown flag": Broken(
        OptionRefused, ("--no-such-flag",), {"extra_args": {"no-such-flag": None}}, status=1
    ),
    "missing settings file": Broken(
        OptionRefused, ("/nowhere/settings.json",), {"settings": "/nowhere/settings.json"}, status=1
    ),
    "bad permission mode": Broken(
        OptionRefused,
        ("--permission-mode", "sometimes"),
        {"extra_args": {"permission-mode": "sometimes"}},
        status=1,
    ),
    "bad mcp config": Broken(
        OptionRefused,
        ("MCP", "/nowhere/mcp.json"),
        {"extra_args": {"mcp-config": "/nowhere/mcp.json"}},
        status=1,
    ),
    "unknown conversation": Broken(ResumeNotFound, (NOBODY,), {"resume": NOBODY}, status=1),
    "conversation without a uuid": Broken(
        ResumeNotFound, ("not-a-uuid",), {"resume": "not-a-uuid"}, status=1
    ),
}

STAND_INS: Mapping[str, Broken] = {
    "exit before init": Broken(
        StartupExited,
        ("exited before it was ready", "out of order"),
        script="echo out of order >&2; exit 3",
        status=3,
    ),
    "exit without an explanation": Broken(
        StartupExited, ("without an explanation",), script="exit 0", status=0
    ),
    "killed -9": Broken(StartupExited, ("signal 9",), script="kill -9 $$", status=-9),
    "killed -9 with children": Broken(
        StartupExited, ("signal 9",), script="sleep 60 & kill -9 $$", status=-9
    ),
    "garbage, then the end": Broken(
        ProtocolViolation, ("Segmentation",), script="echo Segmentation fault; exit 139", status=139
    ),
    "garbage, then silence": Broken(
        ProtocolViolation,
        ("login shell", "no JSON for 1 s", "StartupLimits(noise=...)"),
        script="echo welcome to this login shell; exec sleep 60",
    ),
    "a prompt without the end of a line": Broken(
        ProtocolViolation,
        ("not a line of JSON", "no JSON for 0.1 s"),
        {"startup": StartupLimits(noise=0.1)},
        script="printf 'Password: '; exec sleep 60",
    ),
    "mute from the first byte": Broken(
        StartupTimeout,
        ("first byte", "0.3 s"),
        {"startup": IMPATIENT},
        script="sleep 60",
        phase="first byte",
    ),
    "mute and deaf to SIGTERM": Broken(
        StartupTimeout,
        ("first byte", "0.3 s"),
        {"startup": IMPATIENT},
        script="trap '' TERM HUP INT; while :; do sleep 60; done",
        phase="first byte",
    ),
    "mute in the handshake": Broken(
        StartupTimeout,
        ("initialize", "0.3 s"),
        {"startup": IMPATIENT},
        script="""echo '{"type":"system","subtype":"status"}'; sleep 60""",
    ),
    "closes its output and stays": Broken(
        StartupTimeout,
        ("first byte", "0.3 s"),
        {"startup": IMPATIENT},
        script="exec >&- 2>&-; sleep 60",
        phase="first byte",
    ),
}


async def assert_breaks(agent: Agent, broken: Broken, box: CliSandbox) -> None:
    begun = time.monotonic()
    with pytest.raises(SteersmanError) as caught:
        async with asyncio.timeout(LIMIT), agent.session():
            pass

    error = caught.value
    assert type(error) is broken.error
    assert [word for word in broken.names if word not in str(error)] == []
    assert error.hint
    assert (error.evidence.phase, error.evidence.status) == (broken.phase, broken.status)
    assert error.evidence.argv
    assert time.monotonic() - begun < 5
    assert inhabitants(box.root) == {}


@pytest.mark.parametrize("broken", STOCK.values(), ids=STOCK)
async def test_what_the_stock_cli_refuses(
    scripted: MakeScripted, sandbox: CliSandbox, broken: Broken
) -> None:
    agent, model = scripted(**broken.options)

    await assert_breaks(agent, broken, sandbox)

    assert model.asked == []


@pytest.mark.parametrize("broken", STAND_INS.values(), ids=STAND_INS)
async def test_what_never_becomes_a_cli(
    scripted: MakeScripted, sandbox: CliSandbox, broken: Broken
) -> None:
    program = sandbox.root / "claude"
    program.write_text(f"#!/bin/sh\n{broken.script}\n")
    program.chmod(0o755)
    agent, _model = scripted(**broken.options, cli_path=program)

    await assert_breaks(agent, broken, sandbox)


async def test_a_far_side_that_never_comes_up(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    program = sandbox.root / "far"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    agent, _model = scripted(startup=StartupLimits(spawn=0.3))

    with pytest.raises(StartupTimeout, match=r"spawn.*0\.3 s") as caught:
        async with (
            asyncio.timeout(LIMIT),
            agent.session(transport=CommandTransport((str(program),))),
        ):
            pass

    assert caught.value.evidence.phase == "spawn"
    # The far shell has half a second to put away what it was given.
    assert await vanished(sandbox.root, within=2) == {}


def without_mode(box: CliSandbox) -> Path:
    program = box.root / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    return program


def without_format(box: CliSandbox) -> Path:
    program = box.root / "claude"
    program.write_bytes(b"\x7fNOTELF" * 20)
    program.chmod(0o755)
    return program


def without_interpreter(box: CliSandbox) -> Path:
    program = box.root / "claude"
    program.write_text("#!/nowhere/sh\n")
    program.chmod(0o755)
    return program


def missing(box: CliSandbox) -> Path:
    return box.root / "no" / "claude"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (missing, CliNotFound),
        (without_mode, CliNotExecutable),
        (without_format, CliNotExecutable),
        (without_interpreter, CliNotExecutable),
    ],
)
async def test_what_cannot_be_run(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    make: Callable[[CliSandbox], Path],
    error: type[SteersmanError],
) -> None:
    program = make(sandbox)
    agent, _model = scripted(cli_path=program)

    with pytest.raises(error, match=str(program)) as caught:
        async with asyncio.timeout(LIMIT), agent.session():
            pass

    assert type(caught.value) is error
    assert caught.value.hint
    assert caught.value.evidence.phase == "launch"
    assert inhabitants(sandbox.root) == {}


async def test_a_working_directory_that_is_not_there(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    nowhere = sandbox.root / "nowhere"
    agent, _model = scripted(cwd=nowhere)

    with pytest.raises(WorkingDirectoryMissing, match=str(nowhere)) as caught:
        async with asyncio.timeout(LIMIT), agent.session():
            pass

    assert caught.value.hint
    assert caught.value.evidence.phase == "launch"


async def test_a_session_id_that_is_taken(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    chosen = str(uuid.uuid4())
    agent, _model = scripted(say("mine"), session_id=chosen)
    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("take it"))

    await assert_breaks(agent, Broken(SessionInUse, (chosen,), status=1), sandbox)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
async def test_bypassing_permissions_as_root(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, _model = scripted(permission_mode="bypassPermissions")

    await assert_breaks(agent, Broken(OptionRefused, ("root",), status=1), sandbox)


async def test_a_key_that_the_api_refuses_fails_the_turn_and_not_for_minutes(
    scripted: MakeScripted,
) -> None:
    script = Script(*[fail(401, "invalid x-api-key")] * 30)
    agent, model = scripted(script)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        async with asyncio.timeout(10):
            result = await (await session.send("who am I?"))

    assert result.outcome == "failed"
    assert type(result.cause) is NotLoggedIn
    assert "401" in str(result.cause)
    assert "ANTHROPIC_API_KEY" in result.cause.hint
    assert len(model.asked) <= 6


async def test_run_raises_the_refused_key_as_the_cause(scripted: MakeScripted) -> None:
    script = Script(*[fail(401, "invalid x-api-key")] * 30)
    agent, _model = scripted(script, env={"CLAUDE_CODE_MAX_RETRIES": "0"})

    with pytest.raises(TurnFailed) as caught:
        async with asyncio.timeout(10):
            await agent.run("who am I?")

    assert type(caught.value.__cause__) is NotLoggedIn


async def test_no_key_at_all(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, model = scripted()
    env = {name: value for name, value in agent.options.env.items() if name != "ANTHROPIC_API_KEY"}

    async with asyncio.timeout(LIMIT), agent.session(env=env) as session:
        result = await (await session.send("who am I?"))

    assert result.outcome == "failed"
    assert type(result.cause) is NotLoggedIn
    assert "setting_sources" in result.cause.hint
    assert model.asked == []
