"""Refuses to run real CLIs while a test forbids it.

Every CLI process is started by `SubprocessTransport.open`. While the guard is active, `open` only
starts programs that `executable` has written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from steersman.ports import Launch, Receiver
from steersman.transports.subprocess import SubprocessChannel, SubprocessTransport


def is_scripted(program: str) -> bool:
    """Return whether `executable` has written `program`."""
    return Path(f"{program}.shared_log").is_file()


@contextmanager
def refusing_real_clis(refuse: Callable[[str], None]) -> Generator[None, None, None]:
    """Call `refuse`, which must raise, for every program that is not a scripted CLI."""
    original = SubprocessTransport.open

    async def open_(
        self: SubprocessTransport, launch: Launch, receiver: Receiver
    ) -> SubprocessChannel:
        program = str(launch.argv[0])
        if not is_scripted(program):
            refuse(program)
        return await original(self, launch, receiver)

    SubprocessTransport.open = open_  # type: ignore[method-assign]
    try:
        yield
    finally:
        SubprocessTransport.open = original  # type: ignore[method-assign]
