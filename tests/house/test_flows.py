"""The tour's lists of files are what the flows really enter."""

from __future__ import annotations

import configparser
import logging
import re
from pathlib import Path

import pytest

from tests.house.flows import FLOWS, played

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tour.md"

HEADINGS = {
    "prompt": "## Flow 1: a prompt",
    "permission": "## Flow 2: a permission request",
    "tool call": "## Flow 3: a tool call",
    "loss": "## Flow 4: the loss of a CLI",
    "close": "## Flow 5: the close",
}

MOST_FILES = {"prompt": 21, "permission": 15, "close": 21}


def files_on_the_page(flow: str) -> list[str]:
    section = PAGE.read_text().split(HEADINGS[flow])[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/.]+\.py)`", section, re.MULTILINE)


@pytest.mark.parametrize("flow", FLOWS)
async def test_the_tour_lists_the_files_that_a_flow_enters_in_order(
    flow: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    visits = await played(FLOWS[flow])

    assert visits.files == files_on_the_page(flow)


@pytest.mark.parametrize("flow", MOST_FILES)
def test_a_flow_enters_few_files(flow: str) -> None:
    assert 0 < len(files_on_the_page(flow)) <= MOST_FILES[flow]


def test_the_tour_names_the_rooms_in_the_order_in_which_they_may_import_each_other() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contracts["importlinter:contract:rings"]["layers"].split("\n")
    drawn = PAGE.read_text().split("## Which room may import which")[1].split("```")[1]

    assert drawn.replace("\u203a", " ").split() == " ".join(layers).split()
