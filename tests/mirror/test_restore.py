"""Where a conversation is resumed from, if there is a store: from its own file, or from a copy."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import ResumeNotFound, StartupError, StartupTimeout, UsageError
from steersman.mirror.copies import PrivateCopy
from steersman.mirror.restore import Restored, StoredConversation
from steersman.options import Options
from steersman.ports import SessionStore
from steersman.stores import MemoryStore
from steersman.transcripts.keys import SessionKey, SessionStoreEntry, project_key
from steersman.transports.command import CommandTransport
from tests.keeping_store import KeepingStore

ID = "70394432-1c03-4518-94bc-f71433d629d1"
OTHER = "80394432-1c03-4518-94bc-f71433d629d1"
SUB = "subagents/workflows/w1/agent-a1"


def entry(number: int, **fields: Any) -> Any:
    return {"type": "user", "uuid": f"uuid-{number}", "isSidechain": False, **fields}


class Home:
    """A home with a project in it."""

    def __init__(self, root: Path) -> None:
        self.config = root / "config"
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"CLAUDE_CONFIG_DIR": str(self.config)}
        self.store: SessionStore = MemoryStore()
        self.project_key = project_key(str(self.project.resolve()))
        self.file = self.config / "projects" / self.project_key / f"{ID}.jsonl"
        self.key: SessionKey = {"project_key": self.project_key, "session_id": ID}

    def options(self, **words: Any) -> Options:
        return Options(cwd=self.project, session_store=self.store, **words)

    def conversation(self, **words: Any) -> StoredConversation:
        return StoredConversation(self.options(**words), self.store, self.env)

    async def restore(self, **words: Any) -> tuple[StoredConversation, Restored]:
        found = self.conversation(**words)
        return found, await found.restore(await found.find())

    def write(self, *entries: Any, file: Path | None = None) -> None:
        path = file or self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in entries))

    @property
    def copies(self) -> list[str]:
        return [each.name for each in (self.config / "steersman").glob("resumed-*")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def lines_of(path: str | Path | None) -> list[Any]:
    return [json.loads(line) for line in Path(path or "").read_bytes().splitlines()]


async def test_what_only_the_store_has_is_resumed_from_a_private_copy(home: Home) -> None:
    part: SessionKey = {**home.key, "subpath": SUB}
    meta: Any = {"type": "agent_metadata", "agentType": "x"}
    done: Any = {**meta, "finished": True}
    await home.store.append(home.key, [entry(1), {"type": "last-prompt"}, entry(2, text="\ud800")])
    await home.store.append(part, [meta, entry(3), done])
    old = os.umask(0)
    try:
        conversation, found = await home.restore(resume=ID)
    finally:
        os.umask(old)

    path = Path(found.path or "")
    agent = path.with_name(ID) / f"{SUB}.jsonl"
    assert (found.resume, found.key, found.must_compare) == (str(path), home.key, False)
    assert path.name == f"{ID}.jsonl"
    assert lines_of(path) == [entry(1), {"type": "last-prompt"}, entry(2, text="\ud800")]
    assert lines_of(agent) == [entry(3)]
    about = json.loads(agent.with_name("agent-a1.meta.json").read_bytes())
    assert about == {"agentType": "x", "finished": True}
    top = home.config / "steersman" / home.copies[0]
    modes = {each.is_dir(): stat.S_IMODE(each.stat().st_mode) for each in (top, *top.rglob("*"))}
    assert modes == {True: 0o700, False: 0o600}

    conversation.end(is_complete=True)
    conversation.end(is_complete=True)
    assert home.copies == []


async def test_the_own_file_is_resumed_if_it_has_all_that_the_store_has(home: Home) -> None:
    await home.store.append(home.key, [entry(1)])
    home.write(entry(1), {"type": "api-request"}, entry(2))

    _, found = await home.restore(resume=ID)

    assert found == Restored(ID, str(home.file), home.key, must_compare=True)
    assert home.copies == []


async def test_an_equal_file_needs_no_comparison_later(home: Home) -> None:
    await home.store.append(home.key, [entry(1), {"type": "mode"}])
    home.write(entry(1), {"type": "mode"})

    _, found = await home.restore(resume=ID)

    assert found == Restored(ID, str(home.file), home.key, must_compare=False)


async def test_a_conversation_that_the_store_never_got_is_resumed_here(home: Home) -> None:
    home.write(entry(1))

    _, found = await home.restore(resume=ID)

    assert found == Restored(ID, str(home.file), home.key, must_compare=True)


async def test_the_store_wins_over_a_file_that_lacks_something(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """The conversation was continued elsewhere; what only this file has is a branch of it."""
    await home.store.append(home.key, [entry(1), entry(3)])
    home.write(entry(1), entry(2))

    conversation, found = await home.restore(resume=ID)

    assert lines_of(found.path) == [entry(1), entry(3)]
    assert lines_of(home.file) == [entry(1), entry(2)]
    assert "has 1 entries that the session store lacks" in caplog.text
    conversation.end(is_complete=True)


@pytest.mark.process
async def test_the_copy_of_a_killed_host_is_taken_over_with_what_the_store_lacks(
    home: Home,
) -> None:
    await home.store.append(home.key, [entry(1)])
    program = f"""
