"""An older CLI is fetched once, and whole or not at all."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from steersman.errors import CliNotFound
from steersman.testing.older_cli import OLDER_VERSION, fetch_older_cli, find_older_cli


class AnyHash:
    """Accepts every wheel, because those of the tests are not the published ones."""

    def __contains__(self, _found: object) -> bool:
        return True


def test_it_is_put_in_its_place_and_can_be_run(tmp_path: Path) -> None:
    def download(folder: Path) -> None:
        with zipfile.ZipFile(folder / "official.whl", "w") as wheel:
            wheel.writestr("claude_agent_sdk/_bundled/claude", "#!/bin/sh\n")

    path = fetch_older_cli(str(tmp_path), download, AnyHash())

    assert path == tmp_path / "older-cli" / OLDER_VERSION / "claude"
    assert path == find_older_cli(str(tmp_path))
    assert path.read_text() == "#!/bin/sh\n"
    assert [each.name for each in path.parent.iterdir()] == ["claude"]


def test_it_is_fetched_once(tmp_path: Path) -> None:
    path = tmp_path / "older-cli" / OLDER_VERSION / "claude"
    path.parent.mkdir(parents=True)
    path.touch(0o755)

    def download(_folder: Path) -> None:
        raise AssertionError("it is there")

    assert fetch_older_cli(str(tmp_path), download) == path


def test_a_wheel_without_it_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def download(folder: Path) -> None:
        with zipfile.ZipFile(folder / "official.whl", "w") as wheel:
            wheel.writestr("claude_agent_sdk/__init__.py", "")

    with pytest.raises(FileNotFoundError, match="for this platform"):
        fetch_older_cli(str(tmp_path), download, AnyHash())

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_wheel_with_another_hash_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    def download(folder: Path) -> None:
        with zipfile.ZipFile(folder / "official.whl", "w") as wheel:
            wheel.writestr("claude_agent_sdk/_bundled/claude", "#!/bin/sh\n")

    with pytest.raises(OSError, match="is not the wheel of"):
        fetch_older_cli(str(tmp_path), download)

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_where_it_is_not_one_is_told_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(CliNotFound, match=r"steersman\.testing\.older_cli"):
        find_older_cli(str(tmp_path))
