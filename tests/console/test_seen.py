"""What the page shows is what runs: nothing hidden is allowed, and nothing unseen is drawn raw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, WebSocketRoute, expect

from steersman import Agent
from steersman._terminal import exact, printable
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI
from tests.console.browser import REDUCE
from tests.console.staging import Served, journal_of, opened, quiet, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = "5b0c7d0e-0000-4000-8000-000000000004"
RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "ls:*"}],
    "behavior": "allow",
    "destination": "session",
}
UNSEEN = "\u202e\u200b\r\x1b\u2066\ufeff\u3164\U000e0041"
ALLOWED = {"behavior": "allow"}


def asking(number: int, name: str, given: dict[str, Any], **payload: Any) -> dict[str, Any]:
    """An ask of the CLI about a call."""
    question = {"tool_name": name, "input": given, "tool_use_id": f"t{number}", **payload}
    question |= {"subtype": "can_use_tool", "permission_suggestions": [RULE]}
    made = {"id": f"r{number}", "session": SESSION, "kind": "permission", "created": number}
    return {**made, "payload": question}


class Bridged:
    """The other end of the page's WebSocket: it has these asks, and keeps what is said."""

    def __init__(self, asks: Sequence[dict[str, Any]]) -> None:
        self.asks = asks
        self.said: list[dict[str, Any]] = []
        self.route: WebSocketRoute | None = None

    def connect(self, route: WebSocketRoute) -> None:
        """Greet the page."""
        self.route = route
        route.on_message(self._on_message)
        route.send(json.dumps({"type": "hello", "agents": ["default"], "asks": self.asks}))

    def _on_message(self, message: str | bytes) -> None:
        frame = json.loads(message)
        if frame["type"] == "do" and self.route is not None:
            self.said.append(frame["answer"])
            self.route.send(json.dumps({"type": "done", "id": frame["id"], "answer": {}}))


async def inbox(served: Served, bridged: Bridged, height: int = 900) -> Page:
    """Open the inbox with these asks."""
    page = await served.page(viewport={"width": 1200, "height": height})
    await page.route_web_socket("**/live", bridged.connect)
    await page.goto(f"{served.url}/?again#/asks")
    await expect(page.locator(".ask")).to_have_count(len(bridged.asks))
    return page


LATE = """() => {
    const [draw, wait] = [window.requestAnimationFrame, window.setTimeout];
    window.requestAnimationFrame = (then) => wait(() => draw(then), 3000);
    window.setTimeout = (then, ms, ...more) => wait(then, ms > 20 && ms < 200 ? 3000 : ms, ...more);
}"""


def idle_agent() -> Agent:
    return Agent(transport=ScriptedCLI(Script()))


HIDDEN: list[tuple[str, dict[str, Any]]] = [
    ("Bash", {"command": "ls -la\n" + "\n" * 60 + "touch made #END"}),
    ("Bash", {"command": "ls " + "-a " * 3000 + "; touch made #END"}),
    ("Bash", {"command": "ls" + " " * 9000 + "; touch made" + "x" * 3000 + " #END"}),
    ("Write", {"file_path": "/x/a", "content": "one\n" * 500 + "#END\n"}),
    ("Edit", {"file_path": "/x/a", "old_string": "a", "new_string": "b\n" * 450 + "#END"}),
    ("Agent", {"prompt": "do\n" * 80 + "[//]: # (#END)", "subagent_type": "general-purpose"}),
    ("ExitPlanMode", {"plan": "- step\n" * 80 + "#END"}),
    ("mcp__shop__order", {"note": "n" * 20_000 + "#END"}),
    ("mcp__shop__order", {"deep": {"list": [*range(300), "#END"]}}),
]