import asyncio, json, os, signal
from steersman.mirror.restore import StoredConversation
from steersman.options import Options
from steersman.stores import MemoryStore

async def main():
    store = MemoryStore()
    await store.append({home.key!r}, [{entry(1)!r}])
    options = Options(cwd={str(home.project)!r}, session_store=store, resume={ID!r})
    found = await StoredConversation(options, store, {home.env!r}).restore({ID!r})
    with open(found.path, "a") as file:
        file.write(json.dumps({entry(2)!r}) + "\\n")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], timeout=60, check=False
    )
    assert len(home.copies) == 1

    conversation, found = await home.restore(resume=ID)

    assert found.resume == found.path
    assert found.must_compare
    assert lines_of(found.path) == [entry(1), entry(2)]
    conversation.end(is_complete=True)
    assert home.copies == []


async def test_a_copy_is_kept_while_the_store_lacks_something(home: Home) -> None:
    await home.store.append(home.key, [entry(1)])
    first, found = await home.restore(resume=ID)
    home.write(entry(1), entry(2), file=Path(found.path or ""))
    first.end(is_complete=False)
    assert len(home.copies) == 1

    second, again = await home.restore(resume=ID)

    assert (again.path, again.must_compare) == (found.path, True)
    second.end(is_complete=True)
    assert home.copies == []


async def test_a_stale_copy_is_removed(home: Home) -> None:
    await home.store.append(home.key, [entry(1)])
    first, _ = await home.restore(resume=ID)
    first.end(is_complete=False)
    await home.store.append(home.key, [entry(2)])

    second, found = await home.restore(resume=ID)

    assert lines_of(found.path) == [entry(1), entry(2)]
    assert len(home.copies) == 1
    second.end(is_complete=True)


async def test_a_copy_that_is_in_use_is_left_alone(home: Home) -> None:
    await home.store.append(home.key, [entry(1)])
    used = PrivateCopy.create(home.config / "steersman", home.key, is_fork=False)
    fork = PrivateCopy.create(home.config / "steersman", home.key, is_fork=True)
    empty = PrivateCopy.create(home.config / "steersman", home.key, is_fork=False)
    empty.release()

    conversation, found = await home.restore(resume=ID)

    assert used.folder.exists()
    assert fork.folder.exists()
    assert not empty.folder.exists()
    assert not str(found.path).startswith(str(used.folder))
    conversation.end(is_complete=True)
    fork.release()
    conversation, _ = await home.restore(resume=ID)
    assert not fork.folder.exists()
    conversation.end(is_complete=True)
    used.remove()


async def test_a_fork_reads_a_copy_and_leaves_nothing(home: Home) -> None:
    await home.store.append(home.key, [entry(1)])

    conversation, found = await home.restore(resume=ID, fork_session=True)

    assert found.path is None
    assert lines_of(found.resume) == [entry(1)]
    conversation.end(is_complete=False)
    assert home.copies == []


async def test_a_fork_of_the_own_file_resumes_it_by_its_id(home: Home) -> None:
    home.write(entry(1))

    _, found = await home.restore(resume=ID, fork_session=True)

    assert (found.resume, found.path) == (ID, None)


