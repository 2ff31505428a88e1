from __future__ import annotations

import math
import random
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import compare
from benchmarks.entrants import Entrant
from benchmarks.figures import Measured, Run, figure_of, ratio, verdict
from benchmarks.page import PAGE, together, with_numbers
from benchmarks.plots import series
from benchmarks.records import Difference, differences, load_run, save_run
from benchmarks.rows import BARE, EVERYONE, OFFICIAL, OURS, ROWS, STORED, TYPESCRIPT, USED, chosen
from benchmarks.runner import measure
from benchmarks.table import table
from benchmarks.targets import NOTES, targets

STEADY = [1.0, 1.01, 0.99, 1.0, 1.0]


def measured(key: str, ours: float, **others: float) -> Measured:
    """A row whose rounds hardly differ; the official SDK takes 10 µs an item."""
    costs = {OFFICIAL: 10e-6, OURS: ours, **others}
    return Measured(key, {name: [cost * each for each in STEADY] for name, cost in costs.items()})


def run(*rows: Measured) -> Run:
    return Run({"processor": "abacus"}, list(rows))


def test_every_row_has_a_line_with_its_title() -> None:
    rows = [
        Measured(key, {name: [1e-6] * 3 for name in row.ways or row.who})
        for key, row in ROWS.items()
    ]

    shown = table(rows)

    assert [row.row.title for row in rows if row.row.title not in shown] == []


def test_a_line_shows_costs_ratio_and_verdict() -> None:
    line = table([measured("partial", 1.5e-6, **{TYPESCRIPT: 4e-6, BARE: 2e-6})]).splitlines()[4]

    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:5] == ["10 µs", "4 µs", "2 µs", "1.5 µs"]
    assert [cell.partition(" ±")[0] for cell in cells[5:8]] == ["0.15", "0.40", "0.20"]
    assert cells[8:] == ["≤ 0.2", "met"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (1e-6, 4e-6, "met"),
        (3e-6, 4e-6, "missed"),
        (1e-6, 0.5e-6, "met, behind TypeScript"),
        (5e-6, 4e-6, "missed, behind TypeScript"),
    ],
)
def test_a_verdict_looks_at_the_target_and_at_typescript(
    ours: float, theirs: float, expected: str
) -> None:
    assert verdict(measured("partial", ours, **{TYPESCRIPT: theirs})) == expected


def test_memory_is_shown_where_the_number_of_messages_grows() -> None:
    row = measured("messages-1000", 1e-6)
    row.peaks[OURS] = 50 * 2**20

    assert "50 MiB" in table([row])


def test_an_absent_contestant_is_shown_as_absent() -> None:
    row = measured("partial", 1e-6)
    row.notes[TYPESCRIPT] = "node and npm are not installed"

    assert "node and npm are not installed" in table([row])


def test_the_margin_grows_with_the_spread_of_the_rounds() -> None:
    steady = ratio(measured("partial", 1e-6), OURS)
    wild = measured("partial", 1e-6)
    wild.values[OURS] = [1e-6, 2e-6, 0.5e-6, 3e-6, 1.5e-6]
    spread = ratio(wild, OURS)

    assert steady is not None
    assert spread is not None
    assert steady.margin is not None
    assert spread.margin is not None
    assert spread.margin > 3 * steady.margin


def test_memory_that_is_too_small_has_no_ratio() -> None:
    row = Measured("idle", {OFFICIAL: [100.0, 120.0, 110.0], OURS: [0.0, -5.0, 3.0]})

    assert ratio(row, OURS) is None
    assert "idle session" in table([row])


def test_rows_that_were_not_measured_again_stay_on_the_page() -> None:
    earlier = run(measured("hook", 1e-6), measured("partial", 1e-6))
    later = run(measured("partial", 2e-6))

    both = together(earlier, later)

    assert [each.key for each in both.rows] == ["partial", "hook"]
    assert both.rows[0] == later.rows[0]


def test_one_round_has_no_margin() -> None:
    row = Measured("partial", {OFFICIAL: [1.0], OURS: [0.2]})

    assert str(ratio(row, OURS)) == "0.20"


