"""Broken starts: the exact class, a text that names the cause, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steersman._launch.plan import MINIMUM_VERSION
from steersman.agent import Agent, Session
from steersman.errors import (
    ChannelClosed,
    CliTooOld,
    LaunchError,
    NotLoggedIn,
    OptionRefused,
    ProtocolViolation,
    ResumeNotFound,
    SessionInUse,
    StartupError,
    StartupExited,
    StartupTimeout,
    SteersmanError,
    UsageError,
)
from steersman.hooks import Hooks, PreToolUse
from steersman.options import StartupLimits
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.scripted.cli import Faults, ScriptedCLI, StartPhase
from tests._session.peers import GREETING, Frame, FramePeer, answer_to

BRIEF = StartupLimits(spawn=0.02, first_byte=0.02, initialize=0.02)


async def failed_start(transport: Any, **options: Any) -> tuple[SteersmanError, Session]:
    session = Agent(transport=transport, **options).session()
    async with asyncio.timeout(5):
        with pytest.raises(SteersmanError) as raised:
            await session.start()
    assert session.state == "failed"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return raised.value, session


@pytest.mark.parametrize("phase", ["first byte", "initialize"])
async def test_a_mute_cli_is_given_up_in_the_phase_in_which_it_is_mute(phase: StartPhase) -> None:
    cli = ScriptedCLI(faults=Faults(mute_at=phase))

    error, _ = await failed_start(cli, startup=BRIEF)

    assert type(error) is StartupTimeout
    assert error.what == f"the CLI did not get past its start-up phase '{phase}' within 0.02 s"
    assert error.evidence.phase == phase
    assert f"StartupLimits({phase.replace(' ', '_')}=" in error.hint
    assert cli.running == 0


async def test_a_cli_that_is_mute_in_a_turn_has_started_and_can_be_closed() -> None:
    cli = ScriptedCLI(faults=Faults(mute_at="turn"))

    async with asyncio.timeout(5):
        async with Agent(transport=cli, close_grace=0.01).session() as session:
            turn = await session.send("hello?")
        settled = await turn

    assert settled.outcome == "cancelled"
    assert cli.running == 0


async def test_a_transport_that_never_opens_is_given_up_as_well() -> None:
    class Stuck:
        async def open(self, launch: Launch, receiver: Receiver) -> Channel:
            await asyncio.get_running_loop().create_future()
            raise AssertionError

    error, _ = await failed_start(Stuck(), startup=BRIEF)

    assert type(error) is StartupTimeout
    assert error.evidence.phase == "spawn"


@pytest.mark.parametrize(
    ("raised", "what"),
    [
        (LaunchError("no room on this machine"), "no room on this machine"),
        (KeyError("x"), "the transport failed: KeyError('x')"),
    ],
)
async def test_a_transport_that_cannot_launch_says_so_itself(raised: Exception, what: str) -> None:
    class Broken:
        async def open(self, launch: Launch, receiver: Receiver) -> Channel:
            raise raised

    error, _ = await failed_start(Broken())

    assert type(error) is LaunchError
    assert (error.what, error.evidence.phase) == (what, "launch")


@pytest.mark.parametrize(
    ("stderr", "expected", "says"),
    [
        ("error: unknown option '--frobnicate'\n", OptionRefused, "'--frobnicate'"),
        ("Error: Settings file not found: /nowhere.json\n", OptionRefused, "/nowhere.json"),
        ("Error: Invalid MCP config: is not JSON\n", OptionRefused, "MCP config"),
        (
            "error: option '--permission-mode <mode>' argument 'often' is invalid.\n",
            OptionRefused,
            "'often'",
        ),
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges\n",
            OptionRefused,
            "root/sudo",
        ),
        ("No conversation found with session ID: 0000\n", ResumeNotFound, "0000"),
        ("Error: Session ID 1111 is already in use.\n", SessionInUse, "1111"),
        ("Not logged in · Please run /login\n", NotLoggedIn, "/login"),
        ("Segmentation fault\n", StartupExited, "Segmentation fault"),
        ("", StartupExited, "without an explanation"),
    ],
)
@pytest.mark.parametrize("phase", ["first byte", "initialize"])
async def test_a_cli_that_exits_before_it_is_ready_is_diagnosed_by_its_own_words(
    phase: StartPhase, stderr: str, expected: type[SteersmanError], says: str
) -> None:
    cli = ScriptedCLI(faults=Faults(exit_at=phase, exit_status=1, stderr=stderr))

    error, _ = await failed_start(cli)

    assert type(error) is expected
    assert says in error.what
    assert error.hint
    assert error.evidence.status == 1
    assert error.evidence.stderr_tail == stderr.strip()
    assert error.evidence.argv[0] == "claude"


async def test_a_cli_that_was_killed_before_it_was_ready_is_told_by_its_signal() -> None:
    cli = ScriptedCLI(faults=Faults(exit_at="initialize", exit_status=-9))

    error, _ = await failed_start(cli)

    assert type(error) is StartupExited
    assert error.what == "the CLI was killed by signal 9 before it was ready"


async def test_a_refused_resume_is_read_off_the_result_when_stderr_is_empty() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        text = "No conversation found with session ID: 4711"
        refusal = {"subtype": "error_during_execution", "is_error": True, "errors": [text]}
        peer.say({"type": "result", **refusal})
        peer.wire.exit(1)

    error, _ = await failed_start(FramePeer(play, greets=False).transport, resume="4711")

    assert type(error) is ResumeNotFound
    assert "4711" in error.what


async def test_what_stands_on_stdout_instead_of_the_protocol_is_shown() -> None:
    noise = b"Welcome to the corporate proxy!\nPlease accept the terms.\n"
    faults = Faults(noise=noise, exit_at="initialize", exit_status=3)

    error, _ = await failed_start(ScriptedCLI(faults=faults))

    assert type(error) is ProtocolViolation
    assert "Welcome to the corporate proxy!" in error.what


async def test_garbage_on_stdout_and_then_nothing_is_a_timeout_that_shows_it() -> None:
    faults = Faults(noise=b"\x00\xff garbage\n", mute_at="initialize")

    error, _ = await failed_start(ScriptedCLI(faults=faults), startup=BRIEF)

    assert type(error) is StartupTimeout
    assert "garbage" in error.what


async def test_garbage_before_the_handshake_does_not_hinder_it() -> None:
    cli = ScriptedCLI(faults=Faults(noise=b"npm notice: update me\n\n[1, 2]\n"))

    async with asyncio.timeout(5), Agent(transport=cli).session() as session:
        settled = await (await session.send("hello"))

    assert settled.text == "Echo: hello"


async def test_a_cli_that_refuses_the_handshake_says_why() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_request":
            inside = {"subtype": "error", "request_id": frame["request_id"], "error": "bad hooks"}
            peer.say({"type": "control_response", "response": inside})

    error, _ = await failed_start(FramePeer(play, greets=False).transport)

    assert type(error) is StartupError
    assert error.what == "the CLI refused the handshake: bad hooks"


async def test_a_cli_that_is_too_old_is_refused_with_both_versions() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_request":
            peer.say(answer_to(frame, {"claude_code_version": "1.0.128 (Claude Code)"}))

    peer = FramePeer(play, greets=False)
    error, _ = await failed_start(peer.transport)

    assert isinstance(error, CliTooOld)
    assert (error.found, error.required) == ("1.0.128 (Claude Code)", MINIMUM_VERSION)
    assert peer.was_killed


async def test_a_cli_that_exits_right_behind_its_answer_has_not_started() -> None:
    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_request":
            peer.say(answer_to(frame, GREETING))
            peer.wire.write_stderr(b"Segmentation fault")
            peer.wire.exit(139)

    error, _ = await failed_start(FramePeer(play, greets=False).transport)

    assert type(error) is StartupExited
    assert error.evidence.status == 139


async def test_closing_a_session_that_is_starting_is_told_as_such() -> None:
    cli = ScriptedCLI(faults=Faults(mute_at="initialize"))
    session = Agent(transport=cli, close_grace=0.01).session()

    async with asyncio.timeout(5):
        starting = asyncio.ensure_future(session.start())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await session.aclose()
        with pytest.raises(ChannelClosed, match="closed while it was starting"):
            await starting

    assert cli.running == 0


async def test_the_handshake_carries_hooks_and_servers_and_is_answered_while_they_are_set_up() -> (
    None
):
    hooks = Hooks()
    hooks.on(PreToolUse, "Bash", timeout=7)(lambda _: None)

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    cli = ScriptedCLI()
    async with (
        asyncio.timeout(5),
        Agent(transport=cli, hooks=hooks, functions=[add]).session() as session,
    ):
        first = await anext(_inits(await session.send("hello")))

    greeting = cli.received[0]["request"]
    assert greeting["hooks"] == {
        "PreToolUse": [
            {
                "hookCallbackIds": ["hook_0"],
                "matcher": "Bash",
                "timeout": 12.0,
                "onFailure": "block",
            }
        ]
    }
    assert greeting["sdkMcpServers"] == ["functions"]
    assert "mcp__functions__add" in first["tools"]
    assert first["mcp_servers"] == [{"name": "functions", "status": "connected", "source": "sdk"}]


async def test_a_session_starts_once() -> None:
    async with asyncio.timeout(5), Agent(transport=ScriptedCLI()).session() as session:
        with pytest.raises(UsageError, match="not started before"):
            await session.start()


async def test_a_session_that_failed_to_start_raises_the_cause_ever_after() -> None:
    cli = ScriptedCLI(faults=Faults(exit_at="first byte", stderr="Segmentation fault\n"))

    error, session = await failed_start(cli)

    with pytest.raises(StartupExited) as later:
        await session.send("hello")
    assert later.value is error
    await session.aclose()


async def test_cancelling_a_start_leaves_no_cli_behind() -> None:
    cli = ScriptedCLI(faults=Faults(mute_at="initialize"))
    session = Agent(transport=cli).session()

    starting = asyncio.ensure_future(session.start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    starting.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([starting])

    assert starting.cancelled()
    assert cli.running == 0


async def test_the_id_of_the_conversation_is_known_before_the_start() -> None:
    cli = ScriptedCLI()
    session = Agent(transport=cli).session()
    chosen = session.id

    async with asyncio.timeout(5), session:
        await (await session.send("hello"))

    assert chosen is not None
    assert f"--session-id={chosen}" in cli.launches[0].argv
    assert session.id == chosen


async def _inits(turn: Any) -> Any:
    async for line in turn.raw():
        frame = json.loads(line)
        if frame.get("subtype") == "init":
            yield frame