async def test_the_latest_conversation_is_found_in_the_store(home: Home) -> None:
    part: SessionKey = {"project_key": home.project_key, "session_id": OTHER}
    odd: SessionKey = {"project_key": home.project_key, "session_id": "odd"}
    await home.store.append(home.key, [{"type": "mode"}, entry(1)])
    await home.store.append(part, [entry(2, isSidechain=True)])
    await home.store.append(odd, [entry(3)])

    conversation, found = await home.restore(continue_conversation=True)

    assert lines_of(found.path) == [{"type": "mode"}, entry(1)]
    conversation.end(is_complete=True)


async def test_without_a_conversation_in_the_store_the_cli_finds_the_latest(home: Home) -> None:
    _, found = await home.restore(continue_conversation=True)

    assert found == Restored()


async def test_a_title_is_left_to_the_cli(home: Home) -> None:
    _, found = await home.restore(resume="A walk in the park")

    assert found == Restored()


async def test_a_path_is_resumed_as_it_is(home: Home) -> None:
    path = f"/elsewhere/{ID}.jsonl"

    _, found = await home.restore(resume=path)
    _, forked = await home.restore(resume=path, fork_session=True)

    assert found == Restored(path, path, home.key)
    assert (forked.resume, forked.path) == (path, None)


async def test_what_is_nowhere_is_not_found(home: Home) -> None:
    with pytest.raises(ResumeNotFound, match="in the session store, nor on this machine"):
        await home.restore(resume=ID)


def never(_number: int) -> float:
    return 100.0


def broken(_number: int) -> Exception:
    return ConnectionError("password=hunter2")


def breaks_off(number: int) -> Exception | None:
    """Fail when the copy is written, after the append and the first read."""
    return ConnectionError("no") if number > 2 else None


async def test_a_slow_store_is_not_waited_for_longer_than_load_timeout(home: Home) -> None:
    home.store = KeepingStore(never)

    with pytest.raises(StartupTimeout, match=r"within 0.05 s[^$]*raise load_timeout="):
        await home.restore(resume=ID, load_timeout=0.05)


async def test_the_failure_of_a_store_is_the_cause_of_a_clear_error(home: Home) -> None:
    home.store = KeepingStore(broken)

    with pytest.raises(StartupError, match="the session store failed") as caught:
        await home.restore(resume=ID)

    assert "hunter2" not in str(caught.value)
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_a_copy_that_could_not_be_written_is_removed(home: Home) -> None:
    home.store = KeepingStore(breaks_off)
    await home.store.append(home.key, [entry(1)])
    conversation = home.conversation(resume=ID)

    with pytest.raises(StartupError):
        await conversation.restore(ID)
    conversation.end(is_complete=True)

    assert home.copies == []


class Long(KeepingStore):
    """A store with a conversation of 40 MB, which it gives in chunks."""

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        for number in range(40):
            yield [entry(number, text="x" * 1_000_000)]


async def test_a_long_conversation_is_never_in_memory_as_a_whole(home: Home) -> None:
    home.store = Long()
    tracemalloc.start()
    try:
        conversation, found = await home.restore(resume=ID)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(lines_of(found.path)) == 40
    assert peak < 10_000_000
    conversation.end(is_complete=True)


@pytest.mark.parametrize("words", [{"resume": ID}, {"continue_conversation": True}])
def test_a_transport_to_another_machine_cannot_resume_from_a_store(words: dict[str, Any]) -> None:
    far = CommandTransport(("ssh", "host"))
    agent = Agent(session_store=MemoryStore())

    with pytest.raises(UsageError, match="a transport to another machine"):
        agent.session(transport=far, **words)
    agent.session(transport=far)


def test_a_file_must_have_the_name_of_its_conversation(tmp_path: Path) -> None:
    path = tmp_path / f"{OTHER}.jsonl"
    path.write_text('{"type":"mode"}\n' + json.dumps(entry(1, sessionId=ID)) + "\n")

    with pytest.raises(UsageError, match=f"the name of its conversation: {ID}.jsonl"):
        Agent(cli_path="/bin/true", inherit_env=False).session(resume=str(path))