@pytest.mark.parametrize("width", [1200, 360])
async def test_what_is_hidden_is_counted_and_opened_before_it_can_be_allowed(
    browser: Browser, width: int
) -> None:
    bridged = Bridged([asking(n, *each) for n, each in enumerate(HIDDEN)])
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, bridged)
        await page.set_viewport_size({"width": width, "height": 800})
        for number in range(len(HIDDEN)):
            card = page.locator(f"[data-ask=r{number}]")
            await expect(card).to_have_class("ask selected")
            await expect(card.get_by_role("button", name="hidden: show all")).to_be_visible()
            for name in ("Allow", "Edit", "Always allow"):
                exactly = name == "Allow"
                await expect(card.get_by_role("button", name=name, exact=exactly)).to_be_disabled()
            await page.keyboard.press("a")
            await page.keyboard.press("e")
            await expect(page.locator(".report")).to_contain_text("o shows all")
            assert not await is_drawn(card)

            await page.keyboard.press("o")
            await expect(card.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
            assert await is_drawn(card)
            assert len(bridged.said) == number
            await page.keyboard.press("a")
            await expect(card).to_have_count(0)
        quiet(served)
    assert bridged.said == [ALLOWED] * len(HIDDEN)


async def is_drawn(card: Locator) -> bool:
    """Whether the last characters of the input are inside of every box around them."""
    drawn: bool = await card.evaluate("""card => {
        const walker = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
        let last = null;
        while (walker.nextNode()) {
            if (walker.currentNode.data.includes("#END")) last = walker.currentNode;
        }
        const range = document.createRange();
        range.setStart(last, last.data.indexOf("#END"));
        range.setEnd(last, last.data.indexOf("#END") + 4);
        const place = range.getBoundingClientRect();
        for (let box = last.parentElement; box !== card; box = box.parentElement) {
            if (getComputedStyle(box).overflow === "visible") continue;
            const around = box.getBoundingClientRect();
            if (place.bottom > around.bottom + 1 || place.right > around.right + 1) return false;
        }
        return place.height > 0 && place.right <= innerWidth;
    }""")
    return drawn


async def test_what_is_short_is_shown_whole_and_allowed_at_once(browser: Browser) -> None:
    fields = {"command": "ls", "timeout": 5, "dangerouslyDisableSandbox": True}
    edit = {"file_path": "/x/a", "old_string": "a", "new_string": "b", "replace_all": True}
    cut = {"file_path": "/x/a", "old_string": "a\n", "new_string": "a", "replace_all": False}
    bridged = Bridged(
        [
            asking(n, name, given)
            for n, (name, given) in enumerate([("Bash", fields), ("Edit", edit), ("Edit", cut)])
        ]
    )
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, bridged)
        cards = page.locator(".ask")

        await expect(cards.nth(0)).to_contain_text("dangerouslyDisableSandbox")
        await expect(cards.nth(1)).to_contain_text("replace_all")
        await expect(cards.nth(1)).to_contain_text("/x/a")
        await expect(cards.nth(2)).to_contain_text("without the newline at the end")
        for number in range(3):
            await expect(
                cards.nth(0).get_by_role("button", name="Allow", exact=True)
            ).to_be_enabled()
            await page.keyboard.press("a")
            await expect(cards).to_have_count(2 - number)
        quiet(served)
    assert bridged.said == [ALLOWED] * 3


async def test_an_ask_that_is_answered_elsewhere_leaves_no_other_under_the_finger(
    browser: Browser,
) -> None:
    asks = [asking(n, "Bash", {"command": f"touch {n}"}) for n in range(5)]
    bridged = Bridged(asks)
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, bridged)
        # As on a busy machine: what is not done with the drawing is done much later.
        await page.evaluate(LATE)
        assert bridged.route is not None
        cards, selected = page.locator(".ask"), page.locator(".ask.selected")
        await expect(selected).to_have_attribute("data-ask", "r0")

        bridged.route.send(json.dumps({"type": "ask", "what": "answered", "ask": asks[0]}))
        await expect(cards).to_have_count(4)
        await expect(selected).to_have_count(0)
        await page.keyboard.press("a")
        await page.keyboard.press("d")
        await expect(cards).to_have_count(4)

        # The keys go on from where it was, and an answer of one's own selects the next.
        await page.keyboard.press("j")
        await expect(selected).to_have_attribute("data-ask", "r1")
        await page.keyboard.press("j")
        await page.keyboard.press("a")
        await expect(selected).to_have_attribute("data-ask", "r3")
        bridged.route.send(json.dumps({"type": "ask", "what": "answered", "ask": asks[3]}))
        await expect(selected).to_have_count(0)
        await page.keyboard.press("k")
        await expect(selected).to_have_attribute("data-ask", "r1")

        # A key that is held down answers once.
        await page.keyboard.down("a")
        await expect(selected).to_have_attribute("data-ask", "r4")
        await page.keyboard.down("a")
        await page.keyboard.up("a")
        await expect(cards).to_have_count(1)
        quiet(served)
    assert bridged.said == [ALLOWED] * 2


