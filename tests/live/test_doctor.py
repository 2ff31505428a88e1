"""`steersman doctor` on the stock CLI: a machine that works, and one that does not."""

from __future__ import annotations

import json
from pathlib import Path

from steersman.testing.sandbox import CliSandbox
from tests.live.commands import command_env, run_command

NOWHERE = "http://127.0.0.1:9"


def test_a_machine_that_works_is_described(cli: Path, sandbox: CliSandbox) -> None:
    env = command_env(sandbox.env(NOWHERE), cli)

    run = run_command(env, sandbox.project, "doctor", "--json")

    assert run.returncode == 0, run.stdout
    found = json.loads(run.stdout)
    status = {each["name"]: each["status"] for each in found["findings"]}
    text = {each["name"]: each["text"] for each in found["findings"]}
    assert {status[name] for name in ("cli", "protocol", "login", "config", "disk")} == {"ok"}
    assert text["cli"].endswith(f", {cli} (STEERSMAN_CLI)")
    assert "capabilities; handshake in" in text["protocol"]
    assert text["login"].startswith("ANTHROPIC_API_KEY, found by the CLI")
    assert env["ANTHROPIC_API_KEY"] not in run.stdout + run.stderr


def test_no_login_and_broken_servers_are_named_in_forty_columns(
    cli: Path, sandbox: CliSandbox
) -> None:
    env = command_env(sandbox.env(NOWHERE), cli, COLUMNS="40")
    del env["ANTHROPIC_API_KEY"]
    servers = {"broken": {"command": "false"}, "missing": {"command": "npx-nowhere"}}
    (sandbox.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    run = run_command(env, sandbox.project, "doctor", "--cli", str(cli))

    assert run.returncode == 5
    lines = run.stdout.splitlines()
    words = " ".join(run.stdout.split())
    assert "FAIL login the CLI has no login -> log in with `claude`, or set" in words
    assert "FAIL mcp:broken failed: Connection closed" in words
    assert "FAIL mcp:missing npx-nowhere: command not found" in words
    assert lines[-1].endswith("3 failures")
    assert [line for line in lines if len(line) > 40 and "/" not in line] == []
    assert "\x1b" not in run.stdout
