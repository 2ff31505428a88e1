"""Plays seeds and prints what is wrong: `python -m tests.simulation.durable 0 99 wide show`."""

from __future__ import annotations

import collections
import logging
import sys
from collections.abc import Callable

from tests.simulation.durable.invariants import broken
from tests.simulation.durable.plans import Plan, draw, draw_far, draw_wide
from tests.simulation.durable.playing import play


def main(first: int, count: int, make: Callable[[int], Plan], *, shows: bool) -> int:
    """Play `count` seeds from `first` on, and return the exit status."""
    logging.disable()
    sys.unraisablehook = lambda _: None
    found: dict[str, list[int]] = collections.defaultdict(list)
    for seed in range(first, first + count):
        out = play(make(seed))
        wrong = broken(out)
        if shows:
            sys.stdout.write(out.story(wrong))
        for name in {each.split(":")[0] for each in wrong}:
            found[name].append(seed)
    bad = {seed for seeds in found.values() for seed in seeds}
    lines = [f"{count} seeds from {first}: {len(bad)} with something"]
    lines += [f"  {len(seeds):5} {name}  seeds {seeds[:8]}" for name, seeds in found.items()]
    sys.stdout.write("\n".join((*lines, "")))
    return bool(bad)


if __name__ == "__main__":
    words = sys.argv[3:]
    kind = draw_far if "far" in words else draw_wide if "wide" in words else draw
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), kind, shows="show" in words))
