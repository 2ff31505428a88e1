"""Plays one seed and prints a full report: `python -m tests.simulation 17 [revived]`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.simulation.invariants import broken  # noqa: E402
from tests.simulation.playing import play  # noqa: E402
from tests.simulation.reports import report, story  # noqa: E402
from tests.simulation.scenarios import draw, draw_revived  # noqa: E402


def main(seed: int, *, revives: bool) -> int:
    """Play the seed, print the report, and return the exit status."""
    logging.disable()
    run = play(draw_revived(seed) if revives else draw(seed))
    wrong = broken(run)
    outcomes = [f"  <p{n}>: {each.outcome} {each.text!r}" for n, each in run.results.items()]
    sys.stdout.write("\n".join((story(run), report(run, wrong), *outcomes, "")))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), revives="revived" in sys.argv))
