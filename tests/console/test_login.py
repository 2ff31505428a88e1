"""What the login of the page gives to others, in a real browser: other ports, other sites."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from playwright.async_api import Browser, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from steersman import Agent
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.console.staging import quiet, serving, to_begin

pytestmark = pytest.mark.asyncio(loop_scope="module")

ATTACK = """async url => {
    const done = {};
    const tried = async (name, work) => {
        try { done[name] = await work(); } catch (error) { done[name] = String(error.name); }
    };
    const post = (options) => fetch(url + "/sessions", {method: "POST", ...options});
    const json = {"Content-Type": "application/json"};
    const cookies = {credentials: "include"};
    const simple = {mode: "no-cors", ...cookies};
    await tried("read", async () => (await fetch(url + "/sessions")).status);
    await tried("credentials", async () => (await fetch(url + "/me", cookies)).status);
    await tried("json", async () => (await post({headers: json, body: "{}"})).status);
    await tried("token", async () => (await post({headers: {Authorization: "Bearer x"}})).status);
    // These two are sent without a question before.
    await tried("empty", async () => (await post(simple)).type);
    await tried("text", async () => (await post({...simple, body: "{}"})).type);
    await tried("socket", () => new Promise(settle => {
        const socket = new WebSocket(url.replace("http", "ws") + "/live", ["steersman"]);
        socket.onopen = () => settle("open");
        socket.onerror = () => settle("refused");
    }));
    done.kept = localStorage.length;
    return done;
}"""

USE = """async ([url, token]) => {
    try { return await use(url, token); } catch (error) { return error.message; }
    async function use(url, token) {
    const headers = {Authorization: `Bearer ${token}`, "Content-Type": "application/json"};
    const listed = await (await fetch(url + "/sessions", {headers})).json();
    const begun = await fetch(url + "/sessions", {method: "POST", headers, body: "{}"});
    const protocols = ["steersman", "steersman-token." + token];
    const hello = await new Promise((settle, fail) => {
        const socket = new WebSocket(url.replace("http", "ws") + "/live", protocols);
        socket.onmessage = event => settle(JSON.parse(event.data.split("\\n")[0]).type);
        socket.onerror = fail;
    });
    return [listed.agents, begun.status, hello];
    }
}"""


@asynccontextmanager
async def elsewhere() -> AsyncGenerator[tuple[str, list[dict[str, str]]]]:
    """Another server of this machine, with a page of its own, and the headers that it got."""
    received: list[dict[str, str]] = []

    async def page(request: Request) -> HTMLResponse:
        received.append(dict(request.headers))
        return HTMLResponse("<!doctype html><title>elsewhere</title>")

    app = Starlette(routes=[Route("/{path:path}", page)])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", received
        finally:
            await server.shutdown(sockets=[listener])


def agent() -> Agent:
    return Agent(transport=ScriptedCLI(Script(say("hello"))))


async def test_a_server_on_another_port_gets_nothing_of_the_login_and_its_page_does_nothing(
    browser: Browser,
) -> None:
    async with elsewhere() as (other, received), serving(browser, agent()) as served:
        page = await served.page()
        await to_begin(page, "go")
        await expect(page.get_by_role("log")).to_contain_text("hello")
        context = page.context
        foreign = await context.new_page()
        await foreign.goto(other)

        assert await context.cookies() == []
        assert received
        for headers in received:
            assert not {"cookie", "authorization"} & set(headers)
        assert await foreign.evaluate(ATTACK, served.url) == {
            "read": "TypeError",
            "credentials": "TypeError",
            "json": "TypeError",
            "token": "TypeError",
            "empty": "TypeError",
            "text": "TypeError",
            "socket": "refused",
            "kept": 0,
        }
        await expect(page.locator(".sidebar .row")).to_have_count(1)
        await page.reload()
        await expect(page.locator(".sidebar .row")).to_have_count(1)
        quiet(served)


async def test_a_login_is_there_in_a_new_tab_and_is_gone_after_logging_out(
    browser: Browser,
) -> None:
    async with serving(browser, agent()) as served:
        link = served.bridge.link(served.url)
        page = await (await served.context()).new_page()
        await page.goto(link)
        await expect(page.get_by_label("Search sessions")).to_be_attached()
        tab = await page.context.new_page()
        await tab.goto(served.url)
        await expect(tab.get_by_label("Search sessions")).to_be_attached()
        again = await page.context.new_page()
        await again.goto(link)
        await expect(again.get_by_label("Search sessions")).to_be_attached()

        await page.evaluate("""() => fetch("logout", {method: "POST", headers: {
            Authorization: "Bearer " + localStorage.getItem("steersman.login./"),
        }})""")

        await expect(tab.get_by_text("does not know this browser any more")).to_be_visible()
        await tab.reload()
        await expect(tab.get_by_text("log in first")).to_be_visible()
        assert await tab.evaluate("localStorage.getItem('steersman.login./')") is None


@pytest.mark.parametrize("known", ["the page", "another"])
async def test_a_page_of_origins_reads_and_writes_and_no_other_does(
    browser: Browser, known: str
) -> None:
    async with elsewhere() as (other, _):
        origins = [other if known == "the page" else "https://app.example"]
        async with serving(browser, agent(), origins=origins) as served:
            page = await (await served.context()).new_page()
            await page.goto(other)
            found = await page.evaluate(USE, [served.url, served.bridge.token])

    assert found == ([["default"], 201, "hello"] if known == "the page" else "Failed to fetch")
