from __future__ import annotations

import pytest

from benchmarks.entrants import pythons
from benchmarks.rows import ONE_SHOT, OURS, STREAMED
from benchmarks.stock import run_stock

pytestmark = pytest.mark.live


@pytest.mark.parametrize("order", [ONE_SHOT, STREAMED], ids=["one-shot", "streamed"])
def test_the_rows_of_the_stock_cli_measure_what_they_say(order: dict[str, object]) -> None:
    report = run_stock(pythons()[OURS], order, tokens=20)

    assert (report["note"], report["weight"]) == ("", report["items"] * 20 * len("word "))
    assert min(report["cpu"], report["cli"]) > 0
    if order is STREAMED:
        assert 0 < report["first"] < report["wall"]
        assert min(report["start"], report["close"]) > 0
