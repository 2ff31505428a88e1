"""`steersman conform store` checks a store, also without the distribution of the other checks."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from steersman.cli.commands import BUILT_IN, GROUP
from steersman.cli.main import main
from steersman.stores import MemoryStore

CONFORM = EntryPoint("conform", "steersman_conformance.command:add_command", GROUP)
FORMS = pytest.mark.parametrize(
    "found", [BUILT_IN, (*BUILT_IN, CONFORM)], ids=["without", "with the distribution"]
)
FEW = ["--sessions", "20", "--skip", "a_5_mb_entry"]


class Forgets(MemoryStore):
    async def positions(self, key: object) -> int:
        return 0


@FORMS
def test_a_good_store_is_reported_rule_by_rule(
    found: tuple[EntryPoint, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["conform", "store", "steersman.stores:MemoryStore", *FEW], found=found)

    shown = capsys.readouterr().out.splitlines()
    assert (status, shown[-1]) == (0, "27 passed, 0 failed, 1 skipped")


@FORMS
def test_a_broken_store_fails_the_command_and_the_report_can_be_read_by_programs(
    found: tuple[EntryPoint, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, path = f"{__name__}:Forgets", tmp_path / "report.json"
    chosen = ["--only", "positions", "--only", "delete", "--skip", "delete"]

    statuses = [
        main(["conform", "store", name, *chosen, "--json", place], found=found)
        for place in ("-", str(path))
    ]

    assert statuses == [1, 1]
    report = json.loads(path.read_text())
    assert [(each["rule"], each["outcome"]) for each in report["findings"]] == [
        ("delete", "skipped"),
        ("positions", "failed"),
    ]
    assert "positions is 0, expected 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["no_such_module:make"], "No module named 'no_such_module'"),
        (["steersman.stores:no_such_store"], "no_such_store"),
        (["steersman.stores"], "a module and a function"),
        ([":make"], "a module and a function"),
        (["steersman.stores:__doc__"], "a function that returns a store"),
        (["steersman.stores:MemoryStore", "--skip", "nonsense"], "names of rules"),
    ],
)
def test_what_cannot_be_checked_is_reported_with_another_status(
    arguments: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", "store", *arguments], found=BUILT_IN) == 2

    assert reported in capsys.readouterr().err
