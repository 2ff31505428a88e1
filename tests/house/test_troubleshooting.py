"""The page of symptoms and cures names errors and options that there are."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import steersman.errors
from steersman import Agent, Options, Session
from steersman.options import Caps, Limits

PAGE = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
ROWS = [row for row in ROW.findall(PAGE) if row[0] not in ("symptom", "---")]

SYMPTOM = re.compile(r"`([A-Z][a-z]\w+)\b")
KEYWORD = re.compile(r"`?\b(\w+)=")


def keywords() -> set[str]:
    """Return the options, and the arguments of what the cures call."""
    found = {field.name for kind in (Options, Limits, Caps) for field in dataclasses.fields(kind)}
    for function in (Session.send, Agent.open):
        found |= set(inspect.signature(function).parameters)
    return found


def test_every_symptom_that_is_an_error_names_a_class_of_errors() -> None:
    named = {name for symptom, _, _ in ROWS for name in SYMPTOM.findall(symptom)}

    assert len(named) >= 15
    assert named <= set(steersman.errors.__all__)


def test_every_option_that_a_cure_names_is_one() -> None:
    named = {name for _, cause, cure in ROWS for name in KEYWORD.findall(cause + cure)}

    assert len(named) >= 15
    assert named <= keywords()


def test_every_row_has_a_cure() -> None:
    assert len(ROWS) >= 25
    assert all(cure.strip() for _, _, cure in ROWS)
