from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from steersman._session.link import KEPT
from steersman.errors import CliExited, ProtocolViolation, StartupExited, UsageError
from steersman.journal import Kind
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import Frame, FramePeer, entries_of, opened

KEY = "sk-ant-canary-0123456789"
TOKEN = 'tok"en\\with\u00e9 odd letters'
HEADER = "Bearer canary-header-42"

SECRETS: dict[str, Any] = {
    "env": {"ANTHROPIC_API_KEY": KEY, "MY_TOKEN": TOKEN},
    "mcp_servers": {
        "remote": {"type": "http", "url": "http://x/", "headers": {"Authorization": HEADER}}
    },
}


async def test_a_secret_that_we_send_stands_in_no_entry_of_the_journal() -> None:
    cli = ScriptedCLI()

    async with opened(cli, **SECRETS) as session:
        await (await session.send(f"use {KEY} and {TOKEN} and {HEADER}"))
    sent = [entry.line for entry in await entries_of(session) if entry.kind is Kind.SENT]

    # The CLI itself gets them as they are.
    assert cli.asked[0].last_text == f"use {KEY} and {TOKEN} and {HEADER}"
    assert any(b"[redacted]" in line for line in sent)
    for secret in (KEY, TOKEN, HEADER):
        assert not any(json.dumps(secret)[1:-1].encode() in line for line in sent)
        assert not any(secret.encode() in line for line in sent)


async def test_a_line_without_a_secret_is_kept_as_it_was_written() -> None:
    async with opened(ScriptedCLI(), **SECRETS) as session:
        turn = await session.send("nothing to hide")
        await turn
    (line,) = [
        e.line
        for e in await entries_of(session)
        if b"nothing to hide" in e.line and e.kind is Kind.SENT
    ]

    assert json.loads(line)["uuid"] == turn.uuid


async def test_an_answer_of_ours_that_the_cli_says_back_is_redacted_too() -> None:
    def fetch() -> str:
        """Fetch the key."""
        return f"the key is {KEY}"

    cli = ScriptedCLI(Script(call("mcp__functions__fetch"), say("thanks")))
    async with opened(cli, functions=[fetch], **SECRETS) as session:
        await (await session.send("go"))
    control = [
        entry.line for entry in await entries_of(session) if entry.kind in (Kind.SENT, Kind.CONTROL)
    ]

    assert any(b"the key is [redacted]" in line for line in control)
    assert not any(KEY.encode() in line for line in control)


async def test_a_secret_on_stderr_stands_in_no_error() -> None:
    faults = Faults(exit_at="initialize", stderr=f"cannot use {KEY} with {HEADER}\n")

    with pytest.raises(StartupExited) as raised:
        async with opened(ScriptedCLI(faults=faults), **SECRETS):
            pass

    assert "cannot use [redacted] with [redacted]" in raised.value.evidence.stderr_tail
    assert KEY not in str(raised.value)
    assert HEADER not in str(raised.value)


async def test_a_secret_stands_in_no_error_of_a_running_session_either() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, **SECRETS, revive=False) as session:
        turn = await session.send("go")
        await cli.wait_for_stall()
        cli.exit(1, f"the key {KEY} expired")
        settled = await turn

    assert isinstance(settled.cause, CliExited)
    assert KEY not in str(settled.cause)


async def test_the_token_of_a_header_alone_stands_in_no_error_and_no_entry() -> None:
    token = HEADER.removeprefix("Bearer ")
    faults = Faults(exit_at="initialize", stderr=f"cannot use {token}\n")

    with pytest.raises(StartupExited) as raised:
        async with opened(ScriptedCLI(faults=faults), **SECRETS):
            pass
    async with opened(ScriptedCLI(), **SECRETS) as session:
        await (await session.send(f"use {token}"))

    assert "cannot use [redacted]" in raised.value.evidence.stderr_tail
    sent = [entry.line for entry in await entries_of(session) if entry.kind is Kind.SENT]
    assert not any(token.encode() in line for line in sent)


