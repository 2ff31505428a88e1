"""A room that is built joins the contracts that its place asks for."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EDGES = {"mirror", "transports", "stores", "observe", "tools", "skills"}
FRONTS = {"web", "fleet"}
"""Rooms that run sessions by the front of the library."""


def contracts() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


def rooms() -> list[str]:
    """Every room of the house that is built, outermost first."""
    layers = contracts()["importlinter:contract:rings"]["layers"]
    source = ROOT / "src/steersman"
    return [
        name
        for name in re.findall(r"\w+", layers)
        if (source / name).is_dir() or (source / f"{name}.py").is_file()
    ]


def members(contract: str) -> set[str]:
    listed = contracts()[f"importlinter:contract:{contract}"]["source_modules"]
    return set(re.findall(r"steersman\.(\w+)", listed))


def test_everything_from_the_protocol_inward_is_pure() -> None:
    inner = rooms()[rooms().index("_protocol") :]

    assert members("pure") == set(inner)


def test_every_edge_is_kept_from_the_machine() -> None:
    assert members("edges") == EDGES & set(rooms())


def test_what_runs_sessions_knows_the_front_and_not_the_machine() -> None:
    assert members("fronts") == FRONTS & set(rooms())
