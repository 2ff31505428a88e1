"""What the live tests share: a safe agent, bounded waits, and a look at who is still alive."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from steersman import Agent, Session, Turn
from steersman.journal import Entry
from steersman.messages import Assistant, Message
from steersman.testing.model import ScriptedModel
from steersman.testing.script import Answer, Scene, Script

LIMIT = 30.0
"""Seconds for a whole test; every one of them needs a small part of it."""

POLL = 0.01
"""How often we look at things that tell nobody when they change: files and processes."""

T = TypeVar("T")


class MakeScripted(Protocol):
    """Makes an agent whose stock CLI lives in the sandbox and talks to a model with this script."""

    def __call__(
        self,
        *steps: Answer | Scene | Script,
        env: Mapping[str, str] | None = None,
        keep: int | None = None,
        **options: Any,
    ) -> tuple[Agent, ScriptedModel]:
        """Make it; a script is strict unless one is given. The model keeps the last requests."""
        ...


async def collect(stream: AsyncIterator[T]) -> list[T]:
    """Everything that a stream gives."""
    return [each async for each in stream]


def texts_of(messages: Iterable[Message]) -> list[str]:
    """The text that the model wrote, message by message."""
    return [
        each.text
        for each in messages
        if isinstance(each, Assistant) and each.text and not each.is_api_error_message
    ]


async def entries_of(session: Session) -> list[Entry]:
    """The whole journal, as far as it has come."""
    last = session.last_seq
    found: list[Entry] = []
    async for entry in session.journal():
        assert isinstance(entry, Entry)
        found.append(entry)
        if entry.seq >= last:
            break
    return found


async def entry_where(session: Session, fits: Callable[[Entry], bool], *, after: int = 0) -> Entry:
    """The first journal entry that fits, once it is there."""
    async for entry in session.journal(after=after):
        if isinstance(entry, Entry) and fits(entry):
            return entry
    raise AssertionError("the session ended without such an entry")


async def until(is_so: Callable[[], bool]) -> None:
    """Return once something is so that tells nobody when it changes; the caller bounds it."""
    while not is_so():  # noqa: ASYNC110 - files and processes set no event
        await asyncio.sleep(POLL)


async def first_words(turn: Turn, words: str) -> None:
    """Return once the turn has streamed `words`."""
    told = ""
    async for chunk in turn.text():
        told += chunk
        if words in told:
            return
    raise AssertionError(f"the turn ended after {told!r}")


# --- Who is still alive ----------------------------------------------------------------


def processes() -> Iterator[tuple[int, bytes, bytes]]:
    """The pid, command line and environment of every process that we may look at."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            # It may end, or belong to someone else, while we look.
            with suppress(OSError):
                yield (
                    int(folder.name),
                    (folder / "cmdline").read_bytes(),
                    (folder / "environ").read_bytes(),
                )


def inhabitants(root: Path) -> dict[int, str]:
    """The processes whose environment or command line names a directory, with what they run."""
    name = os.fsencode(root)
    return {
        pid: cmdline.replace(b"\0", b" ").decode(errors="replace")
        for pid, cmdline, environ in processes()
        if name in environ or name in cmdline
    }


def words_of(pid: int | None) -> list[str]:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]


def environ_of(pid: int | None) -> dict[str, str]:
    """The environment that a process was started with."""
    lines = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def vanished(root: Path, within: float) -> dict[int, str]:
    """Whoever still lives in a directory after some seconds; ends early when nobody does."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await until(lambda: not inhabitants(root))
    return inhabitants(root)
