"""The tour's lists of files are what the flows really enter."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tests.house.flows import FLOWS, played

PAGE = Path(__file__).parents[2] / "docs/tour.md"

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
