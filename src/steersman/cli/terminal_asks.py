"""Asks about tool calls on the terminal of `steersman run`, line by line."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict
from steersman._terminal import printable
from steersman.cli.call_text import brief, view
from steersman.cli.page import Page
from steersman.permissions import (
    Allow,
    Decision,
    Deny,
    PermissionContext,
    Question,
    QuestionAnswer,
    QuestionAsk,
)

TERMINAL = "/dev/tty"
KEYS = "[y] yes  [a] always here  [n] no, because...  [e] edit  [?] why asked"
NO_TERMINAL = "There is no terminal to ask on, so this was denied."
HIDDEN = "{} lines are hidden: press ? to see them, then you can allow it"
DENIED = "The user denied this."
LONGEST_LINE = 65536


class TerminalAsks:
    """The approver of `steersman run`: asks on the terminal; without one, denies."""

    def __init__(self, page: Page, terminal: str | None = TERMINAL) -> None:
        self._page = page
        self._lock = asyncio.Lock()
        """One ask at a time: the CLI may send several."""
        self._terminal = -1
        if terminal is not None:
            with suppress(OSError):
                self._terminal = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the terminal."""
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    async def decide(self, name: str, given: JsonDict, context: PermissionContext) -> Decision:
        """Return what the user decides about a call."""
        if self._terminal < 0:
            self._page.line("denied", brief(name, given), "no terminal to ask on; see --policy")
            return Deny(NO_TERMINAL)
        async with self._lock:
            decision = await self._asked(name, given, context)
        if isinstance(decision, Deny):
            self._page.line("denied", brief(name, given))
        return decision

    async def _asked(self, name: str, given: JsonDict, context: PermissionContext) -> Decision:
        seen = view(name, given)
        self._page.ask(seen, seen.shown())
        hidden = seen.hidden
        while True:
            key, _, rest = (await self._line(KEYS)).strip().partition(" ")
            match key.lower():
                case "y" | "yes" | "a" | "always" | "e" | "edit" if hidden:
                    self._page.line("ask", HIDDEN.format(hidden))
                case "y" | "yes":
                    return Allow()
                case "a" | "always":
                    return context.always()
                case "n" | "no":
                    reason = rest or await self._line("no, because (enter: no reason)")
                    return Deny(reason.strip() or DENIED)
                case "e" | "edit":
                    try:
                        return Allow(await asyncio.to_thread(edited, given))
                    except EditFailed as error:
                        self._page.line("failed", str(error))
                case "?":
                    self._page.line("ask", reason_of(context))
                    self._page.ask(seen, seen.lines)
                    hidden = 0
                case _:
                    pass

    async def answer(self, asked: QuestionAsk) -> Sequence[QuestionAnswer]:
        """Return the user's answers to `AskUserQuestion`."""
        if self._terminal < 0:
            return asked.skip()
        async with self._lock:
            return [await self._chosen(each) for each in asked.questions]

    async def _chosen(self, asked: Question) -> QuestionAnswer:
        self._page.line("ask", asked.question)
        for number, choice in enumerate(asked.options, start=1):
            self._page.line(str(number), choice.label, choice.description)
        typed = chosen(asked, await self._line("a number, or an answer of your own"))
        return asked.answer(typed) if typed else asked.skip()

    async def _line(self, prompt: str) -> str:
        """Show `prompt` and return the line that the user types; an ended input denies."""
        os.write(self._terminal, f"         {printable(prompt)} > ".encode())
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            data = b""
            with suppress(OSError):
                data = os.read(self._terminal, LONGEST_LINE)
            if not typed.done():
                typed.set_result(data.decode("utf-8", "replace") if data else "n")

        loop.add_reader(self._terminal, read)
        try:
            return await typed
        finally:
            loop.remove_reader(self._terminal)


def chosen(asked: Question, typed: str) -> str:
    """Return the answer that was typed; for the number of a choice, that choice."""
    typed = typed.strip()
    if typed.isdecimal() and 0 < int(typed) <= len(asked.options):
        return asked.options[int(typed) - 1].label
    return typed


def reason_of(context: PermissionContext) -> str:
    """Return why the CLI asks, as far as it reports it."""
    parts = [context.decision_reason or "the CLI asks about calls that no rule allows"]
    if context.blocked_path:
        parts.append(f"path: {context.blocked_path}")
    if context.agent_id:
        parts.append(f"subagent: {context.agent_id}")
    if offered := context.always().updated_permissions:
        rules = [str(rule) for each in offered for rule in getattr(each, "rules", ())]
        parts.append(f"[a] allows: {', '.join(rules) or 'what the CLI suggests'}")
    return "; ".join(parts)


OTHERWISE = "vi"


class EditFailed(Exception):
    """The editor did not start, or what it left is not an input."""


def edited(given: JsonDict) -> JsonDict:
    """Open `given` as JSON in $VISUAL or $EDITOR and return what is left. Raises `EditFailed`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or OTHERWISE
    with tempfile.TemporaryDirectory(prefix="steersman-") as folder:
        path = Path(folder, "input.json")
        path.write_text(json.dumps(given, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        try:
            # The user's own editor, on the user's own terminal.
            run = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603
        except (OSError, ValueError) as error:
            raise EditFailed(f"{editor} does not start: {error}") from None
        if run.returncode:
            raise EditFailed(f"{editor} failed with status {run.returncode}")
        try:
            found = _json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise EditFailed(f"what is left is not JSON: {error}") from None
    if not _json.is_object(found):
        raise EditFailed("what is left is not a JSON object")
    return found
