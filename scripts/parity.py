"""Write `docs/parity.md`: what both official SDKs have, what we have, and which test shows it.

    python scripts/parity.py            write the page
    python scripts/parity.py --check    write nothing; fail when the page is stale

Either way it fails when something declared is neither here nor explained, or is here but no test
exercises it. What is explained, and how, stands in `parity_report/reasons.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Run as a file, Python looks beside the file only; the checkout is what we report on.
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from scripts.parity_report.command import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
