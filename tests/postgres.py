"""A real PostgreSQL for tests: one private server per worker, on a Unix socket, gone at the end.

Fixtures: `postgres_server` can be stopped and started; `postgres_url` is an empty place on it for
one test. Without PostgreSQL or psycopg both skip; where CI runs, they fail.
"""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest

SETTINGS = (
    "-cfsync=off",
    "-cfull_page_writes=off",
    "-clisten_addresses=",
    "-cmax_connections=40",
    "-cshared_buffers=16MB",
    "-clogging_collector=off",
)
USER = "tester"
PATIENCE = 60.0
FILES = "STEERSMAN_POSTGRES_FILES"
"""Names a folder for the files of servers; `make mutate` starts hundreds of them."""
PR_SET_PDEATHSIG = 1


class PostgresServer:
    """A server whose files are in `folder`, and which ends with this process."""

    def __init__(self, programs: Path, folder: Path, account: str | None) -> None:
        self.folder = folder
        self._programs = programs
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._names = itertools.count(1)

    @property
    def pid(self) -> int:
        """The process of the server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    "-D",
                    self.folder / "data",
                    "-k",
                    self.folder,
                    *list(SETTINGS),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._account,
                group=_group_of(self._account),
                extra_groups=None if self._account is None else [],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                cwd=self.folder,
                preexec_fn=_ends_with_this_process,  # noqa: PLW1509 - one thread, one prctl
            )
        until = time.monotonic() + PATIENCE
        while self._ready() != 0:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, "PostgreSQL did not come up"
            time.sleep(0.02)

    def _ready(self) -> int:
        asked: list[str | Path] = [
            self._programs / "pg_isready",
            "-q",
            "-h",
            self.folder,
            "-d",
            "postgres",
        ]
        return subprocess.run(asked, check=False, timeout=PATIENCE).returncode

    def stop(self, *, immediate: bool = False) -> None:
        """End the server: `immediate` is as a crash, else connections are cut and all is saved."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
            process.wait(PATIENCE)

    def restart(self) -> None:
        """Stop the server as a crash does, and start it."""
        self.stop(immediate=True)
        self.start()

    def url(self, schema: str | None = None, user: str = USER, password: str = "") -> str:
        """Return the URL of a schema of the server, which is created; by default a new one."""
        name = f"place_{next(self._names)}" if schema is None else schema
        self.run(f'CREATE SCHEMA IF NOT EXISTS "{name}"')
        secret = f":{quote(password, safe='')}" if password else ""
        place = quote(str(self.folder), safe="")
        return f"postgresql://{user}{secret}@/postgres?host={place}&options=-csearch_path%3D{name}"

    def run(self, statement: str) -> str:
        """Run a statement with `psql` and return what it prints."""
        return subprocess.run(
            [
                self._programs / "psql",
                "-h",
                self.folder,
                "-U",
                USER,
                "-d",
                "postgres",
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                statement,
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        ).stdout.strip()


@pytest.fixture(scope="session")
def postgres_server(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Generator[PostgresServer]:
    """A running server of this worker. A test that stops it starts it again."""
    programs = _find_programs()
    if programs is None or find_spec("psycopg") is None:
        missing = "PostgreSQL" if programs is None else "psycopg"
        if os.environ.get("CI"):
            pytest.fail(f"CI must have {missing}: see .ci/run")
        pytest.skip(f"no {missing} on this machine")
    # A socket's path has at most 107 characters, and `nobody` must reach it.
    place = os.environ.get(FILES, "/tmp")
    base = tmp_path_factory.getbasetemp()
    of_workers = base if worker_id == "master" else base.parent
    shared = Path(place) if FILES in os.environ else of_workers
    folder = Path(tempfile.mkdtemp(prefix="steersman-pg-", dir=place))
    account = _account()
    try:
        with _new_cluster(shared, place, programs, account) as template:
            shutil.copytree(template, folder / "data", symlinks=True)
        _give(folder, account)
        server = PostgresServer(programs, folder, account)
        server.start()
        try:
            yield server
        finally:
            server.stop(immediate=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of an empty schema."""
    return postgres_server.url()


@contextmanager
def _new_cluster(shared: Path, place: str, programs: Path, account: str | None) -> Generator[Path]:
    """Yield the files of a new server, made by the first worker that needs them."""
    with (shared / "postgres.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / "postgres-template"
        if not made.exists():
            folder = Path(tempfile.mkdtemp(prefix="steersman-initdb-", dir=place))
            try:
                _give(folder, account)
                subprocess.run(
                    [
                        programs / "initdb",
                        "-D",
                        folder / "data",
                        "-U",
                        USER,
                        "-A",
                        "trust",
                        "-E",
                        "UTF8",
                        "--locale=C",
                        "--no-sync",
                        "--no-instructions",
                    ],
                    check=True,
                    capture_output=True,
                    user=account,
                    group=_group_of(account),
                    extra_groups=None if account is None else [],
                    env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                    cwd=folder,
                    timeout=PATIENCE,
                )
                shutil.move(folder / "data", made)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        yield made


def _find_programs() -> Path | None:
    """Return the folder of `initdb`; Debian keeps it out of PATH, one folder per version."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda at: int(at.parts[-3])
    )
    return versions[-1].parent if versions else None


def _account() -> str | None:
    """Return the account that the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _group_of(account: str | None) -> int | None:
    return None if account is None else pwd.getpwnam(account).pw_gid


def _give(folder: Path, account: str | None) -> None:
    if account is None:
        return
    entry = pwd.getpwnam(account)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


_prctl: Callable[..., int] | None = getattr(ctypes.CDLL(None), "prctl", None)


def _ends_with_this_process() -> None:
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
