"""`python -m steersman.cli` is the `steersman` command."""

from __future__ import annotations

import sys

from steersman.cli.main import main

sys.exit(main())
