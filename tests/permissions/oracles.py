"""Parsers of other projects that our own matching is compared with."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def oracle(name: str) -> Any:
    """Import a package of the `dev` extra. Without it the test is skipped, but fails in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{name} is not installed: pip install 'steersman[dev]'")
