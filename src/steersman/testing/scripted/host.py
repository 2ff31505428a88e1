"""Sends control requests to the host and receives the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from steersman._json import Json, JsonObject
from steersman.testing.scripted.output import Output, new_id


class HostClosed(Exception):
    """Stdin is closed, so the host cannot answer."""


class HostPreempted(Exception):
    """Another party has decided first, and the request was cancelled."""


class HostRefused(Exception):
    """The host answered with an error."""


@dataclass(frozen=True, slots=True)
class _Open:
    answer: asyncio.Future[Json]
    withdraw: Callable[[], None]
    outlives_turn: bool


class Host:
    """Sends control requests and finds the answer to each."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: dict[str, _Open] = {}
        self._withdrawn: set[str] = set()
        self._is_closed = False

    async def ask(
        self,
        request: JsonObject,
        *,
        timeout: float | None = None,
        withdraw: Callable[[], None] | None = None,
        outlives_turn: bool = False,
        until: asyncio.Future[Json] | None = None,
    ) -> Json:
        """Send `request` and return the response.

        An interrupt cancels the request, unless it `outlives_turn`. `withdraw` cancels the request
        if a `control_cancel_request` is not the right way. Raises `HostRefused` and `HostClosed`;
        after cancelling the request also `TimeoutError`, and `HostPreempted` if `until` is done
        first.
        """
        if self._is_closed:
            raise HostClosed
        request_id = new_id()
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        cancel = withdraw or (lambda: self._cancel(request_id))
        self._open[request_id] = _Open(answer, cancel, outlives_turn)
        self._output.line({"type": "control_request", "request_id": request_id, "request": request})
        try:
            async with asyncio.timeout(timeout):
                return await _first(answer, until)
        except (TimeoutError, HostPreempted):
            cancel()
            raise
        finally:
            self._open.pop(request_id, None)

    def notify(self, request: JsonObject) -> None:
        """Send a request without waiting for an answer."""
        if not self._is_closed:
            self._output.line(
                {"type": "control_request", "request_id": new_id(), "request": request}
            )

    def answered(self, response: JsonObject) -> None:
        """Handle a control response; the response to an unknown request is ignored."""
        asked = self._open.get(str(response.get("request_id")))
        if asked is None or asked.answer.done():
            return
        if response.get("subtype") == "error":
            asked.answer.set_exception(HostRefused(str(response.get("error"))))
        else:
            asked.answer.set_result(cast("Json", response.get("response")))

    def has_withdrawn(self, response: JsonObject) -> bool:
        """Return whether `response` answers a request that was cancelled."""
        return str(response.get("request_id")) in self._withdrawn

    def withdraw_all(self) -> None:
        """Cancel the requests of the turn; the tasks that wait for them are not ended here."""
        for request_id, asked in list(self._open.items()):
            if not asked.outlives_turn:
                del self._open[request_id]
                self._withdrawn.add(request_id)
                asked.withdraw()

    def close(self) -> None:
        """Fail all open requests, because the host has closed stdin."""
        self._is_closed = True
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_exception(HostClosed())

    def _cancel(self, request_id: str) -> None:
        self._output.line({"type": "control_cancel_request", "request_id": request_id})


async def _first(answer: asyncio.Future[Json], other: asyncio.Future[Json] | None) -> Json:
    if other is not None:
        await asyncio.wait([answer, other], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise HostPreempted
    return await answer
