"""How hard hypothesis tries, and who begins first.

The profile `ci` is the same on every run, `deep` is for the night.
"""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "ci",
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=SLOW,
)
settings.register_profile("deep", max_examples=500, deadline=None, suppress_health_check=SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, so that no worker ends alone with one."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Spare the garbage collector thousands of tests that will be there to the end."""
    gc.collect()
    gc.freeze()
