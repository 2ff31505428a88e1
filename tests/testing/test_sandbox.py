from __future__ import annotations

from pathlib import Path

import pytest

from steersman.errors import CliNotFound
from steersman.testing.sandbox import CliSandbox, find_stock_cli

URL = "http://127.0.0.1:1234"


def test_a_sandbox_has_four_empty_folders_and_leaves_nothing() -> None:
    with CliSandbox() as box:
        folders = [box.config, box.home, box.project, box.tmp]
        assert sorted(box.root.iterdir()) == folders
        assert [list(folder.iterdir()) for folder in folders] == [[]] * 4
        (box.project / "left.txt").write_text("over")

    assert not box.root.exists()


def test_nothing_of_the_callers_environment_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDECODE")
    with CliSandbox() as box:
        before = box.env(URL)
        for name in names:
            monkeypatch.setenv(name, "mine")

        assert box.env(URL) == before
        assert not set(names) & before.keys()


def test_the_environment_stays_in_the_sandbox_and_on_loopback() -> None:
    with CliSandbox() as box:
        env = box.env(URL, {"CLAUDE_CODE_MAX_RETRIES": "2"})

        assert (env["HOME"], env["CLAUDE_CONFIG_DIR"]) == (str(box.home), str(box.config))
        assert (env["TMPDIR"], env["CLAUDE_CODE_TMPDIR"]) == (str(box.tmp), str(box.tmp))
    assert (env["ANTHROPIC_BASE_URL"], env["CLAUDE_CODE_MAX_RETRIES"]) == (URL, "2")
    assert {env[f"{each}_PROXY"] for each in ("HTTP", "HTTPS", "ALL")} == {"http://127.0.0.1:9"}


def test_a_model_elsewhere_is_refused() -> None:
    with CliSandbox() as box, pytest.raises(ValueError, match="not on loopback"):
        box.env("https://api.anthropic.com")


def test_a_sandbox_has_no_folders_before_it_is_opened() -> None:
    with pytest.raises(RuntimeError, match="inside `with"):
        _ = CliSandbox().project


def test_the_binary_is_found_without_importing_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundled = tmp_path / "a_wheel" / "_bundled"
    bundled.mkdir(parents=True)
    (bundled / "claude").touch()
    (tmp_path / "a_wheel" / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)

    assert find_stock_cli("a_wheel") == bundled / "claude"


def test_a_missing_wheel_is_named() -> None:
    with pytest.raises(CliNotFound) as told:
        find_stock_cli("no_such_wheel")

    assert told.value.looked_in == ("the package no_such_wheel",)
