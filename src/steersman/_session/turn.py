"""Turn: one prompt from `send()` until it settles, and the queue's record of it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from steersman._json import Json
from steersman._session.readers import FlatReader
from steersman.control.session import InterruptReceipt
from steersman.errors import SteersmanError
from steersman.journal import Entry, Journal, Kind, Outcome, TurnResult
from steersman.journal.text import TextStream
from steersman.messages.parsing import Message

if TYPE_CHECKING:
    from steersman.journal.blocks import BlockUpdate
    from steersman.journal.snapshot import State

T = TypeVar("T")

When = Literal["later", "next", "now"]
"""When a prompt reaches the model: in a turn of its own, at the next tool boundary, or at once."""

Delivery = Literal["queued", "started", "folded", "completed", "cancelled"]
"""The stage that a prompt has reached; a `folded` prompt became part of a turn in progress."""

TurnState = Literal["queued", "behind_ask", "running"] | Outcome
"""What a turn does or waits for; its outcome once it has settled.

`behind_ask`: the CLI works on an earlier turn, and that one waits for an answer. It may be a turn
of an earlier session, which the CLI continues before it reads the prompt.
"""

LINES = frozenset({Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING})
"""Kinds of entries that are lines of the conversation."""

TURN_KINDS = LINES | {Kind.RESTARTED, Kind.SETTLED}
"""Kinds of entries that readers of a turn get: its lines, its restarts and its end."""


class TurnSession(Protocol):
    """The session of a turn: what the turn itself calls."""

    @property
    def id(self) -> str | None:
        """The session id, if it is known."""
        ...

    @property
    def state(self) -> State:
        """What the session does or waits for."""
        ...

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop a turn."""
        ...

    async def withdraw(self, turn: Turn) -> bool:
        """Cancel a prompt that the model has not seen."""
        ...


class TurnReaders(Protocol):
    """Makes the readers of the turns of a session."""

    @property
    def session(self) -> TurnSession:
        """The session of the turns."""
        ...

    @property
    def journal(self) -> Journal:
        """The journal of the session."""
        ...

    @property
    def shown(self) -> frozenset[Kind]:
        """Kinds of entries that are messages for the caller."""
        ...

    @property
    def message_of(self) -> Callable[[Entry], Message | None]:
        """Returns the message of an entry of these kinds; None if it is not for the caller."""
        ...

    def check_may_wait(self) -> None:
        """Raise `UsageError` if the caller cannot wait for a turn of this session."""
        ...

    def of_turn(
        self, uuid: str, kinds: frozenset[Kind], pick: Callable[[Entry], T | None], after: int
    ) -> AsyncIterator[T]:
        """Iterate over what `pick` returns for a turn's entries, until the turn settles."""
        ...


class Turn:
    """A prompt that was sent.

    `await turn` returns its `TurnResult` and never raises because the turn failed. Any number of
    tasks may wait for a turn and read its messages or its text, each at its own pace.
    """

    def __init__(self, readers: TurnReaders, prompt: SentPrompt) -> None:
        self.session = readers.session
        """The session that the prompt was sent to."""
        self.uuid = prompt.uuid
        self._readers = readers
        self._prompt = prompt

    @property
    def delivery(self) -> Delivery:
        """The stage that the prompt has reached."""
        return self._prompt.delivery

    @property
    def state(self) -> TurnState:
        """What the turn does or waits for; its outcome once it has settled."""
        settled = self._prompt.settled_result
        if settled is not None:
            return settled.outcome
        if self._prompt.has_begun:
            return "running"
        return "behind_ask" if self.session.state == "waiting_permission" else "queued"

    @property
    def is_settled(self) -> bool:
        """Whether the turn has ended."""
        return self._prompt.is_settled

    def __await__(self) -> Generator[Any, None, TurnResult]:
        return self.result().__await__()

    async def result(self) -> TurnResult:
        """Wait for the end of the turn and return its result.

        Raises `UsageError` in another event loop than that of the session, and in a tool, hook or
        approver of the same session, for which the turn itself waits.
        """
        if not self._prompt.is_settled:
            self._readers.check_may_wait()
        return await self._prompt.result()

    def __aiter__(self) -> AsyncIterator[Message]:
        return self.messages()

    def messages(self) -> AsyncIterator[Message]:
        """Iterate over the turn's messages from its beginning to its result.

        Raises `ReaderLagged` if the beginning is no longer in memory.
        """
        return self._read(self._readers.message_of, self._readers.shown)

    def raw(self) -> AsyncIterator[bytes]:
        """Iterate over the turn's lines as received, without control lines."""
        return self._read(lambda entry: entry.line if entry.kind in LINES else None)

    def text(self) -> AsyncIterator[str]:
        """Iterate over the main agent's text as it grows. Joined, it is the result's `text`."""
        stream = TextStream()
        return self._read(lambda entry: stream.feed(entry) or None)

    def blocks(self) -> AsyncIterator[BlockUpdate]:
        """Iterate over the main agent's blocks as they grow, with tool inputs parsed so far."""
        from steersman.journal.blocks import BlockStream  # noqa: PLC0415 - few programs use it

        stream = BlockStream()
        return FlatReader(self._read(lambda entry: stream.feed(entry) or None))

    async def interrupt(self, *, also_queued: bool = False) -> InterruptReceipt:
        """Stop this turn and wait until it has settled; the receipt lists what still waits.

        A turn that has settled stays as it is.
        """
        return await self.session.interrupt(turn=self, also_queued=also_queued)

    async def withdraw(self) -> bool:
        """Cancel the prompt if the model has not seen it; returns whether that worked."""
        return await self.session.withdraw(self)

    @property
    def has_begun(self) -> bool:
        """Whether the CLI has started to process the prompt."""
        return self._prompt.has_begun

    async def begun(self) -> None:
        """Return once the CLI has started to process the prompt, or has finished with it."""
        if not self._prompt.has_begun:
            self._readers.check_may_wait()
        await self._prompt.begun()

    def _read(
        self, pick: Callable[[Entry], T | None], kinds: frozenset[Kind] = TURN_KINDS
    ) -> AsyncIterator[T]:
        return self._readers.of_turn(self.uuid, kinds, pick, self._prompt.begins_after)


