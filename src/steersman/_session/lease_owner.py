"""Who has a lease: a text for users, from which a process of the same machine knows more.

The text has the token of the lease. If its process has ended, another process of the same machine
releases the lease, and need not wait until it ends.
"""

from __future__ import annotations

import hashlib
import os
import re
from uuid import uuid4

from steersman._process import boot_name, identity_of

OWNER = re.compile(r"process (\d+) on .*, lease ([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)", re.DOTALL)


def new_lease(machine: str) -> tuple[str, str]:
    """Return the owner and the token of a new lease of this process."""
    pid = os.getpid()
    token = f"{_short(boot_name())}-{_short(identity_of(pid))}-{uuid4().hex}"
    return f"process {pid} on {machine}, lease {token}", token


def token_if_ended(owner: str) -> str | None:
    """Return the token of an owner that was a process of this machine, and has ended; else None."""
    found = OWNER.fullmatch(owner)
    if found is None or found[2] != _short(boot_name()):
        # Of another machine or container, where its process may run.
        return None
    if found[3] == _short(identity_of(int(found[1]))):
        return None
    return "-".join(found.group(2, 3, 4))


def _short(name: str | None) -> str:
    # What is not known is equal to nothing.
    known = uuid4().hex if name is None else name
    return hashlib.sha256(known.encode()).hexdigest()[:12]
