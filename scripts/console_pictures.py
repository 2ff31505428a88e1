"""Takes the pictures of docs/console.md: `python scripts/console_pictures.py [FOLDER]`.

A real run: the stock CLI on a scripted model, the bridge, and Chromium. Offline, and with no key.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from playwright.async_api import Browser, Page, async_playwright, expect

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src")]

from steersman import Agent  # noqa: E402
from steersman.testing.model import ScriptedModel  # noqa: E402
from steersman.testing.request import ModelRequest  # noqa: E402
from steersman.testing.sandbox import CliSandbox, find_any_cli  # noqa: E402
from steersman.testing.script import (  # noqa: E402
    Script,
    Step,
    Usage,
    call,
    say,
    step,
    think,
    when,
)
from steersman.web import Bridge  # noqa: E402

LIMIT = 240
"""Seconds for all pictures; a machine that is busy needs more than a minute."""
expect.set_options(timeout=30_000)

WIDE, DESK = {"width": 1366, "height": 768}, {"width": 1100, "height": 640}
PHONE = {"width": 360, "height": 720}

BEFORE = '''"""Prices, in euros."""


def rounded(amount: float) -> float:
    return int(amount * 100) / 100
'''
OLD, NEW = "return int(amount * 100) / 100", "return round(amount, 2)"
PROMPT = "Our prices are rounded wrongly. Find out why, and fix it."
MIGRATE = "Move the orders table to the new schema"
NOTES = "Write the release notes for 0.3"
QUESTION = {
    "question": "How shall amounts like 5.005 be rounded?",
    "header": "Rounding",
    "multiSelect": False,
    "options": [
        {"label": "Half to even", "description": "As Python does it: 5.00"},
        {"label": "Half up", "description": "As shops do it: 5.01"},
    ],
}
USAGE = Usage(input_tokens=2_400, cache_read_input_tokens=41_000, output_tokens=260)
PLAN = """I'll do this in three steps:

1. have a **subagent** search for the cause
2. change `prices.py`, if you allow it
3. run the tests

"""
ANSWER = """Done. `rounded()` cut the cents off instead of rounding them.

| file | change |
|---|---|
| `prices.py` | `int(...)` is now `round(amount, 2)` |

