"""Write `docs/parity.md`: what the official SDKs have, what steersman has, and which test shows it.

    python scripts/parity.py            write the page
    python scripts/parity.py --check    write nothing; fail if the page is stale

In both cases the program fails if something declared is neither here nor explained, or is here but
not exercised by a test. Explanations are kept in `parity_report/reasons.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Python only looks in the folder of a program; the report is about this checkout.
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts.parity_report.command import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
