"""The console in a real browser, on the stock CLI: everything that a reader can do."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Page, WebSocketRoute, expect
from starlette.requests import HTTPConnection

from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, say, stall
from steersman.web import Viewer
from tests.console.staging import opened, quiet, serving, to_begin
from tests.live.staging import MakeScripted

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
"""A PNG of one point."""

QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
}


def repeat_results(request: ModelRequest) -> Step:
    """Say what the last tool gave back."""
    return say("Read: " + " ".join(map(str, request.tool_results.values())))


async def test_a_conversation_is_begun_streamed_approved_denied_edited_and_answered(
    browser: Browser, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    made, edited = sandbox.project / "made.txt", sandbox.project / "edited.txt"
    agent, _ = scripted(
        say("I **begin** <b>here</b>. ", chunks=4) + call("Bash", command=f"echo made > {made}"),
        say("Then this. ") + call("Bash", command=f"rm {made}"),
        call("Write", file_path=str(edited), content="wrong\n"),
        call("AskUserQuestion", questions=[QUESTION]),
        repeat_results,
    )
    async with serving(browser, agent) as served:
        page = await served.page()
        dock = page.get_by_label("Open asks")
        log = page.get_by_role("log")

        await to_begin(page, "go <script>alert(1)</script>")
        await expect(log.get_by_label("Prompt", exact=True)).to_contain_text("<script>alert")
        await expect(log.locator(".text strong")).to_have_text("begin")
        await expect(log.locator(".text").first).to_contain_text("<b>here</b>")
        await expect(page).to_have_title("(1) steersman")

        await dock.get_by_role("button", name="Allow", exact=True).click()
        await expect(dock).to_contain_text("rm ")
        assert made.read_text() == "made\n"

        await dock.get_by_role("button", name="Deny", exact=True).click()
        await page.keyboard.type("keep that file")
        await page.keyboard.press("Enter")
        await expect(dock).to_contain_text("wrong")
        assert made.is_file()
        await expect(log).to_contain_text("Denied by you: keep that file")

        # A reload loses nothing: neither what was said, nor the open ask, nor what is typed.
        await page.get_by_label("Prompt", exact=True).last.fill("not sent yet")
        await page.reload()
        await expect(log).to_contain_text("Denied by you: keep that file")
        await expect(page.get_by_role("textbox", name="Prompt")).to_have_value("not sent yet")

        await dock.get_by_role("button", name="Edit", exact=True).click()
        await dock.get_by_label("content").fill("right\n")
        await dock.get_by_role("button", name="Allow as edited").click()
        await expect(dock).to_contain_text("Which colour?")
        assert edited.read_text() == "right\n"

        await dock.get_by_label("blue").check()
        await dock.get_by_role("button", name="Answer").click()
        await expect(log.locator(".text").last).to_contain_text("blue")
        await expect(log.locator(".end")).to_contain_text("done")
        await expect(page).to_have_title("steersman")
        quiet(served)


async def test_a_prompt_that_waits_behind_an_ask_says_so(
    browser: Browser, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    made = sandbox.project / "made.txt"
    agent, _ = scripted(
        call("Write", file_path=str(made), content="x"), say("I have made it."), say("And that.")
    )
    async with serving(browser, agent) as served:
        page = await served.page()
        queue = page.get_by_label("Queued prompts")

        await to_begin(page, "make it")
        allow = page.get_by_role("button", name="Allow", exact=True)
        await expect(allow).to_be_visible()
        await page.get_by_role("textbox", name="Prompt").fill("and that")
        await page.keyboard.press("Enter")
        await expect(queue).to_contain_text("waits behind an ask")

        await allow.click()
        await expect(page.get_by_role("log")).to_contain_text("And that.")
        await expect(queue).to_have_count(0)


async def test_prompts_are_queued_withdrawn_steered_and_stopped(
    browser: Browser, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    go = sandbox.project / "go"
    agent, model = scripted(
        call("Bash", command=f"until test -e {go}; do sleep 0.02; done"),
        say("I have read both."),
        say("This takes ") + stall(),
    )
    async with serving(browser, agent) as served:
        page = await served.page()
        log, queue = page.get_by_role("log"), page.get_by_label("Queued prompts")
        box = page.get_by_role("textbox", name="Prompt")

        await to_begin(page, "wait for it")
        await expect(log).to_contain_text("running")

        await box.fill("never mind")
        await page.keyboard.press("Enter")
        await expect(queue).to_contain_text("never mind")
        await queue.get_by_role("button", name="Withdraw").click()
        await expect(queue).to_have_count(0)

        await box.fill("look here too")
        await page.get_by_text("next", exact=True).click()
        await page.keyboard.press("Enter")
        await box.focus()
        await page.keyboard.press("Enter")
        await expect(log.get_by_label("Prompt", exact=True)).to_have_count(2)
        go.touch()
        await expect(log).to_contain_text("I have read both.")
        assert "look here too" in str(model.requests[-1].body)

        await box.fill("and now something long")
        picture: FilePayload = {
            "name": "dot.png",
            "mimeType": "image/png",
            "buffer": b64decode(DOT),
        }
        await page.get_by_label("Attach files").set_input_files([picture])
        await page.get_by_role("button", name="Send").click()
        await expect(log).to_contain_text("This takes")
        await expect(log.get_by_alt_text("An image")).to_be_visible()
        assert DOT in str(model.requests[-1].body)
        await page.get_by_role("button", name="Stop").click()
        await expect(log.locator(".end").last).to_contain_text("interrupted")
        await expect(log.locator(".activity")).to_have_count(0)
        assert "never mind" not in str([request.body for request in model.requests])
        quiet(served)


async def test_the_second_of_two_tabs_reads_who_was_first_and_ten_tabs_show_the_same(
    browser: Browser, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    made = sandbox.project / "made.txt"
    agent, _ = scripted(call("Bash", command=f"echo once >> {made}"), say("It is done, once."))
    held = Held()
    async with serving(browser, agent, authenticate=by_cookie) as served:
        contexts = {name: await served.context() for name in ("ann", "bob")}
        pages: dict[str, Page] = {}
        for name, context in contexts.items():
            await context.add_cookies([{"name": "who", "value": name, "url": served.url}])
            pages[name] = await context.new_page()
            served.watch(pages[name])
        await pages["bob"].route_web_socket("**/live", held.connect)
        await pages["ann"].goto(served.url)
        await to_begin(pages["ann"], "make it")
        await expect(allow_in(pages["ann"])).to_be_visible()
        place = f"{served.url}/{opened(pages['ann'].url.rpartition('/')[2])}"
        await pages["bob"].goto(place)
        await expect(allow_in(pages["bob"])).to_be_visible()

        held.is_on = True
        await allow_in(pages["ann"]).click()
        await expect(pages["ann"].get_by_role("log")).to_contain_text("It is done, once.")
        await allow_in(pages["bob"]).click()
        held.release()

        await expect(pages["bob"].locator(".report")).to_contain_text("ann was first")
        await expect(allow_in(pages["bob"])).to_have_count(0)
        assert made.read_text() == "once\n"

        tabs = [await contexts["ann"].new_page() for _ in range(8)]
        await asyncio.gather(*(tab.goto(place) for tab in tabs))
        for tab in [*tabs, *pages.values()]:
            await expect(tab.get_by_role("log")).to_contain_text("It is done, once.")
        quiet(served)


async def test_on_a_phone_and_with_keys_alone_everything_can_be_reached(
    browser: Browser, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    made = sandbox.project / "made.txt"
    agent, _ = scripted(
        call("Bash", command=f"echo a >> {made}"),
        call("Bash", command=f"echo b >> {made}"),
        call("Bash", command=f"echo c >> {made}"),
        repeat_results,
    )
    async with serving(browser, agent) as served:
        page = await served.page(viewport={"width": 360, "height": 740}, has_touch=True)
        await to_begin(page, "go on")
        # Enter begins a line there; the button sends.
        await page.get_by_role("button", name="Send").click()
        ask, box = page.locator(".dock .ask"), page.get_by_role("textbox", name="Prompt")
        await expect(ask).to_be_in_viewport(ratio=1)
        await expect(box).to_be_in_viewport(ratio=1)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360
        (above, below) = (await ask.bounding_box(), await box.bounding_box())
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] <= below["y"]
        await ask.get_by_role("button", name="Allow", exact=True).click()
        await expect(ask).to_contain_text("echo b")

        other = await served.page(reduced_motion="reduce")
        for _ in range(30):
            await other.keyboard.press("Tab")
            if await other.evaluate("document.activeElement.textContent.trim() == 'Inbox1'"):
                break
        await other.keyboard.press("Enter")
        card = other.locator(".ask.selected")
        await expect(card).to_contain_text("echo b")
        await other.keyboard.press("j")
        await other.keyboard.press("k")
        await other.keyboard.press("e")
        await expect(card.get_by_label("command")).to_be_focused()
        await other.keyboard.press("ControlOrMeta+a")
        await other.keyboard.type(f"echo edited >> {made}")
        await other.keyboard.press("Control+Enter")
        await expect(card).to_contain_text("echo c")
        await other.keyboard.press("d")
        await expect(card.get_by_label("Why not?")).to_be_focused()
        await other.keyboard.type("enough")
        await other.keyboard.press("Enter")
        await expect(other.get_by_text("Nothing waits for you.")).to_be_visible()

        await expect(page.get_by_role("log")).to_contain_text("Read: enough")
        assert made.read_text() == "a\nedited\n"
        quiet(served)


class Held:
    """A WebSocket whose frames from the server can be held back."""

    def __init__(self) -> None:
        self.is_on = False
        self._route: WebSocketRoute | None = None
        self._waiting: list[Any] = []

    def connect(self, route: WebSocketRoute) -> None:
        """Pass frames on, or hold them."""
        self._route = route
        route.connect_to_server().on_message(self._on_message)

    def _on_message(self, message: Any) -> None:
        assert self._route is not None
        if self.is_on:
            self._waiting.append(message)
        else:
            self._route.send(message)

    def release(self) -> None:
        """Send what was held, once the answer to the second click is among it."""
        assert self._route is not None
        self.is_on = False
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._route.send(message)


def allow_in(page: Page) -> Any:
    return page.get_by_label("Open asks").get_by_role("button", name="Allow", exact=True)


async def by_cookie(connection: HTTPConnection) -> Viewer | None:
    name = connection.cookies.get("who")
    return None if name is None else Viewer(name)
