"""What is done at the end of the process, after the program's own goodbyes.

`atexit` goes backwards: this is loaded with the first name that a program uses, long before there
is anything to end, so that whatever the program registers later comes first.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable

__all__ = ["AT_EXIT"]

AT_EXIT: list[Callable[[], None]] = []
"""Called in order; whoever has something to end adds to it."""


@atexit.register
def _end_everything() -> None:
    for end in AT_EXIT:
        end()
