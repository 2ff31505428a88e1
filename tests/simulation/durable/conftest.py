"""What killed hosts leave behind."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Generator

import pytest


@pytest.fixture
def buried() -> Generator[None]:
    """Collect what killed hosts have left: it is never finished, which is what a kill means."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()
    sys.unraisablehook = before