RAW: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Bash", {"command": f"echo ls{UNSEEN}; rm\xa0-rf /x"}, {"description": f"List{UNSEEN}"}),
    ("Write", {"file_path": f"/x/{UNSEEN}a", "content": f"one{UNSEEN}\ntwo"}, {}),
    ("Edit", {"file_path": "/x", "old_string": f"a{UNSEEN}", "new_string": f"b{UNSEEN}"}, {}),
    ("Agent", {"prompt": f"do {UNSEEN}"}, {"blocked_path": f"/y/{UNSEEN}\n"}),
    (f"mcp__s{UNSEEN}__t{UNSEEN}", {f"name{UNSEEN}": f"value{UNSEEN}"}, {}),
    ("mcp__s__t", {"deep": {"list": [UNSEEN]}}, {"decision_reason": f"because{UNSEEN}"}),
]


def escaped(value: Any) -> Any:
    """Return a value in which each character that cannot be seen is written as its escape."""
    if isinstance(value, dict):
        return {escaped(name): escaped(each) for name, each in value.items()}
    if isinstance(value, list):
        return [escaped(each) for each in value]
    return exact(value) if isinstance(value, str) else value


async def test_what_cannot_be_seen_has_the_pixels_of_its_escape(browser: Browser) -> None:
    asks = [asking(n, name, given, **more) for n, (name, given, more) in enumerate(RAW)]
    asks[3]["payload"]["blocked_path"] = f"/y/{UNSEEN}\t"
    written = escaped(asks)
    # Inside of JSON, a backslash of a text would be two.
    written[5]["payload"]["input"] = asks[5]["payload"]["input"]
    written[3]["payload"]["blocked_path"] = exact(f"/y/{UNSEEN}") + "\\t"
    async with serving(browser, idle_agent()) as served:
        # Tall, so that nothing scrolls and all has the same place in both.
        raw = await inbox(served, Bridged(asks), 3000)
        literal = await inbox(served, Bridged(written), 3000)
        for number in range(len(RAW)):
            drawn, wanted = (page.locator(f"[data-ask=r{number}]") for page in (raw, literal))
            tree = await drawn.aria_snapshot()
            assert not set(tree) & set(UNSEEN + "\xa0")
            assert tree == await wanted.aria_snapshot()
            assert await drawn.screenshot() == await wanted.screenshot(), number
        quiet(served)


async def test_letters_that_are_written_to_the_left_do_not_move_what_a_command_does(
    browser: Browser,
) -> None:
    command = "cp \u05d0 \u05d1"
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, Bridged([asking(0, "Bash", {"command": command})]))
        places = await page.locator(".ask .command").evaluate("""command => {
            const text = command.firstChild;
            return Array.from(text.data, (_, at) => {
                const range = document.createRange();
                range.setStart(text, at);
                range.setEnd(text, at + 1);
                return range.getBoundingClientRect().left;
            });
        }""")
        quiet(served)
    assert places == sorted(places)
    assert len(places) == len(command)


