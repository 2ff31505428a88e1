"""What is shipped: small, pure, and whole; and the two distributions install side by side."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from scripts.release import Problem, check_wheel

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "packages/steersman-conformance"
LARGEST = 1_300_000
"""Bytes, of source alone; the test kit is a fifth of it."""
CONSOLE = "steersman/web/static/"
LARGEST_CONSOLE = 400_000
"""Bytes in the wheel, for what `make console-build` builds."""

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both wheels, by the name of their distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        [
            *(*PIP, "wheel", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", str(folder), str(ROOT), str(SUITE)),
        ],
        check=True,
        timeout=120,
    )
    return {path.name.partition("-")[0]: path for path in folder.iterdir()}


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def modules_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}


def test_the_wheel_is_small_pure_and_whole(wheels: dict[str, Path]) -> None:
    wheel = wheels["steersman"]

    names = names_in(wheel)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size - size_of_console(wheel) < LARGEST
    # The guard is run by its path, so nothing imports it in a way that would be missed.
    guard = {f"steersman/transports/{name}.py" for name in ("guard", "guard_server", "kernel")}
    assert {"steersman/py.typed", *guard} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"steersman"}
    assert modules_in(ROOT / "src") <= names


def test_a_wheel_that_is_not_as_it_was_built_is_not_released(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """`make release` checks each wheel as an index does, and its files against its RECORD."""
    for wheel in wheels.values():
        check_wheel(wheel)

    changed = tmp_path / wheels["steersman"].name
    with zipfile.ZipFile(wheels["steersman"]) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + (b"#" if name == "steersman/errors.py" else b""))
    with pytest.raises(Problem, match=r"steersman/errors\.py is not what RECORD says"):
        check_wheel(changed)


def test_wheel_and_sdist_contain_the_built_console(wheels: dict[str, Path], tmp_path: Path) -> None:
    if not (ROOT / "src" / CONSOLE / "console.js").is_file():
        if os.environ.get("CI"):
            pytest.fail("the console is not built")
        pytest.skip("the console is not built: make console-build")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (sdist,) = tmp_path.iterdir()
    with tarfile.open(sdist) as file:
        sources = file.getnames()

    files = {f"{CONSOLE}{name}" for name in ("index.html", "console.js", "console.css")}

    assert files <= names_in(wheels["steersman"])
    assert 0 < size_of_console(wheels["steersman"]) < LARGEST_CONSOLE
    assert all(any(name.endswith(f"/src/{file}") for name in sources) for file in files)
    assert not [name for name in sources if "node_modules" in name]


def test_a_build_without_the_console_says_so(tmp_path: Path) -> None:
    variable = "src/steersman-compat.pth"
    for name in ("pyproject.toml", "README.md", "LICENSE", "console/hatch_build.py", variable):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "src/steersman"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()

    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert "no console" in built.stdout + built.stderr
    assert "make console-build" in built.stdout + built.stderr


def size_of_console(wheel: Path) -> int:
    """Return how many bytes of a wheel are the console."""
    files = zipfile.ZipFile(wheel).infolist()
    return sum(each.compress_size for each in files if each.filename.startswith(CONSOLE))


def test_the_conformance_suite_is_a_wheel_of_its_own(wheels: dict[str, Path]) -> None:
    names = names_in(wheels["steersman_conformance"])

    assert {name.split("/")[0].split("-")[0] for name in names} == {"steersman_conformance"}
    assert modules_in(SUITE / "src") <= names
    baselines = {path.name for path in SUITE.rglob("baselines/*.json")}
    assert baselines
    assert baselines <= {name.rpartition("/")[2] for name in names}


def test_the_conformance_suite_has_the_version_of_the_release_it_fits() -> None:
    main, suite = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (ROOT, SUITE)
    )

    minor = re.match(r"\d+\.\d+", main["version"])
    assert minor is not None
    assert suite["version"] == main["version"]
    assert suite["dependencies"] == [f"steersman~={minor[0]}.0"]


def test_both_wheels_install_and_the_command_finds_the_suite(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    command = [*PIP, "install", "--no-deps", "--no-index", "--target", str(tmp_path)]
    subprocess.run([*command, *map(str, wheels.values())], check=True, timeout=120)

    run = subprocess.run(
        [sys.executable, "-m", "steersman.cli", "conform", "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=tmp_path,
    )

    assert "--baseline FILE" in run.stdout
