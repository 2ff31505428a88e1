"""The console in a real browser, on kept journals: hostile content, other widths, lost servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from steersman import Agent
from steersman.journal import Entry
from steersman.journal.files import Record, line_of
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.console.browser import AXE
from tests.console.staging import journal_of, opened, quiet, serving, to_begin
from tests.journal.recordings import hold

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = "5b0c7d0e-0000-4000-8000-000000000001"
LONG = "5b0c7d0e-0000-4000-8000-000000000002"

EVIL = "<img src=x onerror=\"window.evil='{0}'\"><script>window.evil='{0}'</script>"
LINKS = (
    "[a](javascript:window.evil=1) [b](data:text/html,x) ![c](https://elsewhere.invalid/c.png)"
    " [d](https://example.com/) <a href='javascript:window.evil=2' onclick='window.evil=3'>e</a>"
    " <style>*{display:none}</style><svg onload=window.evil=4>"
)


def scripted_agent(*steps: Any) -> Agent:
    return Agent(transport=ScriptedCLI(Script(*steps)))


def hostile_journal() -> list[dict[str, Any]]:
    """A conversation in which every text is an attack."""

    def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
        body = {"id": "m1", "role": "assistant", "content": list(blocks)}
        return {"kind": "message", "turns": ["t"], "frame": {"type": "assistant", "message": body}}

    name = EVIL.format("name")
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [
            {"type": "text", "text": EVIL.format("output")},
            {"type": "image", "source": {"type": "url", "url": "https://elsewhere.invalid/i.png"}},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="},
            },
        ],
    }
    return [
        {"kind": "phase", "details": {"before": "idle", "after": "running"}},
        {
            "kind": "sent",
            "turns": ["t"],
            "frame": {
                "type": "user",
                "message": {"role": "user", "content": EVIL.format("prompt")},
            },
        },
        assistant({"type": "text", "text": EVIL.format("text") + "\n\n" + LINKS}),
        assistant({"type": "thinking", "thinking": EVIL.format("thinking") + LINKS}),
        assistant(
            {"type": "tool_use", "id": "c1", "name": f"mcp__{name}__x", "input": {name: name}},
            {"type": "tool_use", "id": "c2", "name": "Write", "input": {"file_path": name}},
            {"type": "tool_use", "id": "c3", "name": "Bash", "input": {"command": name}},
        ),
        {
            "kind": "message",
            "turns": ["t"],
            "frame": {"type": "user", "message": {"role": "user", "content": [result]}},
        },
        {
            "kind": "message",
            "frame": {"type": "system", "subtype": "session_title_changed", "title": name},
        },
        {"kind": "settled", "turns": ["t"], "details": {"outcome": "failed", "reason": name}},
        {"kind": "phase", "details": {"before": "running", "after": name}},
        {"kind": name, "details": {name: name}},
        assistant({"type": name}),
    ]


async def test_whatever_a_model_a_tool_a_file_or_a_title_contains_is_text(
    browser: Browser, tmp_path: Path
) -> None:
    journal_of(tmp_path, SESSION, hostile_journal())
    async with serving(browser, scripted_agent(), journals=tmp_path) as served:
        page = await served.page(opened(SESSION))
        log = page.get_by_role("log")
        await expect(log.get_by_label("Prompt", exact=True)).to_contain_text("<script>window.evil")

        await log.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
        await expect(log.locator(".text")).to_contain_text("<img src=x onerror=")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("<script>window.evil")
        await expect(page).to_have_title("steersman")

        hrefs = await log.locator("a").evaluate_all("all => all.map(each => each.href)")
        assert set(hrefs) == {"https://elsewhere.invalid/c.png", "https://example.com/"}
        assert await page.locator("img, log script, log style, log svg[onload]").count() == 0
        for tab in ("/overview", "/journal"):
            await page.goto(f"{served.url}/{opened(SESSION, tab)}")
            await expect(page.locator(".column").first).to_be_visible()
        assert await page.evaluate("window.evil") is None
        quiet(served)


async def test_ten_thousand_entries_open_at_their_end_and_older_ones_come_on_scrolling_up(
    browser: Browser, tmp_path: Path
) -> None:
    journal_of(tmp_path, LONG, [exchange(n) for n in range(10_000)])
    async with serving(browser, scripted_agent(), journals=tmp_path) as served:
        page = await served.page(opened(LONG))
        log = page.get_by_role("log")
        await expect(log.get_by_text("Text 9999 of it.")).to_be_in_viewport()
        assert await log.locator("article").count() < 500

        for _ in range(6):
            await log.evaluate("each => each.scrollTop = 0")
            await page.evaluate("new Promise(requestAnimationFrame)")
        await expect(log.get_by_text("Text 9500 of it.")).to_be_attached()
        quiet(served)


def exchange(number: int) -> dict[str, Any]:
    block = {"type": "text", "text": f"Text {number} of it."}
    body = {"id": f"m{number}", "role": "assistant", "content": [block]}
    return {"kind": "message", "frame": {"type": "assistant", "message": body}}


async def test_a_lost_server_is_shown_and_what_was_sent_meanwhile_arrives_once(
    browser: Browser, tmp_path: Path
) -> None:
    first, second = scripted_agent(say("One.")), scripted_agent(say("Two."), say("Three."))
    page: Page
    async with serving(browser, first, journals=tmp_path) as served:
        context = await browser.new_context()
        page = await context.new_page()
        await served.log_in(page)
        await to_begin(page, "first")
        await expect(page.get_by_role("log")).to_contain_text("One.")
        port = served.port

    box = page.get_by_role("textbox", name="Prompt")
    await expect(page.locator(".connection")).to_contain_text("Reconnecting")
    await box.fill("second")
    await page.keyboard.press("Enter")
    await box.fill("half a third")
    await expect(page.get_by_label("Prompt, pending")).to_contain_text(
        "when the connection is back"
    )

    async with serving(browser, second, journals=tmp_path, port=port) as served:
        served.watch(page)
        await expect(page.get_by_role("log")).to_contain_text("Two.")
        await expect(page.locator(".connection")).to_be_empty()
        await expect(page.get_by_label("Prompt, pending")).to_have_count(0)
        await expect(page.get_by_label("Prompt", exact=True).first).to_contain_text("first")
        prompts = page.get_by_role("log").get_by_label("Prompt", exact=True)
        await expect(prompts).to_have_text(["first", "second"])
        await expect(box).to_have_value("half a third")
        await context.close()


async def test_a_server_that_has_other_entries_than_the_page_is_shown_as_it_is(
    browser: Browser, tmp_path: Path
) -> None:
    page: Page
    journal_of(tmp_path, SESSION, [exchange(number) for number in range(4)])
    async with serving(browser, scripted_agent(), journals=tmp_path) as served:
        context = await browser.new_context()
        page = await context.new_page()
        await served.log_in(page)
        await page.goto(f"{served.url}/{opened(SESSION)}")
        await expect(page.get_by_role("log")).to_contain_text("Text 3 of it.")
        port = served.port
    # The last entries could not be stored, and the next session has given their numbers again.
    others = [exchange(number) for number in (0, 1, 12, 13, 14, 15)]
    for record in others[2:]:
        record["at"] = 1_790_000_100.5
    journal_of(tmp_path, SESSION, others)

    async with serving(browser, scripted_agent(), journals=tmp_path, port=port) as served:
        log = page.get_by_role("log")
        for number in (0, 1, 12, 13, 14, 15):
            await expect(log).to_contain_text(f"Text {number} of it.")
        await expect(log).not_to_contain_text("Text 3 of it.")
        await context.close()


async def test_entries_that_cannot_be_read_any_more_are_counted(
    browser: Browser, tmp_path: Path
) -> None:
    page: Page
    journal_of(tmp_path, SESSION, [exchange(number) for number in range(4)])
    async with serving(browser, scripted_agent(), journals=tmp_path) as served:
        context = await browser.new_context()
        page = await context.new_page()
        await served.log_in(page)
        await page.goto(f"{served.url}/{opened(SESSION)}")
        await expect(page.get_by_role("log")).to_contain_text("Text 3 of it.")
        port = served.port
    journal_of(tmp_path, SESSION, [exchange(number) for number in range(8)])
    path = tmp_path / f"{SESSION}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5] + lines[7:]))

    async with serving(browser, scripted_agent(), journals=tmp_path, port=port) as served:
        await expect(page.get_by_role("log")).to_contain_text("Text 7 of it.")
        await expect(page.locator(".banner")).to_contain_text("2 journal entries cannot be read")
        await context.close()


async def test_axe_finds_nothing_serious_in_any_view(browser: Browser, tmp_path: Path) -> None:
    held = await hold("subagent_forward_text")
    agent = scripted_agent(
        say("A **list**:\n\n- one\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
        + call("Bash", command="touch a.txt")
    )
    found: dict[str, Any] = {}
    async with serving(browser, agent, journals=tmp_path) as served:
        journal_of(tmp_path, SESSION, [frame_of(each) for each in held.entries])
        page = await served.page(bypass_csp=True, viewport=DESK)
        await to_begin(page, "go")
        await expect(page.get_by_label("Open asks")).to_be_visible()
        asking = opened(page.url.rpartition("/")[2])
        await page.add_script_tag(path=AXE)
        for place, shown, theme, size in (
            (asking, ".dock .ask", "light", PHONE),
            (asking, ".dock .ask", "light", DESK),
            (asking, ".dock .ask", "dark", DESK),
            ("#/asks", ".inbox .ask", "light", DESK),
            ("#/list", ".row", "dark", PHONE),
            ("#/new", ".begin textarea", "light", DESK),
            (opened(SESSION), ".subagent .text", "light", DESK),
            (opened(SESSION, "/overview"), ".timeline", "dark", DESK),
            (opened(SESSION, "/journal"), ".journal li", "light", DESK),
        ):
            await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            await page.set_viewport_size(size)
            await page.evaluate("hash => location.hash = hash", place)
            await expect(page.locator(shown).first).to_be_visible()
            looked = await page.evaluate(LOOK)
            assert looked["passed"] > 10
            if looked["wrong"]:
                found[f"{place} {theme} {size['width']}"] = looked["wrong"]
        quiet(served)
    assert found == {}


async def test_what_scrolls_in_a_conversation_is_reached_by_keys(
    browser: Browser, tmp_path: Path
) -> None:
    cells = " | ".join(f"column{number}" for number in range(60))
    table = f"| {cells} |\n|{'---|' * 60}\n| {cells} |\n"
    code = "```\n" + "line\n" * 60 + "```\n"
    prompts = ["w" * 9000, "line\n" * 900]
    journal_of(
        tmp_path,
        SESSION,
        [*(sent(each, f"t{n}") for n, each in enumerate(prompts)), says(f"{table}\n{code}")],
    )
    found: dict[str, Any] = {}
    async with serving(browser, scripted_agent(), journals=tmp_path) as served:
        page = await served.page(opened(SESSION), bypass_csp=True, viewport=DESK)
        log = page.get_by_role("log")
        await expect(log.locator("td").first).to_be_attached()
        await page.add_script_tag(path=AXE)
        for size in (DESK, PHONE):
            await page.set_viewport_size(size)
            for shown in (".prompt", "td", "pre"):
                await log.locator(shown).first.scroll_into_view_if_needed()
                looked = await page.evaluate(LOOK)
                if looked["wrong"]:
                    found[f"{shown} {size['width']}"] = looked["wrong"]
        folded = await log.get_by_text("more characters").count()
        quiet(served)
    assert found == {}
    assert folded == len(prompts)


def sent(text: str, turn: str) -> dict[str, Any]:
    body = {"role": "user", "content": text}
    return {"kind": "sent", "turns": [turn], "frame": {"type": "user", "message": body}}


def says(text: str) -> dict[str, Any]:
    body = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"kind": "message", "frame": {"type": "assistant", "message": body}}


DESK: ViewportSize = {"width": 1400, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}

LOOK = """async () => {
    const {violations, passes} = await axe.run(document);
    const bad = violations.filter(each => ["serious", "critical"].includes(each.impact));
    const wrong = bad.map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html)]);
    return {wrong, passed: passes.length};
}"""


def frame_of(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(line_of(Record.of(entry)))
    return {name: value for name, value in found.items() if name not in ("seq", "at")}