async def test_what_looks_like_a_key_on_stderr_stands_in_no_error() -> None:
    unknown = "ghp_" + "a1B2" * 9
    faults = Faults(exit_at="initialize", stderr=f"refused: {unknown}\n")

    with pytest.raises(StartupExited) as raised:
        async with opened(ScriptedCLI(faults=faults)):
            pass

    assert "refused: [redacted]" in raised.value.evidence.stderr_tail
    assert unknown not in str(raised.value)


async def test_a_secret_that_is_cut_at_the_beginning_of_the_stderr_tail_leaves_no_rest() -> None:
    stderr = f"{KEY}{'.' * (KEPT - 10)}\n"
    faults = Faults(exit_at="initialize", stderr=stderr)

    with pytest.raises(StartupExited) as raised:
        async with opened(ScriptedCLI(faults=faults), **SECRETS):
            pass

    assert KEY[-8:] not in raised.value.evidence.stderr_tail


async def test_the_secrets_of_a_subagents_servers_are_known() -> None:
    server = {"command": "x", "args": ["--token=canary-agent-42"]}
    agents = {"rev": {"description": "d", "prompt": "p", "mcpServers": [{"one": server}]}}

    async with opened(ScriptedCLI(), agents=agents) as session:
        await (await session.send("use canary-agent-42"))

    sent = [entry.line for entry in await entries_of(session) if entry.kind is Kind.SENT]
    assert not any(b"canary-agent-42" in line for line in sent)


@pytest.mark.parametrize("option", ["settings", "managed_settings"])
async def test_the_secrets_in_settings_are_known(option: str) -> None:
    given: Any = {"env": {"OTHER": "canary-settings-42"}, "apiKeyHelper": "echo canary-helper-42"}

    async with opened(ScriptedCLI(), **{option: given}) as session:
        await (await session.send("use canary-settings-42 and echo canary-helper-42"))

    sent = [entry.line for entry in await entries_of(session) if entry.kind is Kind.SENT]
    assert not any(b"canary" in line for line in sent)


async def test_a_secret_on_stdout_that_is_noise_is_not_shown() -> None:
    faults = Faults(noise=f"key={KEY}\n".encode(), exit_at="initialize")

    with pytest.raises(ProtocolViolation) as raised:
        async with opened(ScriptedCLI(faults=faults), **SECRETS):
            pass

    assert "key=[redacted]" in raised.value.what


async def test_no_secret_stands_on_the_command_line_or_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def explode(*_: Any) -> Any:
        raise RuntimeError("no secret in here")

    cli = ScriptedCLI(Script(call("Bash", command=f"echo {KEY} > x"), say("done")))
    with caplog.at_level(logging.DEBUG):
        async with opened(cli, can_use_tool=explode, **SECRETS) as session:
            await (await session.send(f"use {KEY}"))

    (launch,) = cli.launches
    shown = f"{launch.argv} {launch!r} {caplog.text}"
    assert not any(secret in shown for secret in (KEY, TOKEN, HEADER))


async def test_the_callback_for_stderr_gets_what_was_written() -> None:
    """It is the caller's own business; what fails in it is written down and does no harm."""
    seen: list[str] = []

    def listen(chunk: str) -> None:
        seen.append(chunk)
        raise RuntimeError("listener broke")

    def play(peer: FramePeer, frame: Frame) -> None:
        peer.wire.write_stderr("warning: caf\u00e9\n".encode())

    async with opened(FramePeer(play).transport, stderr=listen) as session:
        pass
    faults = [entry.details for entry in await entries_of(session) if entry.kind is Kind.FAULT]

    assert seen == ["warning: caf\u00e9\n"]
    assert faults == [{"where": "stderr callback", "error": "RuntimeError"}]


async def test_a_line_is_redacted_as_the_file_has_it() -> None:
    async with opened(ScriptedCLI(), **SECRETS) as session:
        line = json.dumps({"key": KEY, "token": TOKEN, "header": HEADER}).encode()
        plain = b'{"nothing":"here"}'

        shown = json.loads(session.redacted(line))
        same = session.redacted(plain)
        with pytest.raises(UsageError, match="line: got a str"):
            session.redacted("a text")  # type: ignore[arg-type]

    assert shown == {"key": "[redacted]", "token": "[redacted]", "header": "[redacted]"}
    assert same is plain
    assert json.loads(session.redacted(line)) == shown
