"""Where a chat reads lines and keys: a prompt that stays at the bottom, or plain lines."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from steersman._json import JsonDict
from steersman.agent import When
from steersman.cli.terminal_asks import edited

ANSWERS = ("y", "a", "n", "e", "?")


class Keys:
    """What the keys do, and what was pressed last."""

    def __init__(
        self,
        press: Callable[[str], None],
        interrupt: Callable[[], None],
        wants_key: Callable[[], bool],
    ) -> None:
        self.wants_key = wants_key
        """Whether something is asked that a key answers."""
        self.when: When = "next"
        """When the line that was typed is to be read."""
        self.is_leaving = False
        """Whether ctrl-c was pressed twice."""
        self._press = press
        self._interrupt = interrupt
        self._is_interrupted = False

    def sends(self, when: When) -> None:
        """Record that a line was sent."""
        self.when = when
        self._is_interrupted = False

    def answers(self, key: str) -> None:
        """Answer what is asked."""
        self._is_interrupted = False
        self._press(key)

    def interrupts(self, leave: Callable[[], None]) -> None:
        """Interrupt the turn; the second time in a row, leave."""
        if self._is_interrupted:
            self.is_leaving = True
            leave()
            return
        self._is_interrupted = True
        self._interrupt()


def key_bindings(keys: Keys, is_empty: Callable[[], bool]) -> KeyBindings:
    """Return the bindings: enter, ctrl-o and ctrl-l send, ctrl-c interrupts, letters answer.

    Letters answer only while nothing is typed: `is_empty`.
    """
    bindings = KeyBindings()

    def sending(when: When) -> Callable[[KeyPressEvent], None]:
        def send(event: KeyPressEvent) -> None:
            keys.sends(when)
            event.current_buffer.validate_and_handle()

        return send

    chosen: tuple[tuple[str, When], ...] = (("enter", "next"), ("c-o", "now"), ("c-l", "later"))
    for name, when in chosen:
        bindings.add(name)(sending(when))

    def interrupt(event: KeyPressEvent) -> None:
        event.current_buffer.reset()
        keys.interrupts(lambda: event.app.exit(exception=EOFError()))

    def answer(event: KeyPressEvent) -> None:
        keys.answers(event.data)

    bindings.add("c-c")(interrupt)
    for key in ANSWERS:
        wanted = Condition(lambda: keys.wants_key() and is_empty())
        bindings.add(key, filter=wanted)(answer)
    return bindings


REFRESH = 0.5
"""Seconds between two looks at what the session does."""
LONGEST_LINE = 65536


class Input(Protocol):
    """Reads lines; keys are passed on as they are pressed."""

    async def line(self) -> str:
        """Return the next line. Raises `EOFError` when the user leaves."""
        ...

    def end(self) -> None:
        """Have `line` raise `EOFError`."""
        ...

    async def edit(self, given: JsonDict) -> JsonDict:
        """Open the input of a call in the user's editor. Raises `EditFailed`."""
        ...


class BottomPrompt:
    """A prompt at the bottom of the terminal, with a toolbar, by `prompt_toolkit`."""

    def __init__(self, keys: Keys, label: Callable[[], str], toolbar: Callable[[], str]) -> None:
        self._label = label
        self._prompt: PromptSession[str] = PromptSession(
            key_bindings=key_bindings(keys, lambda: not self._prompt.default_buffer.text),
            bottom_toolbar=toolbar,
            refresh_interval=REFRESH,
            erase_when_done=True,
            style=Style.from_dict({"bottom-toolbar": "noreverse"}),
        )

    async def line(self) -> str:
        """Return the next line, as `Input` describes."""
        try:
            return await self._prompt.prompt_async(self._label)
        except KeyboardInterrupt:
            raise EOFError from None

    def end(self) -> None:
        """End the line that is being typed."""
        if self._prompt.app.is_running:
            self._prompt.app.exit(exception=EOFError())

    async def edit(self, given: JsonDict) -> JsonDict:
        """Open the editor."""
        return await run_in_terminal(lambda: edited(given), in_executor=True)


class PlainInput:
    """Lines of a terminal that can do nothing else; a key is a line of one letter."""

    def __init__(self, keys: Keys, label: Callable[[], str]) -> None:
        self._keys = keys
        self._label = label
        self._read: asyncio.Future[str] | None = None

    async def line(self) -> str:
        """Return the next line, as `Input` describes."""
        while True:
            text = await self._typed()
            if not (self._keys.wants_key() and text.strip() in ANSWERS):
                self._keys.sends("next")
                return text
            self._keys.answers(text.strip())
            # What the next line is for is known after the key was handled.
            await asyncio.sleep(0)

    async def _typed(self) -> str:
        loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
        sys.stdout.write(self._label())
        sys.stdout.flush()
        read: asyncio.Future[str] = loop.create_future()
        self._read = read

        def ready() -> None:
            data = os.read(number, LONGEST_LINE)
            if data and not read.done():
                read.set_result(data.decode("utf-8", "replace").rstrip("\r\n"))
            elif not data:
                self.end()

        loop.add_reader(number, ready)
        loop.add_signal_handler(signal.SIGINT, lambda: self._keys.interrupts(self.end))
        try:
            return await read
        finally:
            loop.remove_reader(number)
            loop.remove_signal_handler(signal.SIGINT)

    def end(self) -> None:
        """End the line that is being typed."""
        if self._read is not None and not self._read.done():
            self._read.set_exception(EOFError())

    async def edit(self, given: JsonDict) -> JsonDict:
        """Open the editor."""
        return await asyncio.to_thread(edited, given)
