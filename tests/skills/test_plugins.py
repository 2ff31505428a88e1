from __future__ import annotations

from pathlib import Path

import pytest

from steersman.errors import UsageError
from steersman.options import Options, Plugin
from steersman.skills import PluginManifest, check_plugins, read_plugin


def make(root: Path, manifest: str | None = '{"name": "demo"}') -> Path:
    (root / "commands").mkdir(parents=True)
    if manifest is not None:
        (root / ".claude-plugin").mkdir()
        (root / ".claude-plugin" / "plugin.json").write_text(manifest)
    return root


def test_a_plugin_says_what_it_is(tmp_path: Path) -> None:
    make(tmp_path, '{"name": "demo", "version": "1.0", "description": "d", "author": "me"}')

    found = read_plugin(tmp_path)

    assert found == PluginManifest(
        name="demo", path=tmp_path, version="1.0", description="d", fields=found.fields
    )
    assert found.fields["author"] == "me"


def test_a_plugin_without_a_manifest_is_named_by_its_directory(tmp_path: Path) -> None:
    assert read_plugin(make(tmp_path / "mine", None)).name == "mine"


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        ("{broken", "plugin.json"),
        ("[]", "plugin.json"),
        ("{}", "plugin.json: name"),
        ('{"name": ""}', "plugin.json: name"),
        ('{"name": "a", "version": 1}', "plugin.json: version"),
    ],
)
def test_a_broken_manifest_is_told_by_file_and_field(
    tmp_path: Path, manifest: str, place: str
) -> None:
    make(tmp_path, manifest)

    with pytest.raises(UsageError) as caught:
        check_plugins(Options(plugins=(tmp_path,)))

    assert caught.value.argument.startswith("plugins[0]: ")
    assert caught.value.argument.endswith(place)


def test_plugins_that_are_there_are_taken(tmp_path: Path) -> None:
    make(tmp_path / "one")
    make(tmp_path / "several" / "two")
    make(tmp_path / "relative")
    (tmp_path / "packed.zip").touch()
    plugins = (
        tmp_path / "one",
        Plugin(tmp_path / "one"),
        {"type": "local", "path": str(tmp_path / "one")},
        tmp_path / "several",
        tmp_path / "packed.zip",
        "relative",
    )

    check_plugins(Options(plugins=plugins, cwd=tmp_path))


def test_a_plugin_that_is_not_there_is_named(tmp_path: Path) -> None:
    good = make(tmp_path / "good")

    with pytest.raises(UsageError, match=r"plugins\[1\]: got .*missing.*a directory that exists"):
        check_plugins(Options(plugins=(good, tmp_path / "missing")))


def test_a_directory_without_a_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"plugins\[0\]: .* a directory with \.claude-plugin"):
        check_plugins(Options(plugins=(tmp_path,)))
