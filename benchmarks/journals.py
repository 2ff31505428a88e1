"""Measures the memory of many journals in one process, which their limit together bounds.

`python -m benchmarks.journals` fills 100, 250 and 500 journals with 4 MB of lines each, under a
limit of 256 MiB for all of them together, and prints the peak memory of a new process for each.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from concurrent.futures import ProcessPoolExecutor

from steersman._session.shared_memory import SharedMemory
from steersman.journal import Kind
from steersman.journal.journal import DEFAULT_MEMORY

LIMIT = 256 * 1024 * 1024
LINES = 4_000
NUMBERS = (100, 250, 500)


def main() -> int:
    """Measure and print."""
    spawning = multiprocessing.get_context("spawn")
    for number in NUMBERS:
        # A new process for each: a peak does not go down.
        with ProcessPoolExecutor(1, mp_context=spawning) as pool:
            size, kept = pool.submit(peak, number).result(timeout=300)
        print(
            f"{number:>4} journals: {kept / 2**20:5.0f} MiB of lines, {size / 2**20:5.0f} MiB peak"
        )
    return 0


def peak(number: int, lines: int = LINES) -> tuple[int, int]:
    """Fill journals. Return the peak memory of this process, and how much the journals keep."""
    shared = SharedMemory(LIMIT)
    journals = [shared.journal(DEFAULT_MEMORY) for _ in range(number)]
    for line in range(lines):
        for journal in journals:
            # Each line is an object of its own, as if it had been read from a pipe.
            journal.append(0.0, Kind.MESSAGE, b"%01000d" % line)
    kept = sum(each.kept for each in journals)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, kept


if __name__ == "__main__":
    sys.exit(main())