def test_a_slow_phase_of_the_machine_does_not_change_the_ratio() -> None:
    row = Measured("partial", {OFFICIAL: [10.0, 30.0, 12.0], OURS: [2.0, 6.0, 2.4]})

    assert str(ratio(row, OURS)) == "0.20 ±8%"


def test_two_rounds_that_disagree_have_a_wide_margin() -> None:
    row = Measured("partial", {OFFICIAL: [10.0, 10.0], OURS: [2.0, 3.0]})

    assert str(ratio(row, OURS)) == "0.25 ±100% or more"


def noisy(chance: random.Random, rounds: int) -> Run:
    """A run on a machine whose speed drifts and that is busy at times."""
    drift = chance.gauss(0, 0.1)

    def cost(steady: float, number: int) -> float:
        burst = chance.expovariate(4) if chance.random() < 0.1 else 0.0
        return steady * math.exp(drift * number + chance.gauss(0, 0.05) + burst)

    values = {
        name: [cost(steady, number) for number in range(rounds)]
        for name, steady in ((OURS, 2e-6), (OFFICIAL, 10e-6))
    }
    return run(Measured("partial", values))


@pytest.mark.parametrize("rounds", [2, 3, 5, 7])
def test_the_same_work_measured_twice_differs_by_less_than_the_margin(rounds: int) -> None:
    chance = random.Random(rounds)

    found = [
        difference.is_within
        for _ in range(200)
        for difference in differences(noisy(chance, rounds), noisy(chance, rounds))
    ]

    assert len(found) == 200
    assert sum(found) >= 195


def test_more_rounds_have_a_smaller_margin() -> None:
    chance = random.Random(0)

    def usual(rounds: int) -> float:
        found = [ratio(noisy(chance, rounds).rows[0], OURS) for _ in range(50)]
        return statistics.median(each.margin or 0.0 for each in found if each)

    assert usual(3) > usual(5) > usual(9)


def test_a_figure_is_the_cost_of_one_item() -> None:
    report = {"cpu": 2.0, "wall": 4.0, "items": 100, "held": 5.0}

    assert figure_of(ROWS["partial"], report) == 0.02
    assert figure_of(ROWS["connect-wall"], report) == 0.04
    assert figure_of(ROWS["idle"], report) == 5.0


def test_a_family_of_rows_becomes_a_line_for_each_contestant() -> None:
    rows = [measured("messages-1000", 3e-6), measured("messages-10", 2e-6), measured("hook", 1e-6)]

    lines = series(rows, "messages")

    assert [(number, round(cost, 6)) for number, cost in lines[OURS]] == [(10, 2.0), (1000, 3.0)]
    assert set(lines) == {OURS, OFFICIAL}


def test_rows_are_chosen_by_key_or_by_family() -> None:
    assert [row.key for row in chosen("hook, sessions")] == [
        "hook",
        *(key for key in ROWS if key.startswith("sessions-")),
    ]
    assert chosen("") == list(ROWS.values())
    with pytest.raises(SystemExit, match="no such rows: nonsense"):
        chosen("hook,nonsense")


def test_every_target_of_the_design_is_in_the_table() -> None:
    targets = {row.key: row.target for row in ROWS.values() if row.target is not None}

    assert targets == {
        "stock-run": 1.5,
        "trickle-2ms-1": 0.55,
        "trickle-12ms-1": 0.55,
        "trickle-2ms-50": 0.55,
        "trickle-12ms-50": 0.55,
        "latency": 1.0,
        "partial": 0.20,
        "1kb": 0.33,
        "800kb": 1.0,
        "permission": 0.50,
        "hook": 0.50,
        "tool": 0.05,
        "permissions": 0.15,
        "tools": 0.015,
        "import": 0.12,
        "list": 0.25,
        "newest": 0.05,
    }
    partly = {row.key for row in (*STORED, *USED)}
    assert all(ROWS[key].who == EVERYONE for key in targets if key not in partly)


