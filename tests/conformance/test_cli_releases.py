"""A release of the CLI is fetched from npm once, whole and known, or not at all."""

from __future__ import annotations

import base64
import hashlib
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from steersman.errors import CliNotFound
from steersman.testing.cli_releases import (
    HASHES,
    fetch_cli,
    find_cli,
    known_hashes,
    learn_hash,
    package,
    platform_here,
)

VERSION = "2.1.300"
KEY = (VERSION, platform_here())

Packs = Callable[[str, Path], None]


def packs(member: str) -> tuple[Packs, str]:
    """Return a download of a package with one file, and the hash of that package."""
    buffer, content = BytesIO(), b"#!/bin/sh\n"
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(member)
        entry.size = len(content)
        archive.addfile(entry, BytesIO(content))
    packed = buffer.getvalue()

    def pack(name: str, folder: Path) -> None:
        assert name == package(*KEY)
        (folder / "claude.tgz").write_bytes(packed)

    return pack, f"sha512-{base64.b64encode(hashlib.sha512(packed).digest()).decode()}"


def refuses(_name: str, _folder: Path) -> None:
    raise AssertionError("nothing is to be downloaded")


def test_it_is_put_in_its_place_and_can_be_run(tmp_path: Path) -> None:
    pack, known = packs("package/claude")

    path = fetch_cli(VERSION, str(tmp_path), pack, {KEY: known})

    assert path == tmp_path / "cli-releases" / VERSION / "claude"
    assert path == find_cli(VERSION, str(tmp_path))
    assert path.read_text() == "#!/bin/sh\n"
    assert [each.name for each in path.parent.iterdir()] == ["claude"]


def test_it_is_fetched_once(tmp_path: Path) -> None:
    pack, known = packs("package/claude")
    path = fetch_cli(VERSION, str(tmp_path), pack, {KEY: known})

    assert fetch_cli(VERSION, str(tmp_path), refuses, {KEY: known}) == path


def test_a_package_with_another_hash_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    pack, _known = packs("package/claude")

    with pytest.raises(OSError, match="is not the known package"):
        fetch_cli(VERSION, str(tmp_path), pack, {KEY: "sha512-another"})

    assert list(tmp_path.rglob("*")) == [tmp_path / "cli-releases"]


def test_a_release_without_a_known_hash_is_not_downloaded(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"--learn {VERSION}"):
        fetch_cli(VERSION, str(tmp_path), refuses, {})

    assert list(tmp_path.rglob("*")) == []


def test_a_package_without_the_binary_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    pack, known = packs("package/README.md")

    with pytest.raises(FileNotFoundError, match="package/claude"):
        fetch_cli(VERSION, str(tmp_path), pack, {KEY: known})

    assert list(tmp_path.rglob("*")) == [tmp_path / "cli-releases"]


def test_where_it_is_not_one_is_told_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(CliNotFound, match=rf"cli_releases {VERSION}"):
        find_cli(VERSION, str(tmp_path))


def test_a_known_hash_is_not_learnt_again(tmp_path: Path) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(f"# Kept.\n{VERSION} {platform_here()} sha512-known\n")

    assert learn_hash(VERSION, file) == "sha512-known"
    assert file.read_text().startswith("# Kept.")


@pytest.mark.parametrize("version", ["2.1.290", "2.1.300"])
def test_the_releases_of_the_tests_are_known_on_every_platform(version: str) -> None:
    platforms = {system for known, system in known_hashes(HASHES) if known == version}

    assert platforms == {"darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"}
