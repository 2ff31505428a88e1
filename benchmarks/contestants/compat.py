"""`steersman.compat`, as a program for the official Python SDK would use it."""

from __future__ import annotations

import steersman.compat
from benchmarks.contestants.official_names import run

if __name__ == "__main__":
    run(steersman.compat)
