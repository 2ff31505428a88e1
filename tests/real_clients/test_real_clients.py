"""Published packages on the official SDK record and do the same on ours.

`python -m tests.real_clients.environment` makes their environment; without it, these are skipped.
Nothing leaves the machine: the model is scripted, and a proxy at a closed port ends all else.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from steersman.testing.sandbox import FIXED_ENVIRONMENT, find_stock_cli
from tests.live.test_harness import stock_cli
from tests.real_clients.environment import PYTHON, ROOT, ROWS

pytestmark = [
    pytest.mark.soak,
    pytest.mark.soak_only,
    pytest.mark.live,
    pytest.mark.process,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON.exists(), reason="tests.real_clients.environment was not run"),
]

NOWHERE = "http://127.0.0.1:9"
"""A port at which nobody listens."""
LOOPBACK = "127.0.0.1,localhost"
LONGEST = 120.0
OURS = ("-m", "steersman.compat")
"""Runs a program that imports the official package on ours."""


def played(row: str, runner: tuple[str, ...] = ()) -> Any:
    """Return what a row has recorded, on the official package or by `runner`."""
    with tempfile.TemporaryDirectory(prefix="steersman-") as home:
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), NOWHERE)
        own = {
            "HOME": home,
            "TMPDIR": home,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
            "NO_PROXY": LOOPBACK,
            "no_proxy": LOOPBACK,
            "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
        }
        cli = stock_cli(find_stock_cli)
        ended = subprocess.run(
            [PYTHON, *runner, "-m", "tests.real_clients.play", row, str(cli)],
            env={**FIXED_ENVIRONMENT, **proxies, **own},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    (found,) = [line for line in ended.stdout.splitlines() if line.startswith("record ")] or [""]
    assert found, ended.stderr[-4000:]
    return json.loads(found.removeprefix("record "))


@pytest.mark.parametrize("row", ROWS)
def test_a_package_records_the_same_on_ours(row: str) -> None:
    expected = played(row)

    assert expected
    reason = getattr(import_module(f"tests.real_clients.rows.{row}"), "DIFFERS", "")
    if reason:
        with pytest.raises(AssertionError):
            assert played(row, OURS) == expected
        pytest.xfail(reason)
    assert played(row, OURS) == expected


def test_every_row_is_named_with_its_version_in_the_documentation() -> None:
    from tests.real_clients.environment import requirements  # noqa: PLC0415 - imports every row

    page = Path(ROOT / "docs/compat.md").read_text()
    missing = [
        each
        for row in requirements().values()
        for each in row
        if f"`{each.replace('==', '` ')}" not in page
    ]

    assert missing == []
