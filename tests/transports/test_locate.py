from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steersman.errors import CliNotExecutable, CliNotFound
from steersman.transports.locate import first_runnable, locate


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def make(place: Path, mode: int = 0o755) -> str:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(mode)
    return str(place)


def test_an_explicit_path_comes_first(tmp_path: Path) -> None:
    mine = make(tmp_path / "mine")
    other = make(tmp_path / "bin" / "claude")

    environ = {"STEERSMAN_CLI": other, "PATH": str(tmp_path / "bin")}

    assert locate(mine, environ) == mine
    assert locate(Path(mine), environ) == mine


def test_the_variable_comes_before_the_path(tmp_path: Path) -> None:
    named = make(tmp_path / "named")
    make(tmp_path / "bin" / "claude")

    assert locate(None, {"STEERSMAN_CLI": named, "PATH": str(tmp_path / "bin")}) == named


def test_the_first_runnable_program_in_the_path_is_taken(tmp_path: Path) -> None:
    make(tmp_path / "a" / "claude", mode=0o644)
    (tmp_path / "b" / "claude").mkdir(parents=True)
    found = make(tmp_path / "c" / "claude")
    make(tmp_path / "d" / "claude")

    assert locate(environ={"PATH": ":".join(str(tmp_path / name) for name in "abcd")}) == found


@pytest.mark.parametrize(
    "place",
    [".claude/local/claude", ".local/bin/claude", ".npm-global/bin/claude", ".bun/bin/claude"],
)
def test_the_usual_places_are_searched_after_the_path(home: Path, place: str) -> None:
    installed = make(home / place)

    assert locate(environ={"PATH": "", "HOME": str(home)}) == installed


def test_the_binary_of_the_official_wheel_is_the_last_resort(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "claude_agent_sdk"
    bundled = make(package / "_bundled" / "claude")
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    # Other tests of this process may have imported the real one.
    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)

    found = locate(environ={"PATH": "", "HOME": str(home)})

    # A machine may have a CLI in one of the absolute usual places.
    assert found == bundled or found.startswith(("/usr/", "/opt/", "/home/linuxbrew/"))


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_named_cli_that_is_missing_is_an_error_at_once(
    tmp_path: Path, *, by_variable: bool
) -> None:
    make(tmp_path / "claude")
    missing = str(tmp_path / "missing")
    environ = {"PATH": str(tmp_path)} | ({"STEERSMAN_CLI": missing} if by_variable else {})

    with pytest.raises(CliNotFound) as caught:
        locate(None if by_variable else missing, environ)

    assert caught.value.looked_in == (missing,)


def test_a_named_cli_without_the_mode_is_an_error_at_once(tmp_path: Path) -> None:
    make(tmp_path / "claude")
    plain = make(tmp_path / "plain", mode=0o644)

    with pytest.raises(CliNotExecutable, match="plain"):
        locate(plain, {"PATH": str(tmp_path)})
    with pytest.raises(CliNotExecutable, match="directory"):
        locate(f"{tmp_path}/", {"PATH": str(tmp_path)})


def test_a_bare_name_is_looked_up_in_the_path_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "here" / "mine")
    installed = make(tmp_path / "bin" / "mine")
    monkeypatch.chdir(tmp_path / "here")

    assert locate("mine", {"PATH": str(tmp_path / "bin")}) == installed
    with pytest.raises(CliNotFound):
        locate("mine", {"PATH": f":{tmp_path / 'empty'}"})


def test_a_tilde_means_the_home_of_the_environment(home: Path) -> None:
    mine = make(home / "bin" / "claude")

    assert locate("~/bin/claude", {"HOME": str(home)}) == mine


def test_every_place_is_listed_with_what_was_wrong(tmp_path: Path) -> None:
    plain = make(tmp_path / "plain", mode=0o644)
    missing = str(tmp_path / "missing")

    with pytest.raises(CliNotFound) as caught:
        first_runnable([Path(missing), Path(plain), Path(missing)])

    assert caught.value.looked_in == (missing, f"{plain} (not executable)")
