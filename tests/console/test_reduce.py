"""The picture that the console makes of a journal is what `replay()` reads in it."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterable
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from steersman import _json
from steersman.journal import Entry, Kind
from steersman.journal.files import Record, line_of
from steersman.journal.replaying import replay
from tests.console.browser import REDUCE, STATIC, built
from tests.journal.recordings import hold
from tests.samples import dialogue, traces
from tests.simulation.playing import play
from tests.simulation.scenarios import draw, draw_revived

HELD = [trace for trace in traces() if any(f.get("type") == "user" for _, f in dialogue(trace))]
SEEDS = 10
LARGEST = 80_000
"""Bytes, compressed: all that a browser loads."""

Told = dict[str, Any]


@pytest.fixture(scope="module")
def simulated() -> dict[str, list[Entry]]:
    """Journals of sessions whose CLIs were killed, silenced and garbled."""
    logging.disable()
    try:
        return {
            f"{drawn.__name__} {seed}": [
                each for each in play(drawn(seed)).entries if isinstance(each, Entry)
            ]
            for seed in range(SEEDS)
            for drawn in (draw, draw_revived)
        }
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_reads_in_every_journal_what_replay_reads(
    browser: Browser, simulated: dict[str, list[Entry]]
) -> None:
    recorded = {trace: (await hold(trace)).entries for trace in HELD}
    journals = recorded | simulated | {"resumed": resumed_on_an_old_cli()}
    page = await browser.new_page()
    await page.add_script_tag(path=REDUCE)

    shown = await shown_of(page, journals)

    wrong = {
        name: (shown[name], expected)
        for name, entries in journals.items()
        if shown[name] != (expected := replayed(entries))
    }

    await page.close()
    assert len(journals) > 85
    assert wrong == {}


def resumed_on_an_old_cli() -> list[Entry]:
    """A conversation that has cost 0.5 before, on a CLI whose results tell only totals."""
    totals = {"session": {"total_cost_usd": 0.5, "model_usage": {}}}
    lines: list[tuple[Kind, Any]] = [
        (Kind.SENT, {"type": "control_request", "request": {"subtype": "initialize"}}),
        (Kind.CONTROL, {"type": "control_response", "response": {"response": totals}}),
        (Kind.SENT, {"type": "user", "uuid": "u", "message": {"content": "go"}}),
        (Kind.MESSAGE, {"type": "result", "total_cost_usd": 0.75, "user_message_uuids": ["u"]}),
        (Kind.CONTROL, {"type": "control_response", "response": {"response": totals}}),
        (Kind.SETTLED, None),
        (Kind.MESSAGE, {"type": "result", "total_cost_usd": 1.0}),
    ]
    return [
        Entry(seq, float(seq), kind, b"" if line is None else _json.dumps(line), ("u",) * is_u)
        for seq, (kind, line) in enumerate(lines, start=1)
        for is_u in [line is None or "uuid" in line]
    ]


@pytest.mark.asyncio(loop_scope="module")
async def test_records_may_come_one_by_one_twice_or_damaged(browser: Browser) -> None:
    page = await browser.new_page()
    await page.add_script_tag(path=REDUCE)
    lines = [json.loads(line_of(Record.of(each))) for each in (await hold("perm_allow")).entries]
    odd = [
        None,
        5,
        {},
        {"kind": 7},
        {"kind": "message", "seq": "x", "frame": {"type": "assistant"}},
    ]
    hostile = [
        {"kind": "message", "seq": 9000 + n, "at": 1, "frame": frame}
        for n, frame in enumerate(HOSTILE)
    ]

    whole = await page.evaluate("lines => steersman.report(lines)", lines)
    single = await page.evaluate("lines => steersman.report(lines, 1)", lines)
    twice = await page.evaluate("lines => steersman.report([...lines, ...lines], 3)", lines)
    damaged = await page.evaluate("lines => steersman.report(lines)", [*odd, *lines, *hostile])

    await page.close()
    assert single == whole == twice
    assert damaged["text"].startswith(whole["text"])
    assert damaged["turns"] == whole["turns"]


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_to_be_done_is_read_from_the_tools_that_keep_it(browser: Browser) -> None:
    page = await browser.new_page()
    await page.add_script_tag(path=REDUCE)

    def called(number: int, name: str, given: Told, output: Told) -> list[Told]:
        use = {"type": "tool_use", "id": f"c{number}", "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ok"}
        body = {"id": f"m{number}", "content": [use]}
        return [
            {"seq": 2 * number, "kind": "message", "frame": {"type": "assistant", "message": body}},
            {
                "seq": 2 * number + 1,
                "kind": "message",
                "cut": [{"path": ["frame"], "size": 30_000}],
                "frame": {
                    "type": "user",
                    "message": {"content": [result]},
                    "tool_use_result": output,
                },
            },
        ]

    def task(number: str, subject: str) -> Told:
        return {"task": {"id": number, "subject": subject}}

    todo = {"content": "a", "status": "in_progress", "activeForm": "doing a"}
    lists = [
        called(1, "TodoWrite", {"todos": [todo]}, {}),
        called(2, "TaskCreate", {"subject": "one"}, task("7", "one"))
        + called(3, "TaskCreate", {"subject": "two"}, task("8", "two"))
        + called(4, "TaskUpdate", {"taskId": "7", "status": "completed"}, {})
        + called(5, "TaskUpdate", {"taskId": "8", "status": "deleted"}, {}),
    ]

    read = [await page.evaluate(TODOS, lines) for lines in lists]

    await page.close()
    assert read[0] == {"todos": [["doing a", "in_progress"]], "cut": [3]}
    assert read[1] == {"todos": [["one", "completed"]], "cut": [5, 7, 9, 11]}


TODOS = """lines => {
    const records = lines.map(steersman.readRecord);
    const picture = steersman.reduce(steersman.newPicture(), records);
    const cut = [...picture.calls.values()].flatMap(each => each.cut);
    return {todos: picture.todos.map(each => [each.text, each.status]), cut};
}"""

HOSTILE: list[Any] = [
    {"type": "assistant"},
    {"type": "assistant", "message": {"content": [None, 5, {"type": "tool_use"}, {"type": []}]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": {}}]}},
    {"type": "result", "modelUsage": [1], "model_usage_since_last_result": {"m": None}},
    {"type": "system", "subtype": "task_updated", "task_id": "t", "patch": 5},
    {"type": "system", "subtype": "background_tasks_changed", "tasks": [3, {"task_id": 4}]},
    {"type": "stream_event", "event": {"type": "content_block_delta", "index": 99}},
    {"type": "__proto__", "subtype": "constructor"},
]


def test_what_a_browser_loads_is_small() -> None:
    built()
    loaded = [path for path in STATIC.iterdir() if path.suffix in (".js", ".css", ".html", ".svg")]

    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in loaded)

    assert size < LARGEST


async def shown_of(page: Page, journals: dict[str, list[Entry]]) -> dict[str, Told]:
    """What the page makes of journals, each in the form of `replayed`."""
    lines = {
        name: [line_of(Record.of(each)).decode() for each in entries]
        for name, entries in journals.items()
    }
    # As one text: the remote control takes much longer to encode objects.
    found = await page.evaluate(
        """text => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).map(
            ([name, all]) => [name, steersman.report(all.map((each) => JSON.parse(each)))])))""",
        json.dumps(lines),
    )
    return {name: in_form(told) for name, told in json.loads(found).items()}


def in_form(told: Told) -> Told:
    """The report of the page, with turns and calls by id."""
    return {
        **told,
        "cost": round(told["cost"], 9),
        "turns": {
            turn["uuid"]: (turn["outcome"], turn["text"], round(turn["cost"], 9))
            for turn in told["turns"]
        },
        "calls": {
            call["id"]: (call["name"], call["input"], call["parent"], call["failed"])
            for call in told["calls"]
        },
    }


def replayed(entries: Iterable[Entry]) -> Told:
    """What `replay()` reads in a journal."""
    found = replay(entries)
    calls = [call for turn in found.turns.values() for call in turn.tool_calls]
    calls += [call for node in found.agents.walk() for call in node.tool_calls]
    return {
        "text": found.text,
        "session": found.snapshot.session_id or "",
        "cost": round(found.snapshot.stats.cost_usd, 9),
        "history": found.history,
        "asks": list(found.snapshot.open_asks),
        "tasks": [task.task_id for task in found.snapshot.tasks],
        "turns": {
            uuid: (turn.outcome, turn.text, round(turn.cost_usd, 9))
            for uuid, turn in found.turns.items()
        },
        "calls": {
            call.tool_use_id: (
                call.name,
                call.input,
                call.parent_tool_use_id or "",
                call.is_error,
            )
            for call in calls
        },
        "shown": [],
    }