def test_rows_with_the_same_order_are_figures_of_one_measurement() -> None:
    """A contestant that prints its process id as every figure: a new process is a new figure."""
    report = dict.fromkeys(("items", "peak"), 0) | {"note": "", "items": 1}
    program = (
        "import json, os\n"
        f"report = {report!r} | dict.fromkeys(('cpu', 'wall'), os.getpid())\n"
        "print(json.dumps(report))"
    )
    entrant = Entrant(OURS, command=(sys.executable, "-c", program))
    rows = [replace(ROWS[key], who=(OURS,)) for key in ("connect", "connect-wall", "hook")]

    found = measure(rows, {OURS: entrant}, Path("unused"), lambda _: None, rounds=2)

    first, second, other = (each.values[OURS] for each in found)
    assert first == second
    assert len({*first, *other}) == 4


def test_a_run_survives_its_file(tmp_path: Path) -> None:
    kept = run(measured("partial", 1e-6), measured("hook", 2e-6))

    save_run(kept, tmp_path / "run.json")

    assert load_run(tmp_path / "run.json") == kept


def test_two_runs_are_compared_row_by_row() -> None:
    first, second = run(measured("partial", 1e-6)), run(measured("partial", 1.5e-6))

    (found,) = differences(first, second)

    assert found.title == ROWS["partial"].title
    assert found.moved == pytest.approx(0.5)
    assert 0 < found.allowed < 0.5
    assert not found.is_within
    assert "OUTSIDE" in str(found)


@pytest.mark.parametrize(
    ("moved", "is_within"), [(0.19, True), (0.21, False), (-0.16, True), (-0.17, False)]
)
def test_a_ratio_may_move_as_far_down_as_up(moved: float, *, is_within: bool) -> None:
    assert Difference("x", moved, 0.2).is_within is is_within


# --- Targets ---------------------------------------------------------------------------


def test_every_row_that_has_a_target_has_a_note() -> None:
    assert [key for key, row in ROWS.items() if row.target and key not in NOTES] == []
    assert set(NOTES) <= set(ROWS)


def test_targets_that_are_met_need_no_notes() -> None:
    rows = [measured("partial", 1.9e-6, **{TYPESCRIPT: 4e-6}), measured("hooks", 1e-6)]

    assert targets(rows) == "1 of 1 targets of the design are met.\n"


def test_a_missed_target_is_shown_with_its_note() -> None:
    text = targets([measured("partial", 2.1e-6), measured("hook", 9e-6), measured("1kb", 1e-6)])

    assert text.startswith("1 of 3 targets of the design are met.\n")
    assert (
        "- partial message, 40 bytes: 0.21 ±8% where 0.2 is the target, within the margin" in text
    )
    assert "- hook, one after the other: 0.90 ±8% where 0.5 is the target\n" in text
    assert NOTES["partial"].profile in text
    assert NOTES["hook"].tried in text
    assert NOTES["1kb"].profile not in text


def test_a_row_that_is_slower_than_typescript_is_shown() -> None:
    text = targets([measured("connect", 6e-6, **{TYPESCRIPT: 4e-6})])

    assert "- connect, CPU of the host: 1.50 ±8% of what the TypeScript SDK needs\n" in text
    assert NOTES["connect"].profile in text


def test_our_variants_share_a_table() -> None:
    row = Measured("journal", {"in memory": [4e-6] * 3, "on disk too": [6e-6] * 3})

    lines = table([row]).splitlines()

    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["our variants", "in memory", "on disk too"]
    assert cells[2][1:] == ["4 µs", "6 µs"]
    assert cells[3][1:] == ["1", "1.50 ±8%"]


def test_the_page_keeps_its_prose_and_changes_its_numbers() -> None:
    page = PAGE.read_text(encoding="utf-8")

    written = with_numbers(page, run(measured("partial", 1.5e-6)))

    before, mark, _ = page.partition("<!-- numbers -->")
    assert mark
    assert written.startswith(before + mark)
    assert written.endswith(page.rpartition("<!-- /numbers -->")[2])
    assert "| processor | abacus |" in written
    assert with_numbers(written, run(measured("partial", 1.5e-6))) == written


@pytest.mark.parametrize(("later", "status"), [(1.05e-6, 0), (1.5e-6, 1)])
def test_comparing_two_runs_fails_when_one_row_moved_too_far(later: float, status: int) -> None:
    first = run(measured("partial", 1e-6), measured("hook", 1e-6))
    second = run(measured("partial", later), measured("hook", 1e-6))

    assert compare(first, second) == status
