"""`steersman console`, run as users run it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from steersman.cli.arguments import load_agent
from steersman.cli.main import main
from steersman.errors import UsageError
from steersman.web import Client

LIMIT = 60.0
LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=([\w-]+)")


@pytest.mark.process
async def test_the_demo_needs_no_key_waits_for_the_visitor_and_ends_with_ctrl_c(
    tmp_path: Path,
) -> None:
    journals = tmp_path / "journals"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "steersman.cli", "console", "--demo", "--journals", str(journals)),
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(LIMIT):
            found = LINK.search((await process.stdout.readline()).decode())
            assert found is not None
            url, token = found.groups()
            kinds = await visited(url, token)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert process.returncode == 0
    assert {"partial", "message", "asked"} <= kinds
    assert token not in out.decode() + err.decode()
    # Nothing to read for somebody who did nothing wrong: not even of the refused WebSocket.
    assert err.decode() == ""
    assert sorted(path.name for path in journals.iterdir() if path.suffix == ".jsonl")


async def visited(url: str, token: str) -> set[str]:
    """Log in with the link, and read the demo's session up to its first ask."""
    async with httpx.AsyncClient(base_url=url, headers={"Origin": url}, trust_env=False) as http:
        entered = await http.post("/login", json={"token": token})
        assert (await http.post("/login", json={"token": token})).status_code == 401
    kinds: set[str] = set()
    with pytest.raises(InvalidStatus):
        async with connect(f"ws{url.removeprefix('http')}/live", proxy=None):
            pass
    async with Client(url, token=entered.json()["token"]) as client:
        (session,) = await client.sessions()
        follow = client.follow(session.id)
        async for record in follow:
            kinds.add(record.kind)
            if record.kind == "asked":
                break
        await follow.aclose()
    return kinds


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--agent", "nonsense"], "--agent"),
        (["--agent", "no_such_module:agent"], "--agent"),
        (["--agent", "json:dumps"], "--agent"),
        (["--agent", "json:no_such_name"], "--agent"),
        (["--port", "70000"], "--port"),
        (["--journals", "/dev/null/none"], "--journals"),
    ],
)
def test_what_cannot_be_served_is_said(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["console", *arguments])

    assert status == 2
    assert complaint in capsys.readouterr().err


def test_an_agent_is_found_by_its_module_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "console_agents.py").write_text(
        "from steersman import Agent\nmine = Agent()\nother = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert load_agent("console_agents:mine") is sys.modules["console_agents"].mine
    with pytest.raises(UsageError):
        load_agent("console_agents:other")


@pytest.mark.process
def test_importing_steersman_loads_nothing_of_the_web() -> None:
    program = (
        "import sys, steersman; steersman.Agent\n"
        "print([name for name in sys.modules if name.partition('.')[0] in"
        " ('starlette', 'uvicorn', 'websockets', 'httpx') or name.startswith('steersman.web')])"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )

    assert done.stdout.strip() == "[]"
