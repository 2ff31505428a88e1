"""Changes of the CLI's files: lines at the end, notes beside a file, new files, removal.

A session is held meanwhile, so that no live CLI has it open.

A line is added with one write, and only to a file that exists. What is made is for its owner only.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress

from steersman import _json
from steersman._json import JsonObject
from steersman.errors import SessionInUse, SessionNotFound, UsageError
from steersman.stores.conversation_lock import LockDirectory, claim
from steersman.stores.transcript_files import running_session

OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
LONGEST_NOTE = 1 << 20


def append_lines(path: str, session_id: str, lines: Iterable[bytes]) -> None:
    """Add lines, each without its newline, to a file that exists. Raises `SessionNotFound`."""
    try:
        number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise SessionNotFound(session_id) from None
    except OSError as error:
        allowed = f"a session whose file can be written ({error.strerror})"
        raise UsageError("session_id", session_id, allowed) from None
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError("session_id", session_id, "a session whose file is a plain file")
        size = about.st_size
        # A line that was cut off stays one that cannot be read, and takes no other with it.
        is_torn = size > 0 and os.pread(number, 1, size - 1) != b"\n"
        _write(number, (b"\n" if is_torn else b"") + b"".join(each + b"\n" for each in lines))
    finally:
        os.close(number)


def create(path: str, lines: Iterable[bytes]) -> None:
    """Make a file that must not exist, with these lines. Removes it if that fails."""
    os.makedirs(os.path.dirname(path), OWNER_ONLY_FOLDER, exist_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        for line in lines:
            _write(number, line + b"\n")
    except BaseException:
        with suppress(OSError):
            os.remove(path)
        raise
    finally:
        os.close(number)


def write_note(path: str, content: JsonObject) -> None:
    """Write a small JSON file as a whole; a reader sees the old or the new one."""
    os.makedirs(os.path.dirname(path), OWNER_ONLY_FOLDER, exist_ok=True)
    made = f"{path}.{os.getpid()}.tmp"
    number = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        _write(number, _json.dumps(dict(content)))
    finally:
        os.close(number)
    os.replace(made, path)


def read_note(path: str) -> JsonObject:
    """Return a small JSON file; empty if there is none, or it cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        found = _json.loads(os.read(number, LONGEST_NOTE))
    except (OSError, ValueError):
        return {}
    finally:
        os.close(number)
    return found if _json.is_object(found) else {}


def remove(path: str, folder: str) -> None:
    """Remove a session's file, and the folder beside it; what is not there is no error."""
    with suppress(FileNotFoundError):
        os.remove(path)
    if os.path.islink(folder):
        os.unlink(folder)
        return
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def now() -> str:
    """Return the time as the CLI writes it."""
    at = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"


def _write(number: int, data: bytes) -> None:
    written = os.write(number, data)
    while written < len(data):
        written += os.write(number, memoryview(data)[written:])


HINT = "close it first; force=True does it all the same, and the CLI may write the file again"


@contextmanager
def held(config: str, session_id: str, *, force: bool) -> Generator[None]:
    """Hold a session that no other process has open. Raises `SessionInUse`, unless `force` is set.

    A session of steersman has a lock. Any other CLI writes down which conversation it has open.
    """
    if force:
        yield
        return
    try:
        lock = claim(LockDirectory(config), session_id)
    except SessionInUse as error:
        raise SessionInUse(
            error.what, hint=HINT, pid=error.pid, since=error.since, is_ending=error.is_ending
        ) from None
    try:
        pid = _running(config, session_id)
        if pid is not None:
            what = f"the conversation {session_id} is in use: the CLI {pid} has it open"
            raise SessionInUse(what, hint=HINT, pid=pid)
        yield
    finally:
        lock.release()


def _running(config: str, session_id: str) -> int | None:
    """Return the process of a CLI that has the session open."""
    try:
        names = os.listdir(os.path.join(config, "sessions"))
    except OSError:
        return None
    for name in names:
        number = name.removesuffix(".json")
        if number.isdecimal() and _is_alive(int(number)):
            found = running_session({"CLAUDE_CONFIG_DIR": config}, int(number))
            if found == session_id:
                return int(number)
    return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