class SentPrompt:
    """The prompt queue's record of one turn: what is sent, and what only the queue may change."""

    def __init__(
        self,
        readers: TurnReaders,
        uuid: str,
        content: Json,
        fields: Mapping[str, Json],
        when: When = "later",
    ) -> None:
        self.uuid = uuid
        self.content = content
        self.fields = fields
        self.when: When = when
        self.context = contextvars.copy_context()
        """Tools and hooks of this turn run in the context of the `send()` that created it."""
        self.delivery: Delivery = "queued"
        self.begins_after = readers.journal.last_seq
        """The number of the last journal entry before the prompt was written."""
        self.steers = False
        """Whether the prompt was written into the turn of another one."""
        self.aliases: list[str] = []
        """Further uuids under which the CLI was asked to continue the prompt's turn."""
        self.may_be_processed = False
        """Whether an earlier CLI may have received this uuid.

        The CLI silently drops a prompt whose uuid it has already processed.
        """
        self.was_continued = False
        """Whether the current CLI was asked to continue the prompt's turn."""
        self.losses = 0
        """How many CLIs were lost that had the prompt."""
        self.was_interrupted = False
        self.is_broken = False
        """Whether streamed text was abandoned, so that it differs from the final messages."""
        self.cause: SteersmanError | None = None
        """Why we ended the turn ourselves, if we did."""
        self.stop_reason = ""
        """The `stop_reason` of the last hook that ended the turn."""
        self.continuation = ""
        """What continues the turn, if calls of it waited when an earlier session was left."""
        self.waits_for: tuple[str, ...] = ()
        """The asks that the turn waits for, once the session is being parked."""
        self._begun = asyncio.Event()
        self._settled: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        self.turn = Turn(readers, self)
        """The caller's view of this prompt."""

    @property
    def expects_answer(self) -> bool:
        """Whether the model is to answer the prompt; context added by `query=False` is not."""
        return self.fields.get("shouldQuery") is not False

    @property
    def has_begun(self) -> bool:
        """Whether the CLI has started to process the prompt."""
        return self._begun.is_set()

    @property
    def is_settled(self) -> bool:
        """Whether the turn has ended."""
        return self._settled.done()

    @property
    def settled_result(self) -> TurnResult | None:
        """The result, if the turn has ended."""
        return self._settled.result() if self._settled.done() else None

    async def begun(self) -> None:
        """Return once the CLI has started to process the prompt, or has finished with it."""
        await self._begun.wait()

    async def result(self) -> TurnResult:
        """Wait for the end of the turn and return its result."""
        if self._settled.done():
            return self._settled.result()
        # Shielded: a cancelled waiter must not settle the turn for the others.
        return await asyncio.shield(self._settled)

    def started(self) -> None:
        """Record that the CLI has started to process the prompt."""
        self.delivery = "started"
        self._begun.set()

    def cli_lost(self) -> None:
        """Record that the CLI that had the prompt exited, and that another one will get it."""
        self.losses += 1
        self.is_broken = self.is_broken or self.has_begun
        self.may_be_processed = True
        self.was_continued = False
        self.cause = None
        self.stop_reason = ""

    def settle(self, result: TurnResult, delivery: Delivery) -> None:
        """Settle the turn. Later calls are ignored."""
        self._begun.set()
        if not self._settled.done():
            self.delivery = delivery
            self._settled.set_result(result)
