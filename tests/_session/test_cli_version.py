"""The version of a CLI that does not report it in the handshake, and which ones are refused."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import pytest

from steersman import Agent
from steersman._launch.plan import BELOW_MINIMUM, MINIMUM_VERSION
from steersman.errors import CliTooOld, OptionRefused

pytestmark = pytest.mark.process

PROGRAM = """\
#!{python} -IS
import json, os, sys
if "--version" in sys.argv:
    with open({asked!r}, "a") as file:
        file.write("asked\\n")
    {prints}
    sys.exit()
{fails}
for line in sys.stdin:
    request = json.loads(line)
    answer = {{"subtype": "success", "request_id": request["request_id"], "response": {{}}}}
    print(json.dumps({{"type": "control_response", "response": answer}}), flush=True)
"""


class OldCli:
    """A CLI whose handshake has no version, as older ones are."""

    def __init__(self, folder: Path, prints: str = "", fails: str = "") -> None:
        self.path = folder / "claude"
        self.asked = folder / "asked"
        self.write(prints, fails)

    def write(self, prints: str, fails: str = "") -> None:
        text = PROGRAM.format(
            python=sys.executable, asked=str(self.asked), prints=prints or "pass", fails=fails
        )
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def times_asked(self) -> int:
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0

    def agent(self, *, allow_old_cli: bool = False) -> Agent:
        home = {"HOME": str(self.path.parent), "PATH": os.defpath}
        return Agent(cli_path=self.path, inherit_env=False, env=home, allow_old_cli=allow_old_cli)


async def test_a_cli_below_the_minimum_is_refused_and_asked_once(tmp_path: Path) -> None:
    cli = OldCli(tmp_path, 'print("2.1.77 (Claude Code)")')

    async with asyncio.timeout(20):
        for _ in range(2):
            with pytest.raises(CliTooOld) as refused:
                await cli.agent().start()

    assert (refused.value.found, refused.value.required) == ("2.1.77", MINIMUM_VERSION)
    assert "allow_old_cli=True" in refused.value.hint
    assert cli.times_asked == 1


async def test_a_cli_that_was_updated_is_asked_again(tmp_path: Path) -> None:
    cli = OldCli(tmp_path, 'print("2.1.77 (Claude Code)")')

    async with asyncio.timeout(20):
        with pytest.raises(CliTooOld):
            await cli.agent().start()
        cli.write(f'print("{MINIMUM_VERSION} (Claude Code), updated")')
        async with cli.agent().session() as session:
            found = session.initialized.claude_code_version
            raw = session.initialized.raw

    assert (found, cli.times_asked) == (MINIMUM_VERSION, 2)
    # As the CLI sent it: neither the version nor the fields that it did not send.
    assert raw == {}


async def test_an_old_cli_can_be_tried_and_what_does_not_hold_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cli = OldCli(tmp_path, 'print("2.1.77 (Claude Code)")')

    async with asyncio.timeout(20):
        with caplog.at_level(logging.WARNING, "steersman.session"):
            async with cli.agent(allow_old_cli=True).session() as session:
                found = session.initialized.claude_code_version

    (warning,) = caplog.messages
    assert found == "2.1.77"
    assert "2.1.77" in warning
    assert all(each in warning for each in BELOW_MINIMUM)


async def test_an_old_cli_that_refuses_an_option_is_too_old(tmp_path: Path) -> None:
    fails = "sys.exit(\"error: unknown option '--permission-prompt-tool=stdio'\")"
    cli = OldCli(tmp_path, 'print("2.0.1 (Claude Code)")', fails)

    async with asyncio.timeout(20):
        with pytest.raises(CliTooOld) as refused:
            await cli.agent().start()

    assert isinstance(refused.value.__context__, OptionRefused)


@pytest.mark.parametrize("prints", ["", 'print("Claude Code")', 'sys.exit("no")'])
async def test_a_cli_that_does_not_print_its_version_is_run(tmp_path: Path, prints: str) -> None:
    cli = OldCli(tmp_path, prints)

    async with asyncio.timeout(20), cli.agent().session() as session:
        assert session.initialized.claude_code_version == ""
