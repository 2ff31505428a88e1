"""The asks of a chat: what is asked, what is typed, and what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from steersman._json import JsonDict
from steersman.cli.call_text import CallView, brief, view
from steersman.cli.chat_lines import ChatLines
from steersman.cli.page import Page
from steersman.cli.terminal_asks import DENIED, HIDDEN, KEYS, EditFailed, chosen, reason_of
from steersman.permissions import (
    Allow,
    Decision,
    Deny,
    PermissionContext,
    Question,
    QuestionAnswer,
    QuestionAsk,
)

Edit = Callable[[JsonDict], Awaitable[JsonDict]]


@dataclass(slots=True)
class _Open:
    """An ask that waits for a key."""

    seen: CallView
    name: str
    given: JsonDict
    context: PermissionContext
    answer: asyncio.Future[Decision]
    hidden: int
    """How many lines of it were not shown yet."""


class ChatAsks:
    """Asks one thing at a time. A key answers, or what is typed before the next enter."""

    def __init__(self, lines: ChatLines, page: Page, edit: Edit) -> None:
        self._lines = lines
        self._page = page
        self._edit = edit
        self._lock = asyncio.Lock()
        self._open: _Open | None = None
        self._typed: asyncio.Future[str] | None = None
        self.label = ""
        """What the next line is for, if it is not a prompt."""

    @property
    def wants_key(self) -> bool:
        """Whether a key answers what is asked."""
        return self._open is not None and self._typed is None

    @property
    def wants_line(self) -> bool:
        """Whether the next line answers what is asked."""
        return self._typed is not None

    async def decide(self, name: str, given: JsonDict, context: PermissionContext) -> Decision:
        """Show a call, and return what the user decides."""
        async with self._lock:
            answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
            seen = view(name, given)
            ask = self._open = _Open(seen, name, given, context, answer, seen.hidden)
            self._lines.ask(ask.seen, ask.seen.shown(), KEYS)
            try:
                decision = await answer
            except asyncio.CancelledError:
                self._lines.line("note", "no longer asked", brief(name, given))
                raise
            finally:
                self._open = None
                if self._typed is not None:
                    self._typed.cancel()
        if isinstance(decision, Deny):
            self._lines.line("denied", brief(name, given), decision.message)
        return decision

    async def press(self, key: str) -> None:
        """Answer the open ask with a key."""
        ask = self._open
        if ask is None or ask.answer.done():
            return
        match key:
            case "y" | "a" | "e" if ask.hidden:
                self._lines.line("ask", HIDDEN.format(ask.hidden))
            case "y":
                ask.answer.set_result(Allow())
            case "a":
                ask.answer.set_result(ask.context.always())
            case "n":
                reason = (await self._line("no, because")).strip()
                _settle(ask.answer, Deny(reason or DENIED))
            case "e":
                try:
                    _settle(ask.answer, Allow(await self._edit(ask.given)))
                except EditFailed as error:
                    self._lines.line("failed", str(error))
            case _:
                self._lines.line("ask", reason_of(ask.context))
                self._lines.ask(ask.seen, ask.seen.lines, KEYS)
                ask.hidden = 0

    async def answer(self, asked: QuestionAsk) -> Sequence[QuestionAnswer]:
        """Show the choices of `AskUserQuestion`, and return the user's answers."""
        async with self._lock:
            return [await self._chosen(each) for each in asked.questions]

    async def _chosen(self, asked: Question) -> QuestionAnswer:
        self._lines.line("ask", asked.question)
        for number, choice in enumerate(asked.options, start=1):
            self._page.line(str(number), choice.label, choice.description)
        typed = chosen(asked, await self._line("a number, or an answer"))
        if not typed:
            return asked.skip()
        self._lines.line("you", typed)
        return asked.answer(typed)

    def type_line(self, text: str) -> None:
        """Give the line that is waited for."""
        if self._typed is not None and not self._typed.done():
            self._typed.set_result(text)

    async def _line(self, label: str) -> str:
        self._typed = asyncio.get_running_loop().create_future()
        self.label = label
        try:
            return await self._typed
        finally:
            self._typed = None
            self.label = ""


def _settle(answer: asyncio.Future[Decision], decision: Decision) -> None:
    # The CLI may have withdrawn the request meanwhile.
    if not answer.done():
        answer.set_result(decision)
