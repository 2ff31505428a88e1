"""Build both distributions, check them, and run the demo from them in an empty environment.

    python scripts/release.py                    # changes no file of the repository
    python scripts/release.py --version 0.2.0    # first writes the version and gathers changelog.d

Nothing is uploaded: what has been built is in dist/.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.metadata import Metadata

__all__ = ["Problem", "check_built", "check_sdist", "check_wheel", "main"]

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "packages" / "steersman-conformance"
DIST = ROOT / "dist"
LIMIT = 600.0
"""Seconds for one command; most need a few."""

VERSION = re.compile(r'^version = ".*"', re.MULTILINE)
IN_SDIST = ("LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "src/steersman/py.typed")
BUILT: dict[str, str] = {"console": "steersman/web/static/index.html"}
"""Files that a build step makes, which a wheel must have if the folder of their source is here."""


class Problem(Exception):
    """Something that must not be released."""


def main(arguments: list[str] | None = None) -> int:
    """Make and check a release. Returns 0, or 1 with the reason on stderr."""
    chosen = _chosen(arguments)
    try:
        if chosen.version:
            with _timed("versions and changelog"):
                set_version(chosen.version)
        with _timed("build"):
            wheels, sdist = build()
        with _timed("check"):
            for wheel in wheels:
                check_wheel(wheel)
            check_built(wheels[0])
            check_sdist(sdist, wheels[0])
        with tempfile.TemporaryDirectory() as folder:
            _try_out(Path(folder), wheels, embedded=chosen.embedded)
    except (Problem, subprocess.SubprocessError, OSError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    for path in (*wheels, sdist):
        _show(f"{path.stat().st_size / 1000:8.0f} kB  dist/{path.name}")
    return 0


def _chosen(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make release", description=__doc__.splitlines()[0])
    parser.add_argument("--version", help="write this version, and gather changelog.d, before")
    parser.add_argument(
        "--embedded", action="store_true", help="do not install the stock CLI for the demo"
    )
    return parser.parse_args(arguments)


# The version


def set_version(version: str) -> None:
    """Write a version into both distributions and gather the fragments into CHANGELOG.md."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Problem(f"--version: {version} is given; three numbers are needed, such as 0.2.0")
    minor = version.rpartition(".")[0]
    for folder in (ROOT, SUITE):
        path = folder / "pyproject.toml"
        text = path.read_text(encoding="utf-8")
        text = re.sub(
            r'^version = ".*"', f'version = "{version}"', text, count=1, flags=re.MULTILINE
        )
        text = re.sub(r'"steersman~=[\d.]+"', f'"steersman~={minor}.0"', text)
        path.write_text(text, encoding="utf-8")
    _run("-m", "towncrier", "build", "--yes", "--version", version)


# Building


def build() -> tuple[list[Path], Path]:
    """Build both wheels and the source distribution into dist/, and return them."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run("-m", "hatchling", "build", "-d", str(DIST), "-t", "sdist", "-t", "wheel")
    _run("-m", "hatchling", "build", "-d", str(DIST), "-t", "wheel", cwd=SUITE)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    wheels = [
        DIST / f"{name}-{version}-py3-none-any.whl"
        for name in ("steersman", "steersman_conformance")
    ]
    sdist = DIST / f"steersman-{version}.tar.gz"
    if missing := [path.name for path in (*wheels, sdist) if not path.is_file()]:
        raise Problem(f"the build did not make {', '.join(missing)}: do the versions differ?")
    return wheels, sdist


# Checking


def check_wheel(wheel: Path) -> None:
    """Check the metadata of a wheel, its files against RECORD, and that built files are there."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        info = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
        _check_metadata(wheel, opened.read(f"{info}/METADATA"))
        rows = csv.reader(opened.read(f"{info}/RECORD").decode().splitlines())
        recorded = {name: digest for name, digest, _size in rows}
        if names != recorded.keys():
            raise Problem(f"{wheel.name}: RECORD differs: {sorted(names ^ recorded.keys())[:5]}")
        for name in names - {f"{info}/RECORD"}:
            if recorded[name] != _digest(opened.read(name)):
                raise Problem(f"{wheel.name}: {name} is not what RECORD says")


def check_built(wheel: Path) -> None:
    """Check that files which a build step makes are in the wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, needed in BUILT.items():
        if (ROOT / folder).is_dir() and needed not in names:
            raise Problem(f"{wheel.name}: {needed} is missing: run `make {folder}-build`")


def check_sdist(sdist: Path, wheel: Path) -> None:
    """Check that a source distribution has what it needs, and gives the same wheel."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        _check_metadata(sdist, (source / "PKG-INFO").read_bytes())
        if missing := [name for name in IN_SDIST if not (source / name).is_file()]:
            raise Problem(f"{sdist.name}: {', '.join(missing)} missing")
        again = Path(folder, "again")
        _run("-m", "hatchling", "build", "-d", str(again), "-t", "wheel", cwd=source)
        ours, theirs = (set(zipfile.ZipFile(each).namelist()) for each in (wheel, *again.iterdir()))
    if ours != theirs:
        raise Problem(f"{sdist.name} gives another wheel: {sorted(ours ^ theirs)[:5]}")


def _check_metadata(path: Path, text: bytes) -> None:
    try:
        found = Metadata.from_email(text, validate=True)
    except ExceptionGroup as errors:
        raise Problem(f"{path.name}: {'; '.join(map(str, errors.exceptions))}") from None
    if not (found.description and found.license_expression and found.requires_python):
        raise Problem(f"{path.name}: description, licence or requires-python is missing")
    if found.description_content_type != "text/markdown":
        raise Problem(f"{path.name}: the description must be text/markdown")


def _digest(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"


# Trying it out


def _try_out(folder: Path, wheels: list[Path], *, embedded: bool) -> None:
    env, home = folder / "env", folder / "home"
    home.mkdir()
    with _timed("empty environment"):
        venv.create(env, with_pip=True)
    python = str(env / "bin" / "python")
    first, *others = map(str, wheels)
    with _timed("install"):
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
        needed = first if embedded else f"{first}[cli]"
        _run(*pip, "install", needed, *others, python=python, cwd=folder)
        _run(*pip, "check", python=python, cwd=folder)
    alone = {"PATH": f"{env / 'bin'}:/usr/bin:/bin", "HOME": str(home), "TERM": "dumb"}
    with _timed("demo"):
        steersman = str(env / "bin" / "steersman")
        words = ["demo", "--embedded"] if embedded else ["demo"]
        said = _run(*words, python=steersman, cwd=home, env=alone)
    _show(said.rstrip())
    with _timed("commands"):
        _run("--help", python=steersman, cwd=home, env=alone)
        _run("conform", "--help", python=steersman, cwd=home, env=alone)


def _run(
    *words: str,
    python: str = sys.executable,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        [python, *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""} if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:
        raise Problem(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def _timed(what: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    begun = clock()
    yield
    _show(f"{clock() - begun:8.1f} s   {what}")


def _show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
