"""Functions that run at interpreter exit, after the program's own exit handlers.

`atexit` calls handlers in reverse order. This module is loaded with the first name that a program
uses, before any CLI is started, so handlers that the program registers later run first.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable

AT_EXIT: list[Callable[[], None]] = []
"""Called in order. A module that owns processes appends the function that ends them."""


@atexit.register
def _end_everything() -> None:
    for end in AT_EXIT:
        end()
