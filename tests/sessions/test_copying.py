"""Sessions go from files to stores and back, whole, and never twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import SessionInUse, SessionNotFound, UsageError
from steersman.sessions import Sessions, aio
from steersman.stores.conversation_lock import LockDirectory, claim
from steersman.stores.memory import MemoryStore
from steersman.stores.sqlite import SqliteStore
from tests.sessions.made import ID, PROJECT, conversation, lines, title, write, write_agent

META = {"agentType": "reader", "toolUseId": "toolu_1"}
WORK = "/srv/project"


def plain_store() -> Any:
    """A store that type checkers refuse: it has not all methods of the port."""
    return PlainStore()


class PlainStore:
    """A store with nothing but what is required, as somebody else might have written it."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], list[Any]] = {}

    async def append(self, key: Any, entries: list[Any]) -> None:
        place = (key["project_key"], key["session_id"], key.get("subpath", ""))
        self.kept.setdefault(place, []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        return self.kept.get((key["project_key"], key["session_id"], key.get("subpath", "")))


def write_whole(config: Path) -> Path:
    same = {"type": "mode", "mode": "normal", "sessionId": ID}
    entries = [*conversation("hi", "there"), same, title("T"), same]
    path = write(config, entries)
    write_agent(config, "abc", conversation("sub"), META)
    return path


def read(sessions: Sessions, agent: str | None = None) -> list[Any]:
    return [each.data for each in sessions.entries(ID, agent=agent)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_session_goes_into_a_store_and_comes_back(
    config: Path, tmp_path: Path, kind: str
) -> None:
    write_whole(config)
    files = Sessions()
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "store.db")
    stored = Sessions(store, project=WORK)
    home = Sessions(config=tmp_path / "other home")

    into, again = files.copy_to(stored, ID), files.copy_to(stored, ID)
    back, twice = stored.copy_to(home, ID), stored.copy_to(home, ID)

    assert (into, again, back, twice) == (7, 0, 7, 0)
    assert read(home) == read(stored) == read(files)
    assert read(home, "abc") == read(files, "abc")
    folder = tmp_path / "other home" / "projects" / PROJECT
    meta = folder / ID / "subagents" / "agent-abc.meta.json"
    assert json.loads(meta.read_text()) == META
    assert (folder / f"{ID}.jsonl").stat().st_mode & 0o777 == 0o600
    assert home.agents(ID) == files.agents(ID) == stored.agents(ID)
    assert stored.info(ID).summary == "T"
    assert [each.session_id for each in stored.list()] == [ID]
    assert [each.uuid for each in stored.search("there")] == [conversation("", "")[1]["uuid"]]


def test_only_what_is_missing_is_copied(config: Path) -> None:
    path = write_whole(config)
    store = MemoryStore()
    stored = Sessions(store, project=WORK)
    Sessions().copy_to(stored, ID)
    with path.open("ab") as file:
        file.write(lines([*conversation("new", first=2), title("T")]))

    assert Sessions().copy_to(stored, ID) == 2
    assert Sessions().copy_to(stored, ID) == 0


def test_from_store_to_store_and_from_files_to_files(config: Path, tmp_path: Path) -> None:
    write_whole(config)
    files, home = Sessions(), Sessions(config=tmp_path / "other home")
    one, two = Sessions(MemoryStore(), project=WORK), Sessions(plain_store(), project="/elsewhere")
    files.copy_to(one, ID)

    assert (one.copy_to(two, ID), one.copy_to(two, ID)) == (7, 0)
    assert (files.copy_to(home, ID), files.copy_to(home, ID)) == (7, 0)
    assert files.copy_to(files, ID) == 0
    assert read(two) == read(home) == read(files)


def test_a_project_can_be_given_to_what_is_copied(config: Path, tmp_path: Path) -> None:
    write_whole(config)
    target = Sessions(config=tmp_path / "other home", project="/my/place")

    Sessions().copy_to(target, ID)

    assert (tmp_path / "other home" / "projects" / "-my-place" / f"{ID}.jsonl").exists()
    assert target.info(ID).summary == "T"


def test_records_of_requests_stay_out_of_stores(config: Path) -> None:
    write(config, [*conversation("hi"), {"type": "api-request-blob", "hash": "x"}])
    store = plain_store()

    Sessions().copy_to(Sessions(store, project=WORK), ID)

    (entries,) = store.kept.values()
    assert [each["type"] for each in entries] == ["user"]


def test_what_is_unknown_or_in_use_is_not_copied(config: Path, tmp_path: Path) -> None:
    write_whole(config)
    target = Sessions(config=tmp_path / "other home")
    lock = claim(LockDirectory(str(tmp_path / "other home")), ID)

    with pytest.raises(SessionInUse):
        Sessions().copy_to(target, ID)
    lock.release()
    with pytest.raises(SessionNotFound):
        Sessions(MemoryStore()).copy_to(target, ID)
    with pytest.raises(UsageError, match=r"^other:"):
        Sessions().copy_to(aio.Sessions(), ID)  # type: ignore[arg-type]  # bad on purpose
    assert not (tmp_path / "other home" / "projects").exists()
