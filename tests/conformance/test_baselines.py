"""What is kept of each version."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.errors import UsageError
from steersman_conformance.baselines import load, nearest, save
from steersman_conformance.verdicts import Baseline


def test_what_is_saved_can_be_loaded(tmp_path: Path) -> None:
    save(tmp_path / "it.json", "2.1.9", {"b": [1, None], "a": "ü\ud83d"})

    assert load(tmp_path / "it.json") == Baseline("2.1.9", {"a": "ü\ud83d", "b": [1, None]})


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("2.1.9", "2.1.9"),
        ("2.1.10", "2.1.9"),
        ("2.1.99", "2.1.9"),
        ("3.0.0", "2.1.100"),
        ("2.1.1", "2.1.9"),
    ],
)
def test_the_nearest_is_the_newest_before(tmp_path: Path, version: str, found: str) -> None:
    for each in ("2.1.9", "2.1.100"):
        save(tmp_path / f"{each}.json", each, {})

    baseline = nearest(version, tmp_path)

    assert baseline == Baseline(found, {})


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert nearest("2.1.9", tmp_path) is None


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"observed": 1}'])
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "it.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UsageError, match=r"it\.json"):
        load(path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="written"):
        save(tmp_path / "nowhere" / "it.json", "2.1.9", {})
