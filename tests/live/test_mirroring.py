"""What the stock CLI writes reaches a session store, and the conversation goes on from there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from examples import two_machines
from steersman import Agent, Session
from steersman.messages import MirrorError
from steersman.options import Revival
from steersman.ports import SessionStore
from steersman.stores import MemoryStore, PostgresStore, SqliteStore
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, stall
from steersman.transcripts.keys import (
    SessionKey,
    SessionStoreEntry,
    SessionSummaryEntry,
    project_key,
)
from tests.keeping_store import KeepingStore, healthy
from tests.live.staging import LIMIT, MakeScripted, collect, first_words, until

pytestmark = pytest.mark.live

TASK = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
LOOK = call("Agent", TASK, run_in_background=False, id_="look")
QUICK = Revival(backoff=0.01)


def script(*steps: Any) -> Script:
    """A script whose subagent sees nothing."""
    return Script(*steps, strict=True).branch("look around", say("Nothing."))


class Listening(MemoryStore):
    """A store that records what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[SessionKey] = []
        self.entries: list[SessionStoreEntry] = []

    async def append(self, key: SessionKey, entries: Any) -> None:
        self.keys.append(key)
        self.entries += entries
        await super().append(key, entries)


def elsewhere(agent: Agent, sandbox: CliSandbox) -> dict[str, str]:
    """The environment of another home, which is empty."""
    home = sandbox.root / "elsewhere"
    return {**agent.options.env, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "config")}


def copies(sandbox: CliSandbox) -> list[Path]:
    """Everything that is left of private copies."""
    return list(sandbox.root.rglob("resumed-*"))


def written(files: Path) -> dict[str, list[Any]]:
    """What the CLI has written to its files, without what it does not report, by subpath."""
    found: dict[str, list[Any]] = {}
    for path in files.rglob("*.jsonl"):
        entries = [json.loads(line) for line in path.read_bytes().splitlines()]
        kept = [each for each in entries if not each["type"].startswith("api-request")]
        # Below `projects/<project key>/<session id>`.
        found["/".join(path.relative_to(files).with_suffix("").parts[3:])] = kept
    return found


