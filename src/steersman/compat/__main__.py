"""`python -m steersman.compat program.py`: runs a program of the official SDK as it stands."""

from __future__ import annotations

import sys

from steersman.compat._running import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
