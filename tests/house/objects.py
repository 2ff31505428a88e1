"""For tests that make millions of objects which stay."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def all_objects_kept() -> Generator[None, None, None]:
    """Do not look for garbage: there is none, and looking takes half of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
