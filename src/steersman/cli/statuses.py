"""The exit statuses of `steersman`."""

from __future__ import annotations

COMPLETED, FAILED, MISUSE, DENIED, LIMIT, CANNOT_START = range(6)
INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""
