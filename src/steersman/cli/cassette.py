"""`steersman cassette`: checks recorded conversations."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from steersman._terminal import one_line, printable
from steersman.errors import UsageError
from steersman.testing.cassettes.scrubbing import lint

CLEAN, LEAKING, UNREADABLE = 0, 1, 2


def lint_files(paths: Iterable[str]) -> int:
    """Print what looks like a secret in the files, and return the exit status."""
    status = CLEAN
    for path in paths:
        try:
            findings = lint(path)
        except UsageError as error:
            print(one_line(f"steersman: {path}: {error}"), file=sys.stderr)
            status = UNREADABLE
            continue
        for finding in findings:
            print(printable(str(finding)))
        status = max(status, LEAKING if findings else CLEAN)
    return status
