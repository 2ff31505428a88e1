"""`steersman console`: the bridge of `steersman.web` alone, on loopback, with its page."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.cli.arguments import load_agent
from steersman.cli.statuses import COMPLETED, MISUSE
from steersman.errors import CliNotFound, SteersmanError, UsageError

if TYPE_CHECKING:
    from steersman.agent import Agent
    from steersman.inbox import Inbox, StoredInbox
    from steersman.stores import SqliteStore
    from steersman.web import Bridge

LOOPBACK = "127.0.0.1"
MOST_PORT = 65535
ENDING = 5
"""Seconds that connections have to close."""
ASKS = "asks.db"


def serve(*, agent: str | None, is_demo: bool, port: int, journals: str | None) -> int:
    """Serve the page until ctrl-c."""
    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(_serve(agent, is_demo=is_demo, port=port, journals=journals))
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "websockets"):
            raise
        print("steersman: the console needs: pip install 'steersman[web]'", file=sys.stderr)
        return MISUSE
    except SteersmanError as error:
        print(f"steersman: {error}", file=sys.stderr)
        return MISUSE
    return COMPLETED


async def _serve(named: str | None, *, is_demo: bool, port: int, journals: str | None) -> None:
    from steersman.web import Bridge  # noqa: PLC0415 - needs the extra `web`

    async with AsyncExitStack() as stack:
        prompt = ""
        if is_demo:
            agent, prompt = await stack.enter_async_context(_demo())
        else:
            agent = load_agent(named)
        listener = stack.enter_context(_listener(port))
        inbox = await stack.enter_async_context(_inbox(journals))
        bridge = await stack.enter_async_context(
            Bridge({"default": agent}, inbox=inbox, journals=journals)
        )
        if prompt:
            await bridge.begin(prompt, by="demo")
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        print(f"steersman console: {bridge.link(url)}")
        print("The link works once, in one browser. Press Ctrl-C to end.", flush=True)
        await _run_server(bridge, listener)


async def _run_server(bridge: Bridge, listener: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415 - as above

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # First, so that viewers are notified and no stream holds the server.
            await bridge.aclose()
            await super().shutdown(sockets)

    # No access log: it would be noise, and other programs can read a terminal's history.
    # No compression: it costs more than all else, and loopback is fast.
    config = uvicorn.Config(
        bridge,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=ENDING,
    )
    # uvicorn reports every WebSocket that is refused with an answer as an error of the program.
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
    await Server(config).serve(sockets=[listener])


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    return "without completing handshake" not in record.getMessage()


def _listener(port: int) -> socket.socket:
    if not 0 <= port <= MOST_PORT:
        raise UsageError("--port", port, f"0 to {MOST_PORT}")
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise UsageError("--port", port, f"a port that is free: {error.strerror}") from None


@asynccontextmanager
async def _inbox(journals: str | None) -> AsyncGenerator[Inbox | StoredInbox, None]:
    """Open the inbox: in the directory of the journals, so that asks outlive the server."""
    if journals is None:
        from steersman.inbox import Inbox  # noqa: PLC0415 - one of both is needed

        yield Inbox()
        return
    store = _store_in(Path(journals))
    try:
        yield store.inbox()
    finally:
        await store.aclose()


def _store_in(folder: Path) -> SqliteStore:
    from steersman.stores import SqliteStore  # noqa: PLC0415 - only with --journals

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        allowed = f"a directory that can be written: {error.strerror}"
        raise UsageError("--journals", str(folder), allowed) from None
    return SqliteStore(folder / ASKS)


@asynccontextmanager
async def _demo() -> AsyncGenerator[tuple[Agent, str], None]:
    """Prepare the demo: its agent, and the prompt that begins it."""
    from steersman.agent import Agent  # noqa: PLC0415 - as above
    from steersman.cli import demo_stage  # noqa: PLC0415 - loads the test kit
    from steersman.cli.console_demo import PROMPT, console_script, prepare  # noqa: PLC0415
    from steersman.testing.sandbox import find_any_cli  # noqa: PLC0415 - as above

    try:
        place = demo_stage.stock(console_script, find_any_cli())
    except CliNotFound:
        place = demo_stage.embedded(console_script, "no stock CLI was found")
    with place as stage:
        prepare(stage.project)
        yield Agent(cwd=stage.project, **stage.fields), PROMPT
