"""The lists of `docs/tour-files.md` are what the flows really enter."""

from __future__ import annotations

import logging
import re

import pytest

from tests.house.flows import FLOWS, HEAD, PAGE, ROOT, SOURCE, Flow, played, rooms, section

MOST_FILES = {"1. A prompt": 21, "2. A permission request": 15, "4. The close": 21}

UPDATE = "python -m tests.house.flows --update"


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.title)
async def test_the_page_lists_the_files_that_a_flow_enters_in_order(
    flow: Flow, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    visits = await played(flow.play)

    assert section(flow, visits.files) in PAGE.read_text(encoding="utf-8"), UPDATE
    assert 0 < len(visits.files) <= MOST_FILES.get(flow.title, 100)


def test_the_page_has_the_flows_in_order_and_the_rooms_at_its_end() -> None:
    text = PAGE.read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]

    assert text.startswith(HEAD), UPDATE
    assert text.endswith(rooms()), UPDATE
    assert titles[:-1] == [flow.title for flow in FLOWS], UPDATE


@pytest.mark.parametrize("page", ["docs/tour.md", "CONTRIBUTING.md"])
def test_the_files_that_lead_a_newcomer_are_there(page: str) -> None:
    named = re.findall(r"`([\w./]+(?:\.\w+|/))`", (ROOT / page).read_text(encoding="utf-8"))
    files = [each for each in named if each.endswith(("/", ".py", ".ts", ".md", ".toml", ".json"))]

    assert len(files) > 20
    assert [
        each for each in files if not ((SOURCE / each).exists() or (ROOT / each).exists())
    ] == []