async def stored(
    store: SessionStore, sandbox: CliSandbox, session: Session
) -> dict[str, list[Any]]:
    """What a store has of a session, without what its subagents are, by subpath."""
    project, name = project_key(str(sandbox.project)), session.id or ""
    subpaths = await store.list_subkeys({"project_key": project, "session_id": name})
    main: SessionKey = {"project_key": project, "session_id": name}
    found: dict[str, list[Any]] = {"": list(await store.load(main) or ())}
    for subpath in subpaths:
        entries = await store.load({**main, "subpath": subpath}) or ()
        found[subpath] = [each for each in entries if each["type"] != "agent_metadata"]
    return found


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store that several machines can use; on one of them, with SQLite."""
    if request.param == "sqlite":
        made: SqliteStore | PostgresStore = SqliteStore(tmp_path / "sessions.db")
    else:
        made = PostgresStore(request.getfixturevalue("postgres_url"))
    yield made
    await made.aclose()


async def test_a_conversation_goes_on_in_an_empty_home_and_survives_a_kill_there(
    scripted: MakeScripted, sandbox: CliSandbox, store: SqliteStore | PostgresStore
) -> None:
    agent, model = scripted(
        script(LOOK, say("Hello, Ann."), say("Half ") + stall(), say("Half and all."), say("Ann.")),
        session_store=store,
        revive=QUICK,
        allowed_tools=["Agent"],
    )
    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await first.run("I am Ann.")
        async with agent.session(resume=first.id, env=elsewhere(agent, sandbox)) as second:
            (copy,) = copies(sandbox)
            begun = written(copy)
            turn = await second.send("Who am I?", key="who")
            await first_words(turn, "Half")
            os.kill(second.pid or 0, signal.SIGKILL)
            answer = await turn
            again = await (await second.send("Who am I?", key="who"))
            await second.wait_idle(5)
            files = written(copy)
        left = copies(sandbox)
        async with agent.session(resume=first.id) as third:
            last = await third.run("And here?")

    assert (answer.text, second.restarts, again.text) == ("Half and all.", 1, "Half and all.")
    assert len(begun) == 2
    assert left == copies(sandbox) == []
    said = [str(each.body["messages"]) for each in model.asked]
    assert all("I am Ann." in each and "Hello, Ann." in each for each in said[3:])
    assert "Half and all." in said[-1]
    assert last.text == "Ann."
    kept = await stored(store, sandbox, second)
    assert kept[""][: len(files[""])] == files[""]
    assert kept.keys() == begun.keys() == files.keys()
    assert all(kept[each] == files[each] for each in files if each)


async def test_a_store_that_is_gone_is_told_of_and_complete_when_it_is_back(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    is_gone = True
    store = KeepingStore(lambda _: ConnectionError("no route") if is_gone else None)
    agent, _model = scripted(
        script(LOOK, say("One."), say("Two.")), session_store=store, allowed_tools=["Agent"]
    )
    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.run("one")
        error = await anext(
            each async for each in session.messages() if isinstance(each, MirrorError)
        )
        is_gone = False
        await until(lambda: bool(store.kept))
        between = await stored(store, sandbox, session), written(sandbox.config)
        second = await session.run("two")

    assert (first.text, second.text) == ("One.", "Two.")
    assert error.session_id == session.id
    assert error.key is not None
    assert "ConnectionError; the file has them" in error.error
    assert between[0][""] == between[1][""][: len(between[0][""])]
    assert await stored(store, sandbox, session) == written(sandbox.config)


def one_of_three(number: int) -> Exception | None:
    return ConnectionError("no route") if number % 3 == 0 else None


@pytest.mark.parametrize("flush", ["batched", "eager"])
async def test_a_store_that_fails_one_append_of_three_is_complete_in_the_end(
    scripted: MakeScripted, sandbox: CliSandbox, flush: Literal["batched", "eager"]
) -> None:
    store = KeepingStore(one_of_three)
    steps = script(LOOK, call("Bash", command="echo hi"), say("Looked."), say("Again."))
    agent, _model = scripted(
        steps, session_store=store, session_store_flush=flush, allowed_tools=["Agent", "Bash"]
    )
    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.run("look")
        await session.run("again")

    store.fault = healthy
    assert await stored(store, sandbox, session) == written(sandbox.config)
    assert len(written(sandbox.config)) == 2
    assert [
        each for each in await collect(session.messages()) if isinstance(each, MirrorError)
    ] == []


HOST = """\
import asyncio, json, sys
from steersman import Agent
from steersman.stores import SqliteStore

async def main():
    path, given = sys.argv[1], json.loads(sys.argv[2])
    session = await Agent(inherit_env=False, session_store=SqliteStore(path), **given).start()
    await session.run("one")
    turn = await session.send("two")
    async for text in turn.text():
        print(session.id, flush=True)
    await turn

