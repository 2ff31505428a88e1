"""`steersman run`: one prompt, with its answer on stdout."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._terminal import printable
from steersman.agent import Agent, Session, Turn
from steersman.cli.arguments import AgentWords, read_file
from steersman.cli.call_text import brief
from steersman.cli.output import complain, stop_writing
from steersman.cli.page import Page, console_for
from steersman.cli.run_json import as_object, error_object, line_of, message_line
from steersman.cli.statuses import COMPLETED, DENIED, FAILED, INTERRUPTED, status_of
from steersman.cli.terminal_asks import TERMINAL, TerminalAsks
from steersman.errors import SteersmanError, UsageError
from steersman.journal import Kind, TurnResult
from steersman.journal.calls import ToolCallRecord

if TYPE_CHECKING:
    from steersman.options.keywords import OptionKwargs

SETTLING = 5.0
"""Seconds that an interrupted turn may take to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWords:
    """The words of `steersman run` that are its own."""

    prompt: str
    schema: str | None
    is_json: bool
    is_stream: bool
    no_asks: bool


def run_prompt(
    *,
    prompt: str,
    schema: str | None,
    no_asks: bool,
    is_json: bool,
    is_stream: bool,
    **words: Any,
) -> int:
    """Send a prompt, and write the answer to stdout."""
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise UsageError("PROMPT", "nothing", "a text")
    own = RunWords(
        prompt=text, schema=schema, is_json=is_json, is_stream=is_stream, no_asks=no_asks
    )
    agent, given = AgentWords(**words).make()
    try:
        return asyncio.run(_run(agent, given, own))
    except asyncio.CancelledError:
        return INTERRUPTED
    except BrokenPipeError:
        stop_writing()
        complain("stdout was closed, so the turn was stopped")
        return FAILED
    except SteersmanError as error:
        if is_json:
            print(line_of({"status": status_of(error), "error": error_object(error)}))
        raise


async def _run(agent: Agent, words: OptionKwargs, own: RunWords) -> int:
    streamed = Streamed()
    page = Page(console_for(sys.stderr), streamed.end_line)
    asks = TerminalAsks(page, None if own.no_asks else TERMINAL)
    if agent.options.can_use_tool is None and agent.options.inbox is None:
        words = {**words, "can_use_tool": asks.decide, "on_question": asks.answer}
    if own.schema is not None:
        words["output_format"] = {"type": "json_schema", "schema": read_schema(own.schema)}
    try:
        async with agent.session(**words) as session:
            show_calls(session, page)
            turn = await session.send(own.prompt)
            async with _interruptible(turn):
                try:
                    await follow(turn, own, streamed)
                except BrokenPipeError:
                    # Nothing can be shown any more, so the turn is not waited for.
                    await session.cancel()
                    raise
            result = await turn
            status = status_after(result, denied=await denials(session))
            _conclude(result, session, page, status, own)
    finally:
        asks.close()
    return status


def read_schema(path: str) -> dict[str, Any]:
    """Return the schema in a file. Raises `UsageError` if it is not one."""
    allowed = "a file with a JSON schema: an object"
    try:
        found = _json.loads(read_file("--schema", path).encode())
    except ValueError as error:
        raise UsageError("--schema", path, allowed, hint=str(error)) from None
    if not _json.is_object(found):
        raise UsageError("--schema", path, allowed)
    return found


class Streamed:
    """The text of a turn on stdout, as it is written."""

    def __init__(self) -> None:
        self._in_line = False

    def write(self, chunk: str) -> None:
        """Write the next chunk."""
        print(printable(chunk), end="", flush=True)
        self._in_line = not chunk.endswith("\n")

    def end_line(self) -> None:
        """End the line, if the last chunk did not."""
        if self._in_line:
            self._in_line = False
            print(flush=True)


async def follow(turn: Turn, own: RunWords, streamed: Streamed) -> None:
    """Show a turn while it runs, its text or its messages; return when it has settled."""
    if own.is_stream:
        async for message in turn.messages():
            print(message_line(message), flush=True)
    elif sys.stdout.isatty() and not (own.is_json or own.schema):
        async for chunk in turn.text():
            streamed.write(chunk)
        streamed.end_line()
    await turn


def show_calls(session: Session, page: Page) -> None:
    """Write a line for each tool call that has ended."""

    def ended(call: ToolCallRecord) -> None:
        took = f"{call.duration or 0:.1f} s" + (", failed" if call.is_error else "")
        page.line("tool", brief(call.name, call.input), took)

    session.on("tool_result", ended)


@asynccontextmanager
async def _interruptible(turn: Turn) -> AsyncGenerator[None, None]:
    """Ctrl-C interrupts the turn; the second one ends the program."""
    loop, main = asyncio.get_running_loop(), asyncio.current_task()
    begun: list[asyncio.Task[object]] = []

    async def interrupt() -> None:
        with suppress(SteersmanError):
            await turn.interrupt(also_queued=True)

    def pressed() -> None:
        if begun and main is not None:
            main.cancel()
        else:
            begun.append(asyncio.Task(interrupt()))

    loop.add_signal_handler(signal.SIGINT, pressed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for task in begun:
            await asyncio.wait([task], timeout=SETTLING)


async def denials(session: Session) -> int:
    """Return how many tool calls were denied, by whatever decided."""
    last, found = session.last_seq, 0
    async for entry in session.journal():
        kind = getattr(entry, "kind", None)
        if kind is Kind.DECIDED:
            found += getattr(entry, "details", {}).get("verdict") == "deny"
        if getattr(entry, "seq", last) >= last:
            break
    return found


def status_after(result: TurnResult, *, denied: int) -> int:
    """Return the exit status after a turn."""
    if result.outcome == "completed":
        return DENIED if denied or result.permission_denials else COMPLETED
    status = FAILED if result.cause is None else status_of(result.cause)
    return INTERRUPTED if result.outcome == "interrupted" and status == FAILED else status


def _conclude(result: TurnResult, session: Session, page: Page, status: int, own: RunWords) -> None:
    """Write the answer to stdout, and how the turn ended to stderr."""
    if own.is_json:
        print(line_of(as_object(result, session.id, status)))
    elif own.schema and result.structured_output is not None:
        print(line_of(result.structured_output))
    elif not own.is_stream and not sys.stdout.isatty() and result.outcome == "completed":
        print(printable(result.answer))
    if result.cause is not None:
        page.line("failed", result.cause.what, result.cause.hint)
    page.line(
        "done",
        f"{result.outcome}, ${result.cost_usd:.4f}, {result.duration:.1f} s",
        f"{session.id}",
    )
