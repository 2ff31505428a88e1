"""Search, with the index and without: the same hits, whatever happened to index and files."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from steersman.errors import UsageError
from steersman.sessions import Sessions
from tests.sessions.made import ID, OTHER, conversation, lines, number, write


def found(text: str, *, index: bool, **options: object) -> list[tuple[str, str]]:
    hits = Sessions(index=index, **options).search(text)  # type: ignore[arg-type]  # any options
    return sorted((each.session_id, each.uuid) for each in hits)


def index_of(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "steersman" / "sessions.sqlite3"


TEXTS = (
    "Fix the LOGIN bug",
    "I changed café.py and naïve_test.py",
    "tool_use is a word of two",
    "日本語 の テスト",
    "don't-stop: a.b.c 3.14",
    "Straße ÅNGSTRÖM",
)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("login", [0]),
        ("LOGIN fix", [0]),
        ('"the login"', [0]),
        ('"login the"', []),
        ("cafe", [1]),
        ("Naive", [1]),
        ("naïve_test.py", [1]),
        ("tool use", [2]),
        ("日本語", [3]),
        ("don't", [4]),
        ("3.14", [4]),
        ("angstrom", [5]),
        ("logi", []),
        ('a OR b NOT "c', []),
        ("NEAR(a b) *", []),
    ],
)
def test_all_words_must_be_there_in_any_order(
    config: Path, text: str, numbers: list[int], *, index: bool
) -> None:
    write(config, conversation(*TEXTS))

    assert found(text, index=index) == sorted((ID, number(each)) for each in numbers)


@pytest.mark.parametrize("index", [True, False])
def test_a_hit_shows_where_it_is(config: Path, *, index: bool) -> None:
    write(config, conversation("x " * 100 + "needle\n in " + "y " * 100, "no", "a needle"))

    best, other = Sessions(index=index).search("needle")

    assert (best.session_id, best.uuid, best.snippet) == (ID, number(2), "a needle")
    assert best.timestamp == "2026-11-01T10:00:02.000Z"
    assert 1 > best.score > other.score > 0
    assert "x needle in y" in other.snippet
    assert other.snippet[0] == other.snippet[-1] == "…"
    assert len(Sessions(index=index).search("needle", limit=1)) == 1


@pytest.mark.parametrize("index", [True, False])
def test_what_tools_were_given_and_gave_back_is_searched(config: Path, *, index: bool) -> None:
    used, back = conversation("x", "y", "z")[1:]
    used["message"]["content"] = [
        {"type": "tool_use", "name": "Bash", "input": {"command": "grep alpha", "n": [{"a": "b"}]}},
        {"type": "thinking", "thinking": "secret"},
    ]
    back["message"]["content"] = [
        {"type": "tool_result", "content": [{"type": "text", "text": "beta found"}]},
        {"type": "tool_result", "content": "gamma"},
    ]
    write(config, [used, back])

    for text, want in (("alpha", number(1)), ("beta", number(2)), ("gamma", number(2))):
        assert found(text, index=index) == [(ID, want)]
    assert found("secret", index=index) == []


def test_the_index_grows_with_the_files(config: Path, tmp_path: Path) -> None:
    path = write(config, conversation("alpha"))
    first = found("alpha", index=True)
    with path.open("ab") as file:
        file.write(lines(conversation("beta", first=1))[:-5])
    torn = found("beta", index=True)
    with path.open("ab") as file:
        file.write(lines(conversation("beta", first=1))[-5:])

    assert (first, torn) == ([(ID, number(0))], [])
    assert found("beta", index=True) == [(ID, number(1))]
    with closing(sqlite3.connect(index_of(tmp_path))) as connection, connection:
        assert connection.execute("SELECT count(*) FROM lines").fetchone() == (2,)
    connection.close()


def test_what_was_replaced_or_deleted_is_found_no_more(config: Path) -> None:
    path = write(config, conversation("alpha alpha"))
    other = write(config, conversation("alpha"), OTHER)
    assert len(found("alpha", index=True)) == 2

    other.unlink()
    path.write_bytes(lines(conversation("gamma", "alpha")))

    assert found("alpha", index=True) == found("alpha", index=False) == [(ID, number(1))]
    assert found("gamma", index=True) == [(ID, number(0))]


def test_a_search_in_one_project_finds_nothing_of_others(config: Path, tmp_path: Path) -> None:
    write(config, conversation("alpha"), project="-a")
    write(config, conversation("alpha"), OTHER, project="-b")
    assert len(found("alpha", index=True)) == 2

    assert found("alpha", index=True, project=tmp_path) == []
    assert [each[0] for each in found("alpha", index=True, project="/b")] == [OTHER]


@pytest.mark.parametrize("damage", ["text", "zeros", "folder", "table", "read-only", "locked"])
def test_an_index_that_cannot_be_used_is_made_anew_or_left_aside(
    config: Path, tmp_path: Path, damage: str
) -> None:
    write(config, conversation("alpha"))
    index = index_of(tmp_path)
    found("alpha", index=True)
    write(config, conversation("alpha"), OTHER)
    connection = sqlite3.connect(index, isolation_level=None)
    if damage == "text":
        index.write_text("no database" * 1000)
    elif damage == "zeros":
        index.write_bytes(index.read_bytes()[:100] + bytes(50_000))
    elif damage == "folder":
        index.unlink()
        index.mkdir()
    elif damage == "table":
        connection.execute("DROP TABLE lines")
    elif damage == "read-only":
        index.chmod(0o400)
        index.parent.chmod(0o500)
    else:
        connection.execute("BEGIN EXCLUSIVE")

    try:
        hits = found("alpha", index=True)
    finally:
        index.parent.chmod(0o700)
        connection.close()

    assert hits == [(ID, number(0)), (OTHER, number(0))]
    if damage in ("text", "zeros", "table"):
        with closing(sqlite3.connect(index)) as made:
            assert made.execute("SELECT count(*) FROM lines").fetchone() == (2,)


def test_a_search_reads_again_only_what_the_index_names(config: Path, tmp_path: Path) -> None:
    path = write(config, conversation("alpha " + "x" * 100, "gamma"))
    assert found("alpha", index=True) == [(ID, number(0))]

    # Not in what the CLI writes: only to tell the two ways apart.
    about = path.stat()
    with path.open("r+b") as file:
        data = file.read().replace(b"alpha", b"delta")
        file.seek(0)
        file.write(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    other = sqlite3.connect(index_of(tmp_path), isolation_level=None)
    with closing(other):
        # Nothing has changed for the index, so that nothing is written to it.
        other.execute("BEGIN IMMEDIATE")
        by_index = [found(word, index=True) for word in ("alpha", "delta", "gamma")]
    with path.open("ab") as file:
        file.write(lines(conversation("beta", first=2)))
    grown = [found(word, index=True) for word in ("delta", "gamma", "beta")]

    assert by_index == [[], [], [(ID, number(1))]]
    assert grown == [[], [(ID, number(1))], [(ID, number(2))]]
    assert found("delta", index=False) == [(ID, number(0))]


@pytest.mark.parametrize("bad", ["", "  ", "...", None, 5])
def test_a_search_needs_a_word(config: Path, bad: str) -> None:
    with pytest.raises(UsageError, match=r"^text:"):
        Sessions().search(bad)


SEARCH = """
import sys
from steersman.sessions import Sessions
print(len(Sessions().search(sys.argv[1])))
"""


def test_a_deleted_session_leaves_no_text_in_the_index(config: Path, tmp_path: Path) -> None:
    secret = write(config, conversation("my first secret prompt"))
    for each in range(20):
        write(config, conversation("hi", session_id=number(each)), number(each))
    sessions = Sessions()
    sessions.list()
    sessions.search("secret")

    sessions.delete(ID)

    with closing(sqlite3.connect(index_of(tmp_path))) as connection, connection:
        for table in ("summaries", "files"):
            paths = connection.execute(f"SELECT path FROM {table}").fetchall()
            assert (str(secret).encode(),) not in paths
    connection.close()
    assert sessions.search("secret") == []


@pytest.mark.process
def test_processes_that_index_at_once_or_are_killed_add_each_line_once(
    config: Path, tmp_path: Path
) -> None:
    for each in range(20):
        texts = [f"alpha {each} {turn}" for turn in range(30)]
        write(config, conversation(*texts, session_id=number(each)), number(each))
    command = [sys.executable, "-c", SEARCH, "alpha"]

    with subprocess.Popen(command, stdout=subprocess.PIPE) as killed:
        # It has begun to write when the file is there.
        deadline = time.monotonic() + 20
        while not index_of(tmp_path).exists() and time.monotonic() < deadline:
            assert killed.poll() is None
        killed.kill()
    several = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    found_by = [each.communicate(timeout=60)[0] for each in several]

    assert found_by == [b"20\n"] * 3
    found("alpha", index=True)
    with closing(sqlite3.connect(index_of(tmp_path))) as connection, connection:
        rows = connection.execute(
            "SELECT count(*), count(DISTINCT file || '/' || offset) FROM lines"
        )
        assert rows.fetchone() == (600, 600)
    connection.close()
