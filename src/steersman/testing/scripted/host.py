"""What a scripted CLI asks of its host, and the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from steersman.testing.scripted.output import Output, new_id

__all__ = ["Host", "HostBeaten", "HostGone", "HostRefused"]


class HostGone(Exception):
    """Stdin is closed: nobody can answer any more."""


class HostBeaten(Exception):
    """Somebody else has decided, and the request was taken back."""


class HostRefused(Exception):
    """The host answered with an error."""


@dataclass(frozen=True, slots=True)
class _Open:
    answer: asyncio.Future[Any]
    withdraw: Callable[[], None]
    outlives_turn: bool


class Host:
    """Sends control requests and finds the answer to each."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: dict[str, _Open] = {}
        self._withdrawn: set[str] = set()
        self._is_gone = False

    async def ask(
        self,
        request: Mapping[str, Any],
        *,
        timeout: float | None = None,
        withdraw: Callable[[], None] | None = None,
        outlives_turn: bool = False,
        until: asyncio.Future[Any] | None = None,
    ) -> Any:
        """The response to `request`, which an interrupt takes back unless it `outlives_turn`.

        Raises `HostRefused`, `HostGone`, and after taking the request back, which is done by
        `withdraw` where a cancel frame is not the way, `TimeoutError`, or `HostBeaten` when `until`
        is done first.
        """
        if self._is_gone:
            raise HostGone
        request_id = new_id()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        taken_back = withdraw or (lambda: self._cancel(request_id))
        self._open[request_id] = _Open(answer, taken_back, outlives_turn)
        self._output.line({"type": "control_request", "request_id": request_id, "request": request})
        try:
            async with asyncio.timeout(timeout):
                return await _first(answer, until)
        except (TimeoutError, HostBeaten):
            taken_back()
            raise
        finally:
            self._open.pop(request_id, None)

    def tell(self, request: Mapping[str, Any]) -> None:
        """Send a request whose answer nobody waits for."""
        if not self._is_gone:
            self._output.line(
                {"type": "control_request", "request_id": new_id(), "request": request}
            )

    def answered(self, response: Mapping[str, Any]) -> None:
        """Take a control response; one that nobody waits for is ignored."""
        asked = self._open.get(str(response.get("request_id")))
        if asked is None or asked.answer.done():
            return
        if response.get("subtype") == "error":
            asked.answer.set_exception(HostRefused(str(response.get("error"))))
        else:
            asked.answer.set_result(cast("Any", response.get("response")))

    def has_withdrawn(self, response: Mapping[str, Any]) -> bool:
        """Whether it is the answer to a request that was taken back."""
        return str(response.get("request_id")) in self._withdrawn

    def withdraw_all(self) -> None:
        """Tell the host that the turn wants no answers any more; its tasks are not ended here."""
        for request_id, asked in list(self._open.items()):
            if not asked.outlives_turn:
                del self._open[request_id]
                self._withdrawn.add(request_id)
                asked.withdraw()

    def lose(self) -> None:
        """The host closed our stdin."""
        self._is_gone = True
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_exception(HostGone())

    def _cancel(self, request_id: str) -> None:
        self._output.line({"type": "control_cancel_request", "request_id": request_id})


async def _first(answer: asyncio.Future[Any], other: asyncio.Future[Any] | None) -> Any:
    if other is not None:
        await asyncio.wait([answer, other], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HostBeaten
    return await answer
