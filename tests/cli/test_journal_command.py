"""`steersman journal` and `steersman report`, on what a session has written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from steersman import Agent, Deny
from steersman.cli.main import main
from steersman.errors import CliExited
from steersman.journal import Entry, Kind
from steersman.observe import FlightRecord, record
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The journal of a session with a call that was denied, and one that ran."""
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"

    async def talk() -> None:
        script = Script(
            call("Bash", command="rm \x1b[2Jkept"),
            call("Bash", command="ls"),
            say("Fine."),
            say("Again."),
        )
        agent = Agent(
            transport=ScriptedCLI(script, tools={"Bash": lambda _: "a file"}),
            can_use_tool=lambda *_: Deny("not here"),
            journal=path,
        )
        async with agent.session() as session:
            await session.run("first")
            await session.run("second")

    asyncio.run(talk())
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    return out


def test_entries_are_shown_without_partial_ones(
    journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "journal", "show", journal)
    lines = shown(capsys, "journal", "show", journal, "--partial", "--json").splitlines()

    found = [json.loads(line) for line in lines]
    kinds = {each["kind"] for each in found}
    assert {"message", "partial", "sent", "settled", "decided"} <= kinds
    assert " partial " not in text
    assert " settled " in text
    later = shown(capsys, "journal", "show", journal, "--after", str(found[-2]["seq"]), "--partial")
    assert len({line.split()[0] for line in later.splitlines() if line[:7].strip()}) == 1


def test_costs_are_added_up(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "journal", "cost", journal)
    *turns, total = map(
        json.loads, shown(capsys, "journal", "cost", journal, "--json").splitlines()
    )

    assert text.splitlines()[-1].endswith("2 turns")
    assert sum(each["cost_usd"] for each in turns) == pytest.approx(total["total_cost_usd"])
    assert sum(total["models"].values()) == pytest.approx(total["total_cost_usd"])


def test_decisions_are_shown_with_who_made_them(
    journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(shown(capsys, "journal", "asks", journal).split())

    assert "deny" in text
    assert "callback" in text
    assert "not here" in text


def test_a_policy_is_tried_on_what_happened(
    journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('forbid = ["Bash(ls)"]\n')

    words = ("journal", "policy", journal, str(policy))
    text = " ".join(shown(capsys, *words, "--changed").split())
    every = [json.loads(line) for line in shown(capsys, *words, "--json").splitlines()]

    assert text == "changed ran -> deny Bash ls forbid Bash(ls)"
    assert [(each["ran"], each["changes"]) for each in every] == [(False, False), (True, True)]


@pytest.mark.parametrize(
    "words", [("show", "/nowhere"), ("cost", __file__), ("policy", "/nowhere", "/nowhere")]
)
def test_a_file_that_is_no_journal_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["journal", *words]) == 2

    assert "steersman: " in capsys.readouterr().err


def test_a_flight_record_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = CliExited("claude exited with status 9", hint="look at its log")
    error.__cause__ = ValueError("no \x1b[2Jmemory")
    entries = [Entry(n, 1000.0 + n, Kind.SENT, b'{"type":"user"}') for n in range(15)]
    record(
        tmp_path,
        FlightRecord(
            error=error,
            session_id="5e551077-0000-4000-8000-000000000000",
            entries=entries,
            stderr_tail="Out of memory\n",
            options=["model"],
            versions={"cli": "2.1.325"},
        ),
        now=1020.0,
    )

    text = " ".join(shown(capsys, "report", str(tmp_path)).split())

    assert "error CliExited (cli_exited): claude exited with status 9" in text
    assert "What to do: look at its log" in text
    assert "because ValueError: no \\x1b[2Jmemory" in text
    assert "with cli 2.1.325" in text
    assert "sent 5 more before these" in text
    assert "stderr Out of memory" in text
    assert "--resume 5e551077-0000-4000-8000-000000000000" in text
    (line,) = shown(capsys, "report", str(tmp_path), "--json").splitlines()
    assert json.loads(line)["flight_record"] == 1


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"flight_record": 99}'])
def test_what_is_no_flight_record_is_refused(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "flight-1.json").write_text(content)

    assert main(["report", str(tmp_path)]) == 2

    assert "BUNDLE" in capsys.readouterr().err