async def test_names_texts_and_outputs_of_a_conversation_are_drawn_with_escapes(
    browser: Browser, tmp_path: Path
) -> None:
    def message(kind: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        body = {"id": "m", "role": kind, "content": list(blocks)}
        return {"kind": "message", "turns": ["t"], "frame": {"type": kind, "message": body}}

    title = {"type": "system", "subtype": "session_title_changed", "title": f"title{UNSEEN}"}
    prompt = {"type": "user", "message": {"role": "user", "content": f"prompt{UNSEEN}"}}
    text = f"**text{UNSEEN}** &#x202e;reference `code{UNSEEN}` \u26a0\ufe0f"
    result = {"type": "tool_result", "tool_use_id": "c", "content": f"output{UNSEEN}"}
    frames = [
        {"kind": "sent", "turns": ["t"], "frame": prompt},
        message("assistant", {"type": "text", "text": text}),
        message(
            "assistant",
            {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": f"x{UNSEEN}"}},
        ),
        message("user", result),
        {"kind": "message", "frame": title},
    ]
    journal_of(tmp_path, SESSION, frames)
    async with serving(browser, idle_agent(), journals=tmp_path) as served:
        page = await served.page(opened(SESSION))
        await expect(page.get_by_role("log")).to_contain_text("output")
        seen = [await page.locator("body").aria_snapshot()]
        await page.goto(f"{served.url}/{opened(SESSION, '/journal')}")
        await expect(page.locator(".journal li").first).to_be_visible()
        seen.append(await page.locator("body").aria_snapshot())
        quiet(served)

    assert not set("".join(seen)) & set(UNSEEN)
    for word in ("title", "prompt", "text", "code", "x", "output"):
        assert f"{word}{exact(UNSEEN)}" in seen[0].replace("\\\\", "\\")
    assert "\\u202ereference" in seen[0].replace("\\\\", "\\")
    assert "\u26a0\ufe0f" in seen[0]


async def test_a_notification_is_text_with_escapes_on_one_line(browser: Browser) -> None:
    bridged = Bridged([asking(0, "Bash", {"command": "ls"})])
    ask = asking(1, f"Bash{UNSEEN}\nallowed", {"command": "ls"})
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, bridged)
        await page.add_init_script("""
            window.notes = [];
            window.Notification = class { constructor(title, {body}) { notes.push(body); } };
            Notification.permission = "granted";
            Object.defineProperty(document, "hidden", {get: () => true});
        """)
        await page.reload()
        await expect(page.locator(".ask")).to_have_count(1)
        assert bridged.route is not None
        bridged.route.send(json.dumps({"type": "ask", "what": "opened", "ask": ask}))
        await expect(page.locator(".ask")).to_have_count(2)

        assert await page.evaluate("notes") == [f"A session: Bash{exact(UNSEEN)}\\nallowed"]
        quiet(served)


async def test_what_is_edited_is_shown_with_escapes_beside_it(browser: Browser) -> None:
    bridged = Bridged([asking(1, "Bash", {"command": "ls\u202e"})])
    async with serving(browser, idle_agent()) as served:
        page = await inbox(served, bridged)
        await page.keyboard.press("e")

        await expect(page.get_by_label("command, with what cannot be seen")).to_have_text(
            "ls\\u202e"
        )
        quiet(served)


async def test_the_page_and_the_terminal_escape_the_same_characters(browser: Browser) -> None:
    page = await browser.new_page()
    await page.add_script_tag(path=REDUCE)
    found = await page.evaluate("""() => [steersman.visible, steersman.exact].map(show => {
        const all = Array.from({length: 0x110000}, (_, n) => [n, show(String.fromCodePoint(n))]);
        return Object.fromEntries(all.filter(([n, shown]) => shown !== String.fromCodePoint(n)));
    })""")
    emoji = "\u26a0\ufe0f 1\ufe0f\u20e3 \U0001f469\u200d\U0001f4bb\u200b a\ufe0f"
    shown = await page.evaluate("text => steersman.visible(text)", emoji)
    await page.close()

    assert found == [
        {str(n): show(chr(n)) for n in range(0x110000) if show(chr(n)) != chr(n)}
        for show in (printable, exact)
    ]
    assert shown == printable(emoji)
