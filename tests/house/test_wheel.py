"""What is shipped: small, pure, and whole."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
LARGEST = 625_000
"""Bytes; the test kit and the conformance suite are a quarter of it."""


def test_the_wheel_is_small_pure_and_whole(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)),
        ],
        check=True,
        timeout=120,
    )

    (wheel,) = tmp_path.iterdir()
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < LARGEST
    # The guard is run by its path, so nothing imports it in a way that would be missed.
    assert {"steersman/py.typed", "steersman/transports/guard.py"} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"steersman"}
    modules = {
        str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/steersman").rglob("*.py")
    }
    assert modules <= names
