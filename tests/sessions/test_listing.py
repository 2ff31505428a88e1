"""What a list shows, of files in every state, and that it reads no more than it must."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import SessionNotFound
from steersman.sessions import SessionInfo, Sessions
from steersman.sessions.index import PATIENCE
from steersman.sessions.reading import fold_file, fold_small
from steersman.transcripts.entries import read_entry
from steersman.transcripts.summary import Summary
from tests.sessions.made import (
    BEGIN,
    ID,
    OTHER,
    PROJECT,
    conversation,
    lines,
    number,
    title,
    write,
)

DAY = 24 * 60 * 60 * 1000


def ids(found: list[SessionInfo]) -> list[str]:
    return [each.session_id for each in found]


def test_a_session_is_listed_with_all_that_is_known_of_it(config: Path) -> None:
    path = write(config, [*conversation("first", "answer"), title("A title")])

    (found,) = Sessions().list()

    assert found == SessionInfo(
        session_id=ID,
        summary="A title",
        last_modified=BEGIN * 1000,
        file_size=path.stat().st_size,
        custom_title="A title",
        first_prompt="first",
        git_branch="main",
        cwd="/srv/project",
        created_at=1_793_527_200_000,
        expires=BEGIN * 1000 + 30 * DAY,
    )


def test_the_newest_come_first_and_a_page_is_a_part_of_the_list(config: Path) -> None:
    for index in range(30):
        entries = conversation("hi", session_id=number(index))
        write(config, entries, number(index), project=f"-p{index % 3}", age=index)

    found = ids(Sessions().list())

    assert found == [number(index) for index in range(30)]
    assert ids(Sessions().list(limit=7, offset=5)) == found[5:12]
    assert Sessions().list(limit=0) == []
    assert Sessions().list(offset=99) == []


def test_the_newest_of_many_are_listed_without_reading_the_others(config: Path) -> None:
    for index in range(50):
        write(config, conversation("hi"), number(index), age=index)
    before = {each: each.stat().st_atime_ns for each in config.rglob("*.jsonl")}
    for each in before:
        os.utime(each, ns=(0, each.stat().st_mtime_ns))

    Sessions(index=False).list(limit=3)

    read = [each.stem for each in before if each.stat().st_atime_ns]
    # Where the file system keeps no times of reading, there is nothing to see.
    assert set(read) <= {number(index) for index in range(3)}


def test_a_title_in_the_middle_of_a_long_file_is_found(config: Path) -> None:
    long = "x" * 200_000
    entries = conversation("first", long, "second", long)
    write(config, [*entries[:2], title("In the middle"), *entries[2:]])

    assert Sessions().info(ID).custom_title == "In the middle"


def test_a_title_that_is_written_in_another_way_is_found(config: Path) -> None:
    entries = conversation("first", "answer")
    odd = b'{ "sessionId" : "%b", "customTitle" : "Odd", "type" : "custom-title" }\n' % ID.encode()
    write(config, lines(entries[:1]) + odd + lines(entries[1:]))

    assert Sessions().info(ID).summary == "Odd"


def test_the_title_beside_a_file_is_shown_if_the_file_has_none(config: Path) -> None:
    path = write(config, conversation("first"))
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "custom-title.json").write_text('{"customTitle": "Beside"}')

    beside = Sessions().info(ID).summary
    write(config, [*conversation("first"), title("Inside")])

    assert (beside, Sessions().info(ID).summary) == ("Beside", "Inside")


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        (None, 30),
        ('{"cleanupPeriodDays": 7}', 7),
        ('{"cleanupPeriodDays": "x"}', 30),
        ('{"cleanupPeriodDays": -1}', 30),
        ("not JSON", 30),
        ("[7]", 30),
        ('{"cleanupPeriodDays": 0.5}', 0.5),
        ('{"cleanupPeriodDays": true}', 30),
    ],
)
def test_when_the_cli_deletes_a_session_is_told(
    config: Path, settings: str | None, days: float
) -> None:
    write(config, conversation("hi"))
    if settings is not None:
        (config / "settings.json").write_text(settings)

    assert Sessions().info(ID).expires == BEGIN * 1000 + days * DAY


def test_the_settings_of_a_project_decide_when_its_sessions_are_deleted(
    config: Path, tmp_path: Path
) -> None:
    project = tmp_path / "work"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 90}')
    key = "".join(each if each.isalnum() else "-" for each in str(project))
    write(config, conversation("hi"), project=key)

    assert Sessions(project=project).info(ID).expires == BEGIN * 1000 + 90 * DAY


def test_nothing_that_lies_there_stops_a_list(config: Path, tmp_path: Path) -> None:
    good = write(config, conversation("good"), OTHER)
    folder = good.parent
    write(config, b"", number(0))
    write(config, b"no JSON\n\xff\xfe\n[1]\n{}\n", number(1))
    write(config, lines(conversation("torn"))[:-20], number(2))
    (folder / f"{number(3)}.jsonl").mkdir()
    (folder / f"{number(4)}.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / f"{number(5)}.jsonl")
    (folder / "notes.jsonl").write_text("{}")
    (folder / "agent-abc.jsonl").write_text("{}")
    write(config, [{**each, "isSidechain": True} for each in conversation("side")], number(6))
    unreadable = write(config, conversation("secret"), number(7))
    unreadable.chmod(0)
    (config / "projects" / "a file").write_text("")
    (config / "projects" / "loop").symlink_to(config / "projects" / "loop")

    found = ids(Sessions().list())

    # Root may read everything.
    assert set(found) - {number(7)} == {OTHER}


def test_a_line_of_fifty_megabytes_is_read_over(config: Path) -> None:
    long = "x" * 50_000_000
    write(config, [*conversation("first", long), title("After it")])

    assert Sessions(index=False).info(ID).summary == "After it"


def test_without_a_single_session_the_list_is_empty(config: Path) -> None:
    assert Sessions().list() == []
    assert Sessions(project="/nowhere").list() == []


def test_archived_sessions_are_listed_only_if_asked_for(config: Path) -> None:
    write(config, conversation("hi"))
    sessions = Sessions()

    sessions.archive(ID)
    hidden, shown = sessions.list(), sessions.list(archived=True)
    sessions.unarchive(ID)

    assert hidden == []
    assert [each.archived for each in shown] == [True]
    assert [each.archived for each in sessions.list()] == [False]


def test_a_session_that_was_continued_in_another_is_not_listed(config: Path) -> None:
    more = {"type": "continued-in", "continuedInSessionId": OTHER, "sessionId": ID}
    write(config, [*conversation("hi"), more])

    assert Sessions().list() == []


def test_a_session_without_anything_to_show_says_so(config: Path) -> None:
    write(config, b'{"type":"mode","mode":"normal"}\n')

    with pytest.raises(SessionNotFound, match="neither a prompt nor a title"):
        Sessions().info(ID)


def test_of_two_files_with_one_id_the_newer_counts(config: Path) -> None:
    write(config, conversation("old"), project="-a", age=9)
    write(config, conversation("new"), project="-b")

    assert [each.summary for each in Sessions().list()] == ["new"]
    assert Sessions().info(ID).summary == "new"


# --- What is kept between two lists ------------------------------------------------------


def many(config: Path) -> None:
    for index in range(20):
        write(config, conversation("hi", session_id=number(index)), number(index), age=index)


def test_a_file_that_has_grown_is_read_from_where_it_had_ended(config: Path) -> None:
    many(config)
    path = write(config, conversation("first", "answer"))
    Sessions().list()

    # Not to be seen by reading on, and not in what the CLI writes: only to tell the two apart.
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b'"first"', b'"FIRST"'))
        file.seek(0, os.SEEK_END)
        file.write(lines([title("Added")]))
    found = Sessions().info(ID)

    assert (found.summary, found.first_prompt) == ("Added", "first")
    assert Sessions(index=False).info(ID).first_prompt == "FIRST"


@pytest.mark.parametrize("how", ["replaced", "shorter", "other"])
def test_a_file_that_is_another_now_is_read_anew(config: Path, how: str) -> None:
    many(config)
    path = write(config, [*conversation("first", "answer"), title("Old")])
    Sessions().list()

    entries = {
        "replaced": conversation("another", "answer", "more", "and more"),
        "shorter": conversation("another"),
        "other": [*conversation("another", "x" * 3000)],
    }[how]
    if how == "replaced":
        path.unlink()
    write(config, entries, age=-5)

    assert Sessions().info(ID).summary == "another"


ROWS = {
    "paths": "path = CAST(path AS TEXT)",
    "texts": "data = 'a text'",
    "sizes": "size = 'x'",
    "data": "data = CAST('no JSON' AS BLOB)",
    "an array": "data = CAST('[]' AS BLOB)",
    "offsets": "offset = -1",
    "times": "mtime = 0.5",
}


@pytest.mark.parametrize("damage", ["text", "zeros", "tail", "folder", "version", *ROWS])
def test_a_damaged_index_does_not_matter_and_is_made_anew(
    config: Path, tmp_path: Path, damage: str
) -> None:
    many(config)
    index = tmp_path / "cache" / "steersman" / "sessions.sqlite3"
    want = Sessions(index=False).list()
    Sessions().list()
    data = index.read_bytes()
    if damage == "text":
        index.write_text("this is no database" * 1000)
    elif damage == "zeros":
        index.write_bytes(data[:100] + bytes(len(data) - 100))
    elif damage == "tail":
        index.write_bytes(data[: len(data) // 2])
    elif damage == "folder":
        index.unlink()
        index.mkdir()
    else:
        connection = sqlite3.connect(index)
        if damage == "version":
            connection.execute("PRAGMA user_version = 99")
        else:
            connection.execute(f"UPDATE summaries SET {ROWS[damage]}")
        connection.commit()
        connection.close()

    assert Sessions().list() == want
    assert Sessions().list() == want


def test_a_list_does_not_wait_for_one_that_writes_the_index(config: Path, tmp_path: Path) -> None:
    many(config)
    Sessions().list()
    for index in range(20, 40):
        write(config, conversation("new"), number(index), age=index)
    other = sqlite3.connect(tmp_path / "cache/steersman/sessions.sqlite3", isolation_level=None)

    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        found = Sessions().list()
        seconds = time.monotonic() - began
        kept = other.execute("SELECT count(*) FROM summaries").fetchone()

    assert found == Sessions(index=False).list()
    assert (len(found), kept) == (40, (20,))
    assert seconds < PATIENCE
    Sessions().list()
    with closing(sqlite3.connect(tmp_path / "cache/steersman/sessions.sqlite3")) as again:
        assert again.execute("SELECT count(*) FROM summaries").fetchone() == (40,)


def test_the_index_forgets_files_that_are_gone(config: Path, tmp_path: Path) -> None:
    many(config)
    Sessions().list()
    for index in range(20):
        (config / "projects" / PROJECT / f"{number(index)}.jsonl").unlink()
        write(config, conversation("new"), number(20 + index))

    found = ids(Sessions().list())

    with closing(sqlite3.connect(tmp_path / "cache/steersman/sessions.sqlite3")) as again:
        paths = [os.fsdecode(path) for (path,) in again.execute("SELECT path FROM summaries")]
    assert sorted(found) == sorted(Path(each).stem for each in paths)
    assert len(found) == 20


def test_the_index_is_for_its_owner_only(config: Path, tmp_path: Path) -> None:
    many(config)

    Sessions().list()

    folder = tmp_path / "cache" / "steersman"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}


def test_without_an_index_nothing_is_written(config: Path, tmp_path: Path) -> None:
    many(config)

    Sessions(index=False).list()
    Sessions(index=False).search("hi")

    assert not (tmp_path / "cache").exists()


# --- The short way gives what the long way gives ---------------------------------------------

TEXT = st.sampled_from(
    ["", "a", "B b", '"quoted"', "{}", "\n", "é", "<command-name>/x</command-name>"]
)
SPECIAL = st.one_of(
    st.builds(title, TEXT),
    st.builds(lambda t: {"type": "ai-title", "aiTitle": t}, TEXT),
    st.builds(lambda t: {"type": "tag", "tag": t}, TEXT),
    st.builds(lambda t: {"tag": t, "type": "note"}, TEXT),
    st.builds(lambda t: {"type": "last-prompt", "lastPrompt": t}, TEXT),
    st.builds(lambda t: {"type": "summary", "summary": t, "leafUuid": "x"}, TEXT),
    st.builds(lambda t: {"type": "relocated", "relocatedCwd": t}, TEXT),
    st.builds(lambda t: {"type": "queue-operation", "timestamp": t}, TEXT),
    st.just({"type": "queue-operation", "timestamp": "2026-01-01T00:00:00Z"}),
    st.just({"type": "mode", "mode": "normal"}),
)


def message(role: str, text: str, branch: str | None, *, flags: tuple[bool, bool]) -> Any:
    return {
        "parentUuid": None,
        "isSidechain": flags[0],
        "type": role,
        "isMeta": flags[1],
        "message": {"role": role, "content": text, "customTitle": "nested", "tag": "nested"},
        "uuid": "u",
        "gitBranch": branch,
        "cwd": "/c" if text else None,
    }


MESSAGE = st.builds(
    message,
    st.sampled_from(["user", "assistant", "attachment"]),
    TEXT,
    st.sampled_from([None, "", "main", "other"]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
LINE = st.one_of(
    st.one_of(SPECIAL, MESSAGE).map(lambda each: json.dumps(each, separators=(",", ":")).encode()),
    SPECIAL.map(lambda each: json.dumps(each, indent=None).encode()),
    st.sampled_from([b"", b"torn {", b"\xff", b"[]", b"null"]),
)


@given(found=st.lists(LINE, max_size=12), cut=st.integers(0, 400), torn=st.booleans())
def test_what_a_list_reads_equals_what_every_line_says(
    tmp_path_factory: pytest.TempPathFactory, found: list[bytes], cut: int, *, torn: bool
) -> None:
    data = b"".join(each + b"\n" for each in found)
    data = data[:-1] if torn else data
    path = tmp_path_factory.mktemp("fold") / "file"
    whole = Summary()
    whole.fold_all(read_entry(line) for line in data.split(b"\n"))

    path.write_bytes(data[:cut])
    part = fold_file(str(path))
    path.write_bytes(data)

    assert fold_file(str(path)).data == whole.to_data()
    assert fold_file(str(path), part).data == whole.to_data()
    assert fold_small(str(path), len(data)) == whole.to_data()
    assert fold_small(str(path), len(data) + 1) is None
