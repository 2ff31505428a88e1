"""Renaming, tagging, archiving, deleting and forking, in the CLI's own files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.errors import SessionInUse, UsageError
from steersman.sessions import Sessions
from steersman.stores.conversation_lock import LockDirectory, claim
from tests.sessions.made import ID, conversation, lines, number, write, write_agent


def test_a_title_and_a_tag_are_the_clis_own_lines(config: Path) -> None:
    path = write(config, conversation("hi"))
    before = path.read_bytes()
    sessions = Sessions()

    sessions.rename(ID, "  My\n title\u202e ")
    sessions.tag(ID, "work")

    assert path.read_bytes() == before + lines(
        [
            {"type": "custom-title", "customTitle": "My title", "sessionId": ID},
            {"type": "tag", "tag": "work", "sessionId": ID},
        ]
    )
    found = sessions.info(ID)
    assert (found.summary, found.tag) == ("My title", "work")


def test_a_tag_can_be_removed(config: Path) -> None:
    write(config, conversation("hi"))
    sessions = Sessions()
    sessions.tag(ID, "work")

    sessions.tag(ID, None)

    assert sessions.info(ID).tag is None


@pytest.mark.parametrize("bad", ["", " \n", "\u202e\u200b", None, 5])
def test_a_title_needs_something_to_show(config: Path, bad: str) -> None:
    path = write(config, conversation("hi"))
    before = path.read_bytes()

    with pytest.raises(UsageError, match=r"^title:"):
        Sessions().rename(ID, bad)
    if bad is not None:
        with pytest.raises(UsageError, match=r"^tag:"):
            Sessions().tag(ID, bad)

    assert path.read_bytes() == before


def test_a_line_that_was_cut_off_takes_no_title_with_it(config: Path) -> None:
    torn = lines(conversation("hi", "answer"))[:-30]
    path = write(config, torn)

    Sessions().rename(ID, "Whole")

    assert path.read_bytes().startswith(torn + b"\n{")
    assert Sessions().info(ID).summary == "Whole"


def test_a_file_that_is_a_link_is_not_written(config: Path, tmp_path: Path) -> None:
    path = write(config, conversation("hi"))
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")

    with pytest.raises(UsageError, match="written"):
        Sessions().rename(ID, "x")
    Sessions().delete(ID)

    assert (tmp_path / "outside").exists()
    assert not path.is_symlink()


def test_a_session_is_deleted_with_all_that_belongs_to_it(config: Path) -> None:
    path = write(config, conversation("hi"))
    write_agent(config, "abc", conversation("sub"), {"agentType": "x"})
    other = write(config, conversation("hi"), number(5))

    Sessions().delete(ID)

    assert [each.name for each in path.parent.iterdir()] == [other.name]


def test_a_folder_that_is_a_link_is_removed_and_not_what_it_leads_to(
    config: Path, tmp_path: Path
) -> None:
    path = write(config, conversation("hi"))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    path.with_suffix("").symlink_to(tmp_path / "precious")

    Sessions().delete(ID)

    assert (tmp_path / "precious" / "file").exists()
    assert not path.with_suffix("").is_symlink()


def test_an_archived_session_has_the_clis_own_note(config: Path) -> None:
    path = write(config, conversation("hi"))

    Sessions().archive(ID)

    note = json.loads((path.with_suffix("") / "archived.json").read_text())
    assert (note["archived"], set(note)) == (True, {"archived", "at", "by"})


def test_a_session_that_another_session_has_open_is_left_alone(config: Path) -> None:
    path = write(config, conversation("hi"))
    before = path.read_bytes()
    lock = claim(LockDirectory(str(config)), ID)
    sessions = Sessions()

    changes: list[Callable[[], None]] = [
        lambda: sessions.delete(ID),
        lambda: sessions.rename(ID, "x"),
        lambda: sessions.tag(ID, "x"),
    ]
    for change in changes:
        with pytest.raises(SessionInUse) as caught:
            change()
        assert caught.value.pid == os.getpid()
    assert path.read_bytes() == before
    sessions.rename(ID, "x", force=True)
    lock.release()
    sessions.delete(ID)

    assert not path.exists()


@pytest.mark.process
def test_a_session_that_a_live_cli_has_open_is_left_alone(config: Path) -> None:
    path = write(config, conversation("hi"))
    (config / "sessions").mkdir()
    cli = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{cli.pid}/stat").read_text().rpartition(")")[2].split()[19]
    note = config / "sessions" / f"{cli.pid}.json"

    note.write_text(json.dumps({"pid": cli.pid, "sessionId": ID, "procStart": started}))
    with pytest.raises(SessionInUse) as caught:
        Sessions().delete(ID)
    # Another process has the number of one that was killed.
    note.write_text(json.dumps({"pid": cli.pid, "sessionId": ID, "procStart": "1"}))
    Sessions().rename(ID, "x")
    cli.communicate(b"\n", timeout=30)
    note.write_text(json.dumps({"pid": cli.pid, "sessionId": ID, "procStart": started}))
    Sessions().delete(ID)

    assert caught.value.pid == cli.pid
    assert not path.exists()


def test_a_fork_is_a_conversation_of_its_own(config: Path) -> None:
    path = write(config, conversation("one", "two", "three", "four"))
    before = path.read_bytes()
    sessions = Sessions()

    whole = sessions.fork(ID)
    part = sessions.fork(ID, up_to=number(1), title="Cut")

    texts = [str(each.message["content"]) for each in sessions.messages(whole)]
    assert ["one" in texts[0], "four" in texts[3], len(texts)] == [True, True, 4]
    assert [each.uuid for each in sessions.messages(whole)] != [number(i) for i in range(4)]
    assert {each.session_id for each in sessions.messages(whole)} == {whole}
    assert {each.data["sessionId"] for each in sessions.entries(whole)} == {whole}
    assert len(list(sessions.messages(part))) == 2
    assert sessions.info(part).custom_title == "Cut"
    assert path.read_bytes() == before
    assert (path.parent / f"{whole}.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_fork_that_cannot_be_made_leaves_nothing(config: Path) -> None:
    path = write(config, conversation("one", "two"))

    with pytest.raises(UsageError, match="up_to"):
        Sessions().fork(ID, up_to=number(77))

    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", [[], {}, None, 5])
def test_an_entry_of_a_strange_kind_is_left_out_of_a_fork(config: Path, kind: object) -> None:
    write(config, [*conversation("one", "two"), {"type": kind}])

    fork = Sessions().fork(ID)

    assert len(list(Sessions().messages(fork))) == 2


def test_what_does_not_fit_on_the_disk_leaves_no_half_session(config: Path, tmp_path: Path) -> None:
    path = write(config, conversation("x" * 30_000, "y" * 30_000))
    home = Sessions(config=tmp_path / "home")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            Sessions().fork(ID)
        with pytest.raises(OSError, match="File too large"):
            Sessions().copy_to(home, ID)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert home.list() == []
    assert Sessions().copy_to(home, ID) == 2


def test_what_lies_where_a_session_has_its_folder_is_told(config: Path) -> None:
    path = write(config, conversation("hi"))
    path.with_suffix("").write_text("no folder")

    with pytest.raises(UsageError, match=r"can be removed \(Not a directory\)"):
        Sessions().delete(ID)
