"""`steersman sessions` on sessions that the stock CLI wrote."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from steersman.cli.main import main
from steersman.cli.page import console_for
from steersman.cli.sessions import print_list
from steersman.sessions import SessionInfo, Sessions
from steersman.sessions.driving import run_in_private_loop
from steersman.stores import SqliteStore
from tests.sessions.real import PROJECT, unpack

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return unpack(tmp_path / "config")


@pytest.fixture
def run(ids: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(["sessions", *words, "--all", "--config", str(tmp_path / "config")])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_conversations_are_listed_for_users_and_scripts(run: Run, ids: list[str]) -> None:
    status, plain, _ = run("list", "--limit", "5")
    found = [json.loads(line) for line in run("list", "--limit", "100", "--json")[1].splitlines()]

    assert status == 0
    assert len(plain.splitlines()) == 5
    assert {line.split()[0] for line in plain.splitlines()} <= set(ids)
    assert {each["session_id"] for each in found} <= set(ids)
    assert len(found) > 20


def test_messages_are_shown_whole_or_in_part(run: Run, ids: list[str]) -> None:
    for each in ids:
        status, text, _ = run("show", each)
        lines = run("show", each, "--json")[1].splitlines()
        assert (status, bool(text)) == (0, bool(lines))
        assert all(json.loads(line)["type"] for line in lines)
    last = run("show", ids[0], "--last", "1", "--json")[1].splitlines()
    assert len(last) == 1


def test_a_conversation_is_named_by_the_beginning_of_its_id(run: Run, ids: list[str]) -> None:
    assert run("show", ids[0][:13])[0] == 0

    assert run("show", "")[0] == 2
    status, _, complaint = run("show", "nothing")
    assert (status, "steersman sessions list" in complaint) == (2, True)
    status, _, complaint = run("show", "11111111-1111-4111-8111-111111111111")
    assert (status, "there is no session" in complaint) == (1, True)


def test_a_conversation_is_renamed_tagged_forked_found_and_removed(
    run: Run, ids: list[str], tmp_path: Path
) -> None:
    known = Sessions(config=tmp_path / "config")
    first = next(each for each in ids if list(known.messages(each)))

    assert run("rename", first, "Walrus \x1b[2J title")[0] == 0
    assert run("tag", first, "mine")[0] == 0
    status, out, _ = run("fork", first, "--title", "A copy of the walrus")
    copy = out.strip()

    assert (known.info(first).tag, known.info(copy).custom_title) == (
        "mine",
        "A copy of the walrus",
    )
    assert "\x1b" not in run("list", "--limit", "100")[1]
    assert status == 0
    assert run("tag", first)[0] == 0
    assert known.info(first).tag is None

    assert run("rm", copy)[0] == 2
    assert run("rm", copy, "--yes")[0] == 0
    assert run("show", copy)[0] == 1


def test_words_are_found_and_a_conversation_is_exported(
    run: Run, ids: list[str], tmp_path: Path
) -> None:
    known = Sessions(config=tmp_path / "config")
    first = next(each for each in ids if list(known.messages(each)))
    page = tmp_path / "page.html"

    hits = run("search", "the", "--json")[1].splitlines()
    markdown = run("export", first)
    page_status = run("export", first, "--format", "html", "-o", str(page))[0]
    again = run("export", first, "--format", "html", "-o", str(page))

    assert {json.loads(line)["session_id"] for line in hits} <= set(ids)
    assert hits
    assert markdown[1].startswith("# ")
    assert (page_status, page.read_text().startswith("<!doctype html>")) == (0, True)
    assert (again[0], "the path of a new file" in again[2]) == (2, True)


def test_a_store_has_its_own_conversations(
    ids: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    known = Sessions(config=tmp_path / "config")
    first = next(each for each in ids if list(known.messages(each)))
    known.copy_to(Sessions(store, project=tmp_path), first)

    status = main(["sessions", "list", "--store", str(path), "--project", str(tmp_path)])

    assert status == 0
    assert capsys.readouterr().out.split()[0] == first
    run_in_private_loop(store.aclose())


def test_a_table_in_forty_columns_loses_nothing() -> None:
    out = io.StringIO()
    info = SessionInfo(session_id="0" * 36, summary="a wide 漢字 title " * 5, last_modified=0)

    print_list(console_for(out, width=40), [info], is_terminal=True)

    lines = out.getvalue().splitlines()
    assert all(cell_len(line) <= 40 for line in lines)
    text = "".join("".join(lines[1:]).split())
    assert text.count("0") >= 36
    assert text.count("漢") == 5


@pytest.mark.process
def test_new_messages_are_shown_until_the_reader_is_interrupted(
    ids: list[str], tmp_path: Path
) -> None:
    config = tmp_path / "config"
    known = Sessions(config=config)
    first = next(each for each in ids if list(known.messages(each)))
    place = config / "projects" / PROJECT / f"{first}.jsonl"
    words = ["sessions", "tail", first, "--last", "1", "--json", "--all", "--config", str(config)]

    with subprocess.Popen(
        [sys.executable, "-m", "steersman.cli", *words],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    ) as tailing:
        assert tailing.stdout is not None
        before = json.loads(tailing.stdout.readline())
        line = {**before, "uuid": "22222222-2222-4222-8222-222222222222", "isMeta": False}
        with place.open("a") as file:
            file.write(json.dumps(line) + "\n")
        after = json.loads(tailing.stdout.readline())
        tailing.send_signal(signal.SIGINT)
        status = tailing.wait(10)

    assert after["uuid"] == line["uuid"]
    assert status == 130
