"""`steersman conform` on the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from steersman.cli.main import main
from tests.live.test_harness import stock_cli


def test_a_cli_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["conform", "--cli", "/nowhere/claude"])

    assert status == 2
    assert "/nowhere/claude" in capsys.readouterr().err


def test_a_file_that_cannot_be_run_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "claude"
    program.write_text("text")

    status = main(["conform", "--cli", str(program)])

    assert status == 2
    assert "its mode does not allow it" in capsys.readouterr().err


def test_a_program_that_is_no_cli_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    status = main(["conform", "--cli", str(program)])

    assert status == 2
    assert "does not print its version" in capsys.readouterr().err


def test_a_check_that_does_not_exist_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["conform", "--only", "no-such-check"])

    assert status == 2
    assert "no-such-check" in capsys.readouterr().err


@pytest.mark.live
def test_a_scene_of_the_stock_cli_is_checked_told_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli, found, baseline = str(stock_cli()), tmp_path / "found.json", tmp_path / "mine.json"
    only = ["conform", "--cli", cli, "--only", "bare-handshake"]

    checked = main([*only, "--json", str(found)])
    table = capsys.readouterr().out
    recorded = main([*only, "--record", "--baseline", str(baseline)])
    compared = main([*only, "--baseline", str(baseline), "--json", "-"])

    assert checked == recorded == compared == 0
    assert "initialize-is-answered-without-a-prompt" in table
    assert table.splitlines()[-1].startswith("OK: 10 holds")
    assert json.loads(found.read_text())["ok"] is True
    assert len(json.loads(baseline.read_text())["observed"]) == 10