```python
>>> rounded(19.999)
20.0
```
"""


def scripted(project: Path) -> Script:
    """What the model does in three sessions."""
    path = str(project / "prices.py")

    def used(*parts: Step) -> Step:
        return step(*parts, usage=USAGE)

    return Script(
        when(
            "rounded wrongly",
            used(
                think("The cents are cut off. Somebody has to look where that happens."),
                say(PLAN),
                call(
                    "Agent",
                    description="Find the rounding",
                    prompt="Find where prices are rounded, and say what is wrong there.",
                    subagent_type="general-purpose",
                    run_in_background=False,
                ),
            ),
            used(
                say("There it is. I'll change that line."),
                call("Edit", file_path=path, old_string=OLD, new_string=NEW),
            ),
            used(
                say("Now the tests."),
                call("Bash", command="python3 -m unittest -v", description="Run the tests"),
            ),
            used(
                say("One thing is yours to decide."), call("AskUserQuestion", questions=[QUESTION])
            ),
            lambda _: used(say(ANSWER)),
        ),
        when("Which file", used(say("Only `prices.py`: nothing else rounds."))),
        when(
            "orders table",
            used(
                say("I'll look at what is there first."),
                call("Bash", command="./migrate --dry-run orders", description="Try the migration"),
            ),
            used(say("The dry run is fine: 3 statements, no data is lost.")),
        ),
        when("release notes", used(say("The notes are in `NOTES.md`: two fixes, one addition."))),
    ).branch(
        "prices are rounded",
        lambda request: look(request, path),
        lambda request: look(request, path),
    )


def look(request: ModelRequest, path: str) -> Step:
    """The subagent: read the file, then report."""
    if not request.tool_results:
        return say("I'll read it.") + call("Read", file_path=path)
    return say("`rounded()` in `prices.py` cuts the cents off with `int()`.")


@asynccontextmanager
async def stage() -> AsyncGenerator[tuple[Bridge, str], None]:
    """Run the bridge, on the stock CLI."""
    with CliSandbox() as box, ScriptedModel(scripted(box.project)) as model:
        (box.project / "prices.py").write_text(BEFORE, encoding="utf-8")
        (box.project / "migrate").write_text("#!/bin/sh\necho 3 statements, all reversible\n")
        (box.project / "migrate").chmod(0o700)
        env = box.env(model.url)
        agent = Agent(cwd=box.project, cli_path=find_any_cli(), inherit_env=False, env=env)
        bridge = Bridge(agent)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(uvicorn.Config(bridge, log_level="error"))
            served = asyncio.ensure_future(server.serve(sockets=[listener]))
            try:
                yield bridge, f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                await bridge.aclose()
                server.should_exit = True
                await served


async def take(browser: Browser, bridge: Bridge, url: str, folder: Path) -> None:
    """Hold the conversations, and take a picture of each view on the way."""
    notes = await bridge.begin(NOTES, by="ann")
    wide = await shown(browser, bridge, url, WIDE, "light")
    await wide.goto(f"{url}/#/session/{notes}")
    await expect(wide.locator(".end")).to_be_visible()
    await bridge.begin(MIGRATE, by="ann")
    main = await bridge.begin(PROMPT, by="you")
    await wide.goto(f"{url}/#/session/{main}")
    dock = wide.locator(".dock .ask")
    await expect(dock).to_contain_text("round(amount, 2)")

    async def picture(page: Page, name: str) -> None:
        # The cursor blinks, so it is not in the picture.
        await page.evaluate("document.activeElement?.blur()")
        await page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done, 99)))"
        )
        await page.screenshot(path=folder / f"{name}.png", animations="disabled")

    phone = await shown(browser, bridge, url, PHONE, "light")
    await phone.goto(f"{url}/#/session/{main}")
    await expect(phone.locator(".dock .ask")).to_be_visible()
    await picture(phone, "phone")
    await phone.goto(f"{url}/#/list")
    await picture(phone, "phone-list")

    desk = await shown(browser, bridge, url, DESK, "light")
    await desk.goto(f"{url}/#/asks")
    await expect(desk.locator(".inbox .ask")).to_have_count(2)
    await picture(desk, "inbox")

    await dock.locator(".allow").click()
    await expect(dock).to_contain_text("unittest")
    await dock.locator(".allow").click()
    await expect(dock).to_contain_text("5.005")
    dark = await shown(browser, bridge, url, DESK, "dark")
    await dark.goto(f"{url}/#/session/{main}")
    await dark.get_by_role("textbox", name="Prompt").fill("Which file was it, by the way?")
    await dark.keyboard.press("Enter")
    await expect(dark.get_by_label("Queued prompts")).to_be_visible()
    await picture(dark, "question")

    await dock.get_by_label("Half up").check()
    await dock.get_by_role("button", name="Answer").click()
    await expect(wide.get_by_role("log")).to_contain_text("nothing else rounds")
    await wide.locator(".subagent").evaluate("each => each.scrollIntoView({block: 'start'})")
    await picture(wide, "conversation")
    await desk.goto(f"{url}/#/session/{main}/overview")
    await expect(desk.locator(".timeline")).to_be_visible()
    await picture(desk, "overview")
    await desk.goto(f"{url}/#/session/{main}/journal")
    await expect(desk.locator(".journal li").first).to_be_visible()
    await picture(desk, "journal")


async def shown(browser: Browser, bridge: Bridge, url: str, size: object, theme: str) -> Page:
    """Open the console by a link."""
    context = await browser.new_context(
        viewport=size,  # type: ignore[arg-type]  # one of the sizes above
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = await context.new_page()
    await page.goto(bridge.link(url))
    await expect(page.get_by_label("Search sessions")).to_be_attached()
    return page


async def main(folder: Path) -> None:
    """Take all pictures."""
    async with asyncio.timeout(LIMIT), async_playwright() as playwright, stage() as (bridge, url):
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            await take(browser, bridge, url, folder)
        finally:
            await browser.close()


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/console"
    chosen.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen))
