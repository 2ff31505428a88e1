"""`steersman asks`: the inbox of a store in a terminal, and for scripts."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.cli.main import main
from steersman.permissions import Allow, CanUseTool, Deny, Payload
from steersman.stores import SqliteStore
from tests.inbox.places import TOOL, Session, an_ask

QUESTIONS = CanUseTool(
    tool_name="AskUserQuestion",
    input={"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]},
)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "asks.db"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], store: Path) -> Run:
    def run(*words: str, stdin: str = "") -> tuple[int, str, str]:
        status = main(["asks", *words, "--store", f"sqlite://{store}"], io.StringIO(stdin))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def leave_open(path: Path, *payloads: Payload) -> None:
    """Open asks `q1`, `q2`, ... in a process that ends."""

    async def work() -> None:
        async with SqliteStore(path) as store:
            session = Session(store.inbox())
            for n, payload in enumerate(payloads, start=1):
                session.open(an_ask(payload, id_=f"q{n}"))
            await session.shown(len(payloads))

    asyncio.run(work())


def answer_of(path: Path, payload: Payload) -> Any:
    """The answer that the next process gets."""

    async def work() -> Any:
        async with SqliteStore(path) as store:
            session = Session(store.inbox())
            session.open(an_ask(payload))
            return (await session.answers())[0]

    return asyncio.run(work())


def test_asks_are_listed_shown_and_allowed(run: Run, store: Path) -> None:
    leave_open(store, TOOL, QUESTIONS)

    listed, shown = run("list"), run("show", "q1")
    allowed = run("answer", "q1", "--allow", "--by", "ann")
    again = run("answer", "q1", "--deny", "no", "--by", "bob")

    assert [line.split()[:3] for line in listed[1].splitlines()] == [
        ["q1", "permission", "Bash"],
        ["q2", "question", "AskUserQuestion"],
    ]
    assert '"command": "ls"' in shown[1]
    assert allowed == (0, "q1: answered by ann\n", "")
    assert (again[0], "ann has already answered it" in again[2]) == (1, True)
    assert answer_of(store, TOOL) == (Allow(), "ann")


def test_scripts_read_and_write_json(run: Run, store: Path) -> None:
    leave_open(store, TOOL, QUESTIONS)

    first, second = map(json.loads, run("list", "--json")[1].splitlines())
    digest = json.loads(run("show", "q1", "--json")[1])["digest"]
    edited = '{"behavior": "allow", "updatedInput": {"command": "pwd"}}'
    words = ("answer", "q1", "--answer", "-", "--by", "ann", "--seen", digest, "--json")
    status, out, _ = run(*words, stdin=edited)

    assert (first["id"], first["digest"], second["kind"]) == ("q1", digest, "question")
    assert (status, json.loads(out)["outcome"], json.loads(out)["by"]) == (0, "answered", "ann")
    assert answer_of(store, TOOL) == (Allow({"command": "pwd"}), "ann")


def test_the_one_question_of_an_ask_is_answered_with_a_text(run: Run, store: Path) -> None:
    leave_open(store, QUESTIONS)

    assert run("answer", "q1", "--choose", "b", "--by", "ann")[0] == 0

    ((answer,), _) = answer_of(store, QUESTIONS)
    assert (answer.question, answer.text) == ("Which?", "b")


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("show", "nope"), 1, "not in this inbox"),
        (("answer", "q1", "--allow", "--seen", "0" * 64), 1, "not what was shown"),
        (("answer", "q1", "--answer", "{"), 2, "an answer as JSON"),
        (("answer", "q1", "--answer", '{"action": "accept"}'), 2, "Allow"),
        (("answer", "q1", "--choose", "b"), 2, "an ask of kind question"),
        (("answer", "q1", "--allow", "--by", ""), 2, "a name"),
    ],
)
def test_what_cannot_be_answered_is_explained(
    run: Run, store: Path, words: tuple[str, ...], status: int, text: str
) -> None:
    leave_open(store, TOOL)

    found, out, err = run(*words)

    assert (found, out, text in err) == (status, "", True)
    assert len(run("list")[1].splitlines()) == 1


@pytest.mark.parametrize(
    "url", ["", "/nowhere/asks.db", "sqlite:///nowhere/asks.db", "sqlite://asks.db", "mysql://x"]
)
def test_a_store_that_is_not_there_is_named_and_none_is_made(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEERSMAN_STORE", raising=False)

    assert main(["asks", "list", "--store", url]) == 2

    assert "--store" in capsys.readouterr().err
    assert not Path("/nowhere").exists()


def test_control_characters_of_an_input_do_not_reach_the_terminal(run: Run, store: Path) -> None:
    leave_open(store, CanUseTool(tool_name="Ba\x1b[2Jsh", input={"command": "\x1b[2J\u202e"}))

    for words in (("list",), ("show", "q1"), ("list", "--json")):
        out = run(*words)[1]
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.mark.process
def test_changes_are_printed_as_they_happen_until_the_watcher_is_interrupted(store: Path) -> None:
    leave_open(store, TOOL)
    words = [sys.executable, "-m", "steersman.cli", "asks", "watch", "--json"]
    environment = {**os.environ, "STEERSMAN_STORE": str(store)}

    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as watching:
        assert watching.stdout is not None
        opened = json.loads(watching.stdout.readline())
        main(["asks", "answer", "q1", "--deny", "no", "--by", "ann", "--store", str(store)])
        answered = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        status = watching.wait(10)

    assert (opened["change"], opened["id"]) == ("opened", "q1")
    assert (answered["change"], answered["by"]) == ("answered", "ann")
    assert answered["answer"]["message"] == "no"
    assert status == 130
    assert answer_of(store, TOOL) == (Deny("no"), "ann")


@pytest.mark.process
def test_a_watcher_that_ctrl_c_does_not_reach_writes_how_to_end_it(store: Path) -> None:
    leave_open(store, TOOL)
    # As a shell starts what `nohup` or `&` in a script runs.
    words = f"trap '' INT; exec {sys.executable} -m steersman.cli asks watch --json"
    environment = {**os.environ, "STEERSMAN_STORE": str(store)}

    with subprocess.Popen(
        ["/bin/sh", "-c", words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as watching:
        assert watching.stdout is not None
        opened = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        watching.terminate()
        _, warned = watching.communicate(timeout=10)

    assert opened["id"] == "q1"
    assert warned.startswith("steersman: ctrl-c is ignored here, as by nohup")
    assert f"end this with `kill {watching.pid}`" in warned
    assert watching.returncode == -signal.SIGTERM
