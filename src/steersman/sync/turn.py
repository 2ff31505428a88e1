"""`Turn` for synchronous code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from steersman._portal.portal import Portal
from steersman._session.session import WAIT_LONGER
from steersman.agent import Delivery, TurnState
from steersman.agent import Turn as AsyncTurn
from steersman.control.session import InterruptReceipt
from steersman.errors import RequestTimeout, SteersmanError, UsageError
from steersman.journal import TurnResult
from steersman.messages import Message
from steersman.sync.items import Items

if TYPE_CHECKING:
    from steersman.journal.blocks import BlockUpdate

T = TypeVar("T")


class TurnSession(Protocol):
    """The session of a turn: what the turn itself needs of it."""

    @property
    def id(self) -> str | None:
        """The session id, if it is known."""
        ...

    def interrupt(self, *, turn: Turn | None = None, also_queued: bool = False) -> InterruptReceipt:
        """Stop a turn."""
        ...

    def withdraw(self, turn: Turn) -> bool:
        """Cancel a prompt that the model has not seen."""
        ...


class Turn:
    """A prompt that was sent.

    `turn.result()` returns its `TurnResult` and never raises because the turn failed. Any number of
    threads may wait for a turn and read its messages or its text, each at its own pace.
    `KeyboardInterrupt` in such a wait interrupts the turn, waits for it at most `close_grace`
    seconds, and is raised.
    """

    def __init__(self, session: TurnSession, turn: AsyncTurn, portal: Portal) -> None:
        self.session = session
        """The session that the prompt was sent to."""
        self.uuid = turn.uuid
        self._turn = turn
        self._portal = portal

    @property
    def delivery(self) -> Delivery:
        """The stage that the prompt has reached."""
        return self._turn.delivery

    @property
    def state(self) -> TurnState:
        """What the turn does or waits for; its outcome once it has settled."""
        return self._turn.state

    @property
    def is_settled(self) -> bool:
        """Whether the turn has ended."""
        return self._turn.is_settled

    def result(self, timeout: float | None = None) -> TurnResult:
        """Wait for the end of the turn and return its result.

        Raises `UsageError` in a tool, hook or approver of the same session, for which the turn
        itself waits, and `RequestTimeout` (also a `TimeoutError`) after `timeout` seconds. The turn
        then continues.
        """
        if timeout is None:
            return self._until(lambda: self._portal.call(self._turn.result))
        _check_timeout(timeout)
        late = RequestTimeout("result", "the turn has not ended", timeout, hint=WAIT_LONGER)
        return self._until(lambda: self._portal.call_within(timeout, late, self._turn.result))

    def __iter__(self) -> Iterator[Message]:
        return self.messages()

    def messages(self) -> Iterator[Message]:
        """Iterate over the turn's messages from its beginning to its result.

        Raises `ReaderLagged` if the beginning is no longer in memory.
        """
        return Items(self._portal, self._turn.messages, self._stop)

    def raw(self) -> Iterator[bytes]:
        """Iterate over the turn's lines as received, without control lines."""
        return Items(self._portal, self._turn.raw, self._stop)

    def text(self) -> Iterator[str]:
        """Iterate over the main agent's text as it grows. Joined, it is the result's `text`."""
        return Items(self._portal, self._turn.text, self._stop)

    def blocks(self) -> Iterator[BlockUpdate]:
        """Iterate over the main agent's blocks as they grow, with tool inputs parsed so far."""
        return Items(self._portal, self._turn.blocks, self._stop)

    def interrupt(self, *, also_queued: bool = False) -> InterruptReceipt:
        """Stop this turn and wait until it has settled; the receipt lists what still waits.

        A turn that has settled stays as it is.
        """
        return self._portal.call(self._turn.interrupt, also_queued=also_queued)

    def withdraw(self) -> bool:
        """Cancel the prompt if the model has not seen it; returns whether that worked."""
        return self._portal.call(self._turn.withdraw)

    @property
    def has_begun(self) -> bool:
        """Whether the CLI has started to process the prompt."""
        return self._turn.has_begun

    def begun(self) -> None:
        """Return once the CLI has started to process the prompt, or has finished with it."""
        self._until(lambda: self._portal.call(self._turn.begun))

    def _until(self, wait: Callable[[], T]) -> T:
        try:
            return wait()
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self) -> None:
        stop(self._portal, self._turn.interrupt)


def stop(portal: Portal, interrupt: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Interrupt a turn, and wait for that at most `portal.grace` seconds. Never raises."""
    late = RequestTimeout("interrupt", "the turn did not settle", portal.grace)
    with suppress(SteersmanError):
        portal.call_within(portal.grace, late, interrupt)


def _check_timeout(given: object) -> None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (is_number and cast("float", given) > 0):
        raise UsageError("timeout", given, "seconds above 0, or None")
