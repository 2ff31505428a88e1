"""Whether a live CLI has a session open, and a lock so that none opens it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from steersman.errors import SessionInUse
from steersman.stores.conversation_lock import LockDirectory, claim
from steersman.stores.transcript_files import running_session

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
