"""Every kind of ask has a form, and what it sends is an answer that the ask accepts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, WebSocketRoute, expect

from steersman import Agent
from steersman.permissions.json_form import answer_from_json, ask_from_json
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI
from tests.console.staging import quiet, serving, to_begin

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = "5b0c7d0e-0000-4000-8000-000000000003"
RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "git push"}],
    "behavior": "allow",
    "destination": "session",
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "agrees": {"type": "boolean"},
        "size": {"type": "string", "enum": ["S", "M"]},
    },
    "required": ["name"],
}
ASKED_BY = {"subtype": "elicitation", "mcp_server_name": "s", "message": "please"}
MANY = {
    "question": "Which of them?",
    "header": "Pick",
    "multiSelect": True,
    "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}, "c"],
}


def bash(command: str) -> dict[str, Any]:
    return {
        "subtype": "can_use_tool",
        "tool_name": "Bash",
        "input": {"command": command, "timeout": 5},
        "permission_suggestions": [RULE],
        "tool_use_id": "t",
    }


async def suggest(card: Locator) -> None:
    await card.get_by_role("button", name="Always allow Bash(git push)").click()


async def edit(card: Locator) -> None:
    await card.get_by_role("button", name="Edit", exact=True).click()
    await card.get_by_label("timeout").fill("no number")
    await card.get_by_role("button", name="Allow as edited").click()
    await expect(card.get_by_role("alert")).to_have_text("timeout is not JSON.")
    await card.get_by_label("timeout").fill("7")
    await card.get_by_role("button", name="Allow as edited").click()


async def deny_and_stop(card: Locator) -> None:
    await card.get_by_role("button", name="Deny", exact=True).click()
    await card.get_by_label("Why not?").fill("no")
    await card.get_by_role("button", name="Deny and stop").click()


async def choose_many(card: Locator) -> None:
    await expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    await card.get_by_label("a", exact=True).check()
    await card.get_by_label("c", exact=True).check()
    await card.get_by_label("Other").fill("mine")
    await card.get_by_role("button", name="Answer").click()


async def fill_in(card: Locator) -> None:
    await card.get_by_label("name").fill("Ann")
    await card.get_by_label("age").fill("42")
    await card.get_by_label("agrees").check()
    await card.get_by_label("size").select_option("M")
    await card.get_by_role("button", name="Answer").click()


async def visit(card: Locator) -> None:
    await expect(card.get_by_role("link").last).to_have_attribute("href", "https://example.com/x")
    await card.get_by_role("button", name="Done").click()


async def cancel(card: Locator) -> None:
    await card.get_by_role("button", name="Cancel").click()


CASES: list[tuple[str, dict[str, Any], Callable[[Locator], Awaitable[None]], dict[str, Any]]] = [
    ("permission", bash("one"), suggest, {"behavior": "allow", "updatedPermissions": [RULE]}),
    (
        "permission",
        bash("two"),
        edit,
        {"behavior": "allow", "updatedInput": {"command": "two", "timeout": 7}},
    ),
    (
        "permission",
        bash("three"),
        deny_and_stop,
        {"behavior": "deny", "message": "no", "interrupt": True},
    ),
    (
        "question",
        {**bash(""), "tool_name": "AskUserQuestion", "input": {"questions": [MANY]}},
        choose_many,
        {"answers": [{"question": "Which of them?", "text": "a, c, mine"}]},
    ),
    (
        "elicitation",
        {**ASKED_BY, "requested_schema": SCHEMA},
        fill_in,
        {
            "action": "accept",
            "content": {"name": "Ann", "age": 42, "agrees": True, "size": "M"},
        },
    ),
    (
        "elicitation",
        {**ASKED_BY, "mode": "url", "url": "https://example.com/x"},
        visit,
        {"action": "accept"},
    ),
    (
        "elicitation",
        {**ASKED_BY, "mode": "url", "url": "javascript:alert(1)"},
        cancel,
        {"action": "cancel"},
    ),
    (
        "dialog",
        {"subtype": "request_user_dialog", "dialog_kind": "x"},
        cancel,
        {"behavior": "cancelled"},
    ),
]


async def test_an_answer_does_not_replace_a_newer_state(browser: Browser) -> None:
    def summary(state: str, last: int) -> dict[str, Any]:
        return {"id": SESSION, "title": "go", "state": state, "line": state, "last": last}

    def connect(route: WebSocketRoute) -> None:
        def on_message(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["type"] == "do":
                answer = {"session": summary("running", 3), "turn": "t"}
                done = {"type": "done", "id": frame["id"], "answer": answer}
                newer = {"type": "session", "session": summary("idle", 30)}
                route.send(f"{json.dumps(done)}\n{json.dumps(newer)}")

        route.on_message(on_message)
        route.send(json.dumps({"type": "hello", "agents": ["default"]}))

    async with serving(browser, Agent(transport=ScriptedCLI(Script()))) as served:
        page = await served.page()
        await page.route_web_socket("**/live", connect)
        await page.goto(f"{served.url}/?again")
        await to_begin(page, "go")

        await expect(page.locator(".head .chip")).to_have_text("ready", timeout=5_000)


async def test_every_kind_of_ask_is_answered_with_what_it_accepts(browser: Browser) -> None:
    asks = [
        {"id": f"r{n}", "session": SESSION, "kind": kind, "created": float(n), "payload": payload}
        for n, (kind, payload, _, _) in enumerate(CASES)
    ]
    said: list[dict[str, Any]] = []

    def connect(route: WebSocketRoute) -> None:
        def on_message(message: str | bytes) -> None:
            frame = json.loads(message)
            if frame["type"] == "do":
                said.append(frame)
                route.send(json.dumps({"type": "done", "id": frame["id"], "answer": {}}))

        route.on_message(on_message)
        route.send(json.dumps({"type": "hello", "agents": ["default"], "asks": asks}))

    async with serving(browser, Agent(transport=ScriptedCLI(Script()))) as served:
        page = await served.page(viewport={"width": 1200, "height": 900})
        await page.route_web_socket("**/live", connect)
        await page.goto(f"{served.url}/?again#/asks")
        await expect(page.locator(".ask")).to_have_count(len(CASES))
        assert await page.locator("a[href^=javascript]").count() == 0

        for number, (_, _, act, _) in enumerate(CASES):
            await act(page.locator(f"[data-ask=r{number}]"))
            await expect(page.locator(".ask")).to_have_count(len(CASES) - number - 1)
        quiet(served)

    assert [frame["answer"] for frame in said] == [given for _, _, _, given in CASES]
    for ask, frame in zip(asks, said, strict=True):
        found = ask_from_json(json.dumps(ask))
        assert found.kind == ask["kind"]
        found.response(answer_from_json(json.dumps(frame["answer"])))
