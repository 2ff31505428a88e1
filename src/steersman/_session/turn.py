"""Turn: one prompt's life, from `send()` until it settles."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Generator
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from steersman.control.session import InterruptReceipt
from steersman.errors import SteersmanError
from steersman.journal import Entry, Kind, TurnResult
from steersman.journal.entries import message_of
from steersman.journal.text import TextStream
from steersman.messages.parsing import Message

if TYPE_CHECKING:
    from steersman.journal.blocks import BlockUpdate

__all__ = ["LINES", "Delivery", "Turn", "TurnOwner", "When"]

T = TypeVar("T")

When = Literal["later", "next", "now"]
"""When a prompt reaches the model: in a turn of its own, at the next tool boundary, or at once."""

Delivery = Literal["queued", "started", "folded", "completed", "cancelled"]
"""How far a prompt has come: `folded` ones became part of a turn that was under way."""

LINES = frozenset({Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING})
"""Entries that are lines of the conversation."""

TOLD = LINES | {Kind.RESTARTED, Kind.SETTLED}
"""The same, and where another CLI took it up again."""


class TurnOwner(Protocol):
    """What a turn needs of its session."""

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        ...

    @property
    def shown(self) -> frozenset[Kind]:
        """The entries that are messages for people."""
        ...

    def turn_reading(
        self, uuid: str, kinds: frozenset[Kind], pick: Callable[[Entry], T | None], after: int
    ) -> AsyncIterator[T]:
        """What `pick` makes of a turn's entries, until it settles."""
        ...

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop a turn."""
        ...

    async def withdraw(self, turn: Turn) -> bool:
        """Take a prompt back that the model has not seen."""
        ...


class Turn:
    """A prompt you can hold.

    `await turn` gives its `TurnResult` and never raises for the turn's fate. Any number of tasks
    may wait for it, and read its messages or its text, each at its own pace.
    """

    def __init__(
        self,
        session: TurnOwner,
        uuid: str,
        content: Any,
        fields: dict[str, Any],
        when: When = "later",
    ) -> None:
        self.session = session
        self.uuid = uuid
        self.content = content
        self.fields = fields
        self.when: When = when
        self.delivery: Delivery = "queued"
        """How far the prompt has come."""
        self.context = contextvars.copy_context()
        """Tools and hooks of this turn run in the context of the `send()` that made it."""
        self.steers = False
        """Whether it was written into the turn of another one."""
        self.aliases: list[str] = []
        """The uuids under which it was continued."""
        self.may_be_processed = False
        """Whether a CLI may have heard of it before, and so drop it as one that is done."""
        self.was_interrupted = False
        self.is_broken = False
        """Whether something was streamed that did not count in the end."""
        self.cause: SteersmanError | None = None
        """Why we ended it ourselves."""
        self.begins_after = session.last_seq
        self._begun = asyncio.Event()
        self._settled: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()

    @property
    def asks(self) -> bool:
        """Whether the model is to say something about it."""
        return self.fields.get("shouldQuery") is not False

    @property
    def is_settled(self) -> bool:
        """Whether the turn is over."""
        return self._settled.done()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        return self.result().__await__()

    async def result(self) -> TurnResult:
        """How the turn ended, once it has."""
        # Shielded: cancelling one who waits must not settle the turn for the others.
        return await asyncio.shield(self._settled)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self.messages()

    def messages(self) -> AsyncIterator[Message]:
        """The turn's messages from its beginning to its result.

        Raises `ReaderLagged` when the beginning is gone from memory.
        """
        shown = self.session.shown
        return self._read(message_of, shown)

    def raw(self) -> AsyncIterator[bytes]:
        """The turn's lines as they came, without control lines."""
        return self._read(lambda entry: entry.line if entry.kind in LINES else None)

    def text(self) -> AsyncIterator[str]:
        """What the main agent writes, as it writes it. Joined, it is the result's `text`."""
        stream = TextStream()
        return self._read(lambda entry: stream.feed(entry) or None)

    async def blocks(self) -> AsyncIterator[BlockUpdate]:
        """The main agent's blocks as they grow, a tool's input parsed as far as it has come."""
        from steersman.journal.blocks import BlockStream  # noqa: PLC0415 - read by whoever asks

        stream = BlockStream()
        async for updates in self._read(stream.feed):
            for update in updates:
                yield update

    async def interrupt(self, *, also_queued: bool = False) -> InterruptReceipt:
        """Stop this turn and wait until it has settled; the receipt tells what still waits.

        A turn that is over already stays as it is.
        """
        return await self.session.interrupt(turn=self, also_queued=also_queued)

    async def withdraw(self) -> bool:
        """Take the prompt back, if the model has not seen it; says whether that worked."""
        return await self.session.withdraw(self)

    def begin(self) -> None:
        """Say that the CLI is at work on it."""
        self.delivery = "started"
        self._begun.set()

    @property
    def has_begun(self) -> bool:
        """Whether the CLI has taken it up."""
        return self._begun.is_set()

    async def begun(self) -> None:
        """Return once the CLI is at work on it, or done with it."""
        await self._begun.wait()

    def cli_lost(self) -> None:
        """Say that the CLI that was at work on it is gone, and another one goes on."""
        self.is_broken = self.is_broken or self.has_begun
        self.may_be_processed = True
        self.cause = None

    def settle(self, result: TurnResult, delivery: Delivery) -> None:
        """Say how it ended; the first word counts."""
        self._begun.set()
        if not self._settled.done():
            self.delivery = delivery
            self._settled.set_result(result)

    def _read(
        self, pick: Callable[[Entry], T | None], kinds: frozenset[Kind] = TOLD
    ) -> AsyncIterator[T]:
        return self.session.turn_reading(self.uuid, kinds, pick, self.begins_after)
