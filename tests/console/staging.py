"""A bridge on loopback, and pages of the console in it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from playwright.async_api import Browser, BrowserContext, Page, expect

from steersman.web import Bridge

LIMIT = 60.0
"""Seconds for a whole test; each needs a small part of it."""

expect.set_options(timeout=15_000)


class Served:
    """A bridge behind a real server, and what pages of it complained about."""

    def __init__(self, browser: Browser, bridge: Bridge, port: int) -> None:
        self.browser = browser
        self.bridge = bridge
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.complaints: list[str] = []
        self._contexts: list[BrowserContext] = []

    async def context(self, **options: Any) -> BrowserContext:
        """Begin a browser without history; closed before the server, so that no socket is left."""
        context = await self.browser.new_context(**options)
        self._contexts.append(context)
        return context

    async def aclose(self) -> None:
        """Close all browsers of this server."""
        for context in self._contexts:
            await context.close()

    async def page(self, path: str = "", **options: Any) -> Page:
        """Open the console in a browser of its own, by a link."""
        page = await (await self.context(**options)).new_page()
        self.watch(page)
        await self.log_in(page)
        if path:
            await page.goto(f"{self.url}/{path}")
        return page

    async def log_in(self, page: Page) -> None:
        """Open the console by a link; the page keeps its token once it is logged in."""
        await page.goto(self.bridge.link(self.url))
        await expect(page.get_by_label("Search sessions")).to_be_attached()

    def watch(self, page: Page) -> None:
        """Note what goes wrong in the page, and every request to another place."""
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: (
                self.complaints.append(said.text)
                if said.type == "error" and "ERR_CONNECTION_REFUSED" not in said.text
                else None
            ),
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((self.url, "data:"))
                else self.complaints.append(f"a request to {request.url}")
            ),
        )


@asynccontextmanager
async def serving(
    browser: Browser, agent: Any, *, port: int = 0, limit: float = LIMIT, **options: Any
) -> AsyncGenerator[Served, None]:
    """Run a bridge of `agent` behind uvicorn on loopback."""
    bridge = Bridge(agent, **options)
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(bridge, log_config=None, ws_per_message_deflate=False)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        served = Served(browser, bridge, listener.getsockname()[1])
        try:
            async with asyncio.timeout(limit):
                yield served
        finally:
            await served.aclose()
            await bridge.aclose()
            await server.shutdown(sockets=[listener])


async def to_begin(page: Page, prompt: str) -> None:
    """Begin a session by hand."""
    await page.get_by_role("link", name="New session").click()
    await page.get_by_label("First prompt").fill(prompt)
    await page.keyboard.press("Enter")


def quiet(served: Served) -> None:
    """Assert that no page complained."""
    assert served.complaints == []


def journal_of(folder: Path, session: str, frames: Sequence[dict[str, Any]]) -> None:
    """Write a journal as a session leaves it: each frame is a record without number and time."""
    lines = [{"journal": 1, "track": 0, "steersman": "", "cli": "", "options": []}]
    lines += [
        {"seq": number, "at": 1_790_000_000.0 + number, **frame}
        for number, frame in enumerate(frames, 1)
    ]
    path = folder / f"{session}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    path.chmod(0o600)


def opened(session: str, tab: str = "") -> str:
    """The place of a session in the console."""
    return f"#/session/{session}{tab}"