asyncio.run(main())
"""


async def test_after_a_killed_host_the_next_opener_appends_what_the_store_lacks(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    call_it = call("Bash", command="echo hi")
    agent, _model = scripted(
        say("One."), call_it, say("Half ") + stall(), say("Half and all."), allowed_tools=["Bash"]
    )
    options, path = agent.options, str(tmp_path / "sessions.db")
    given: dict[str, Any] = {"cwd": str(options.cwd), "cli_path": str(options.cli_path)}
    given |= {"env": dict(options.env), "allowed_tools": ["Bash"]}
    async with asyncio.timeout(LIMIT):
        host = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOST, path, json.dumps(given), stdout=asyncio.subprocess.PIPE
        )
        assert host.stdout is not None
        name = (await host.stdout.readline()).decode().strip()
        # The CLI writes its files a little later than it reports.
        while not any(b"echo hi" in each.read_bytes() for each in sandbox.config.rglob("*.jsonl")):  # noqa: ASYNC110 - a file sets no event
            await asyncio.sleep(0.01)
        host.kill()
        await host.wait()
        store = SqliteStore(path)
        async with agent.session(resume=name, session_store=store) as session:
            before = written(sandbox.config)
            await until_equal(store, sandbox, session, before)

    assert "echo hi" in str(before[""])
    assert await stored(store, sandbox, session) == written(sandbox.config)
    await store.aclose()


async def until_equal(
    store: SessionStore, sandbox: CliSandbox, session: Session, files: dict[str, list[Any]]
) -> None:
    """Return once the store has what was in the files."""
    while (await stored(store, sandbox, session))[""][: len(files[""])] != files[""]:  # noqa: ASYNC110 - a store sets no event
        await asyncio.sleep(0.01)


async def test_the_example_goes_on_elsewhere_and_so_does_continue_conversation(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    async with asyncio.timeout(LIMIT), two_machines.open_store(str(tmp_path / "db")) as store:
        steps = (say("One."), say("You are Ann."), say("Three."))
        agent, model = scripted(*steps, session_store=store)
        other = Agent(agent.options, env=elsewhere(agent, sandbox))
        await two_machines.ask(agent, "customer 7", "I am Ann.")
        answer = await two_machines.ask(other, "customer 7", "Who am I?")
        async with other.session(continue_conversation=True) as third:
            name = third.id
            await third.run("And now?")

    assert answer == "You are Ann."
    assert name == third.id
    assert all("I am Ann." in str(each.body["messages"]) for each in model.asked)
    assert copies(sandbox) == []


async def test_a_fork_of_a_stored_conversation_survives_a_kill(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    store = MemoryStore()
    agent, model = scripted(
        say("One."),
        say("Half ") + stall(),
        say("Half and all."),
        say("Branch."),
        session_store=store,
    )
    env = elsewhere(agent, sandbox)
    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await first.run("I am Ann.")
        async with agent.session(resume=first.id, fork_session=True, env=env) as fork:
            turn = await fork.send("And?")
            await first_words(turn, "Half")
            projects = sandbox.root / "elsewhere" / "config" / "projects"
            await until(lambda: any("And?" in each.read_text() for each in projects.glob("*/*")))
            os.kill(fork.pid or 0, signal.SIGKILL)
            answer = await turn
        async with agent.session(resume=first.id, env=env) as again, again.fork() as branch:
            await branch.run("Another way?")

    assert (answer.text, fork.restarts) == ("Half and all.", 1)
    assert len({first.id, fork.id, branch.id}) == 3
    assert all("I am Ann." in str(each.body["messages"]) for each in model.asked)
    assert "And?" not in str(model.asked[-1].body["messages"])
    kept = await stored(store, sandbox, fork)
    assert any("Half and all." in str(each) for each in kept[""])
    assert copies(sandbox) == []


async def test_a_file_given_by_its_path_is_resumed_revived_and_rewound(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        say("One."),
        say("Paid.") + stall(),
        say("Paid. All."),
        say("Wrong."),
        say("Right."),
        revive=QUICK,
    )
    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await first.run("I am Ann.")
        (old,) = (sandbox.config / "projects").glob("*/*.jsonl")
        path = sandbox.root / "moved" / old.name
        path.parent.mkdir()
        old.rename(path)
        async with agent.session(resume=str(path)) as second:
            assert (second.id, second.is_saved) == (first.id, True)
            turn = await second.send("pay", key="invoice 7")
            await first_words(turn, "Paid.")
            os.kill(second.pid or 0, signal.SIGKILL)
            paid = await turn
            point = second.checkpoint()
            await second.run("wrong way")
            await second.wait_idle(5)
            await second.rewind(point)
            await second.run("right way")
        async with agent.session(resume=str(path)) as third:
            again = await (await third.send("pay", key="invoice 7"))

    assert (paid.text, again.text, again.cost_usd) == ("Paid. All.", "Paid. All.", 0.0)
    assert not list(sandbox.config.glob("projects/*/*.jsonl"))
    last = str(model.asked[-1].body["messages"])
    assert "I am Ann." in last
    assert "wrong way" not in last


async def test_what_a_store_is_given_and_gives_back_has_the_keys_of_its_types(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    store = Listening()
    agent, _model = scripted(say("hello"), session_store=store)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.run("go")
    kept = await store.list_session_summaries(project_key(str(sandbox.project)))

    assert {name for key in store.keys for name in key} <= set(SessionKey.__annotations__)
    for key in store.keys:
        assert set(key) >= SessionKey.__required_keys__
    for entry in store.entries:
        assert set(entry) >= SessionStoreEntry.__required_keys__
    assert [set(each) for each in kept] == [set(SessionSummaryEntry.__annotations__)]
    assert [each["session_id"] for each in kept] == [session.id]
