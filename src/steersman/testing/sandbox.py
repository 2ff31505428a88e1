"""A sandbox for the stock CLI.

A temporary directory and an environment that is built from nothing: no login, no settings, no
network except loopback. No variable of the caller's environment reaches the CLI.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from steersman.errors import CliNotFound
from steersman.transports.locate import locate, wheel_folders

SCRIPTED_API_KEY = "sk-ant-scripted-0000"
"""A key without access to anything; the scripted model accepts any key."""

NOWHERE = "http://127.0.0.1:9"
"""A proxy that refuses every connection: the discard port of loopback, which is closed."""

FIXED_ENVIRONMENT: Mapping[str, str] = {
    # Bash and the system's tools; nothing that the user installed.
    "PATH": "/usr/bin:/bin",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "ANTHROPIC_API_KEY": SCRIPTED_API_KEY,
    # Traffic of the CLI to other hosts than the model.
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Any remaining connection of the CLI or its tools goes to a closed port.
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), NOWHERE),
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), NOWHERE),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

OFFICIAL_WHEEL = "claude_agent_sdk"

FOLDERS = ("home", "config", "project", "tmp")


class CliSandbox:
    """Four empty folders and an environment for CLIs; removed when `with` ends."""

    def __init__(self) -> None:
        self._root: Path | None = None

    def __enter__(self) -> Self:
        # Resolved, because the CLI reports real paths and macOS links /tmp elsewhere.
        self._root = Path(tempfile.mkdtemp(prefix="steersman-")).resolve()
        for folder in FOLDERS:
            (self._root / folder).mkdir()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A CLI that is exiting may still write, so the first attempt may fail; the second raises.
        shutil.rmtree(self.root, ignore_errors=True)
        if self.root.exists():
            shutil.rmtree(self.root)

    @property
    def root(self) -> Path:
        """The directory that contains all folders and is removed at the end."""
        if self._root is None:
            raise RuntimeError("a sandbox has folders only inside `with CliSandbox()`")
        return self._root

    @property
    def home(self) -> Path:
        """The CLI's `HOME`."""
        return self.root / "home"

    @property
    def config(self) -> Path:
        """The CLI's `CLAUDE_CONFIG_DIR`, which contains its transcripts."""
        return self.root / "config"

    @property
    def project(self) -> Path:
        """The working directory for the CLI."""
        return self.root / "project"

    @property
    def tmp(self) -> Path:
        """The directory for temporary files of the CLI and its tools."""
        return self.root / "tmp"

    def env(self, model_url: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the whole environment of a CLI that uses the model at `model_url`.

        Raises `ValueError` if the model is not on loopback.
        """
        if urlsplit(model_url).hostname not in LOOPBACK:
            raise ValueError(f"not on loopback: {model_url}")
        return {
            **FIXED_ENVIRONMENT,
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "TMPDIR": str(self.tmp),
            "CLAUDE_CODE_TMPDIR": str(self.tmp),
            "ANTHROPIC_BASE_URL": model_url,
            **(extra or {}),
        }


def find_stock_cli(wheel: str = OFFICIAL_WHEEL) -> Path:
    """Return the CLI binary of the installed official wheel, without importing the wheel.

    Raises `CliNotFound`.
    """
    binaries = [Path(place, "_bundled", "claude") for place in wheel_folders(wheel)]
    for binary in binaries:
        if binary.is_file():
            return binary
    raise CliNotFound([str(binary) for binary in binaries] or [f"the package {wheel}"])


def find_any_cli() -> str:
    """Return the CLI of the official wheel, or else the one that a session would run.

    Raises `CliNotFound`.
    """
    try:
        return str(find_stock_cli())
    except CliNotFound:
        return locate()
