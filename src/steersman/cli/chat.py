"""`steersman chat`: a conversation that you steer while it works."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from steersman._json import JsonDict
from steersman._terminal import one_line
from steersman.agent import Agent, Session, When
from steersman.cli.arguments import AgentWords
from steersman.cli.chat_asks import ChatAsks
from steersman.cli.chat_input import BottomPrompt, Input, Keys, PlainInput
from steersman.cli.chat_lines import ChatLines
from steersman.cli.output import complain
from steersman.cli.page import LEAST, Page, console_for
from steersman.cli.statuses import COMPLETED, FAILED, INTERRUPTED, MISUSE
from steersman.errors import SteersmanError
from steersman.permissions import Decision, PermissionContext, QuestionAnswer, QuestionAsk

if TYPE_CHECKING:
    from steersman.options.keywords import OptionKwargs

HELP = "enter: next · ctrl-o: now · ctrl-l: later · ctrl-c: interrupt, twice: leave"
NOTES: dict[When, str] = {
    "next": "will be read after this tool",
    "now": "ends the turn after this tool",
    "later": "will be read after this turn",
}
PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
LEAVING = frozenset({"/exit", "/quit"})
BUSY = frozenset({"running", "waiting_tool_call", "waiting_permission"})
"""The states in which a prompt joins a turn."""


def talk(**words: Any) -> int:
    """Talk with the model, on a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        complain("chat needs a terminal; in a pipe, use `steersman run`")
        return MISUSE
    agent, given = AgentWords(**words).make()
    return asyncio.run(_chat(agent, given))


async def _chat(agent: Agent, words: OptionKwargs) -> int:
    is_plain = os.environ.get("TERM") == "dumb"
    with nullcontext() if is_plain else patch_stdout(raw=True):
        chat = Chat(console_for(sys.stdout), is_plain=is_plain)
        if agent.options.can_use_tool is None and agent.options.inbox is None:
            words = {**words, "can_use_tool": chat.decide, "on_question": chat.answer}
        async with agent.session(**words) as session:
            return await chat.run(session)


class Chat:
    """The prompt at the bottom, and what is shown above it."""

    _lines: ChatLines
    _asks: ChatAsks
    _session: Session

    def __init__(self, console: Console, *, is_plain: bool = False) -> None:
        self._console = console
        self._page = Page(console)
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_left = False
        """Whether the user has left, and not the session."""
        self._keys = Keys(self._press, self._interrupt, lambda: self._asks.wants_key)
        self._input: Input = (
            PlainInput(self._keys, self._label)
            if is_plain
            else BottomPrompt(self._keys, self._label, self._toolbar)
        )

    async def run(self, session: Session) -> int:
        """Talk until the user leaves or the session ends; return the exit status."""
        self._session = session
        self._lines = ChatLines(session, self._page, self._console)
        self._asks = ChatAsks(self._lines, self._page, self._input.edit)
        following = asyncio.Task(self._follow())
        try:
            await self._talk()
        finally:
            if self._keys.is_leaving:
                # The turn in progress is not waited for.
                await session.cancel()
            for task in (following, *self._tasks):
                task.cancel()
            await asyncio.wait([following, *self._tasks])
        self._page.line("done", f"${session.cost_usd:.4f}", f"steersman chat --resume {session.id}")
        if self._keys.is_leaving:
            return INTERRUPTED
        return COMPLETED if self._has_left else FAILED

    async def decide(self, name: str, given: JsonDict, context: PermissionContext) -> Decision:
        """Ask the user about a tool call."""
        return await self._asks.decide(name, given, context)

    async def answer(self, asked: QuestionAsk) -> Sequence[QuestionAnswer]:
        """Ask the user what the model wants to know."""
        return await self._asks.answer(asked)

    async def _talk(self) -> None:
        while not self._has_left:
            try:
                text = await self._input.line()
            except EOFError:
                self._has_left = not self._session.phase.is_over
                return
            if self._asks.wants_line:
                self._asks.type_line(text)
                # The answer is taken before the next prompt is shown.
                await asyncio.sleep(0)
            elif text.strip() in LEAVING:
                self._has_left = True
            elif text.strip():
                await self._send(text, self._keys.when)

    async def _send(self, text: str, when: When) -> None:
        is_busy = self._session.state in BUSY
        self._lines.line(when if is_busy else "you", text, NOTES[when] if is_busy else "")
        try:
            if text.startswith("/"):
                await self._session.command(text)
            else:
                await self._session.send(text, when=when)
        except SteersmanError as error:
            self._lines.line("failed", error.what, error.hint)

    async def _follow(self) -> None:
        """Show what happens; when the session ends, so does the input."""
        try:
            await self._lines.follow()
        finally:
            self._input.end()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.Task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _press(self, key: str) -> None:
        self._begin(self._asks.press(key))

    def _interrupt(self) -> None:
        self._begin(self._interrupted())

    async def _interrupted(self) -> None:
        if self._session.state in BUSY:
            with suppress(SteersmanError):
                await self._session.interrupt()
        self._lines.line("note", "ctrl-c again leaves")

    def _label(self) -> str:
        label = self._asks.label
        return f"{one_line(label)} {PROMPT} " if label else f"{PROMPT} "

    def _toolbar(self) -> str:
        session = self._session
        model = session.options.model or "default model"
        place = Path(session.options.cwd or ".").absolute().name
        shown = f"{model} · {place} · ${session.cost_usd:.4f} · {session.describe()}"
        room = max(LEAST, self._console.width - 1)
        lines = [*wrap(one_line(shown), room), *wrap(HELP, room)]
        return "\n".join(f" {line}" for line in lines)
