"""What the live tests of durable work share: hosts in processes of their own, and their asks."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from steersman import Agent, Allow, Session, TurnResult
from steersman.inbox import StoredInbox
from steersman.permissions import Ask
from steersman.stores import PostgresStore, SqliteStore
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call
from tests.live.staging import until
from tests.live.test_keys import config_of, is_stored

CUSTOMER, INVOICE = "customer 7", "invoice 7"
"""The key of the conversation, and that of its turn."""

HOST = """\
import asyncio, json, signal, sys
from contextlib import suppress
from steersman import Agent
from steersman.options import Park
from steersman.permissions import Policy
from tests.live.durable import store_at

async def main(given):
    rules = given.pop("policy")
    if given.pop("closes"):
        loop, mine = asyncio.get_running_loop(), asyncio.current_task()
        loop.add_signal_handler(signal.SIGTERM, mine.cancel)
    async with store_at(given.pop("store")) as store:
        park = Park(lease=given.pop("lease"), grace=given.pop("grace"))
        policy = Policy.from_toml(rules) if rules else None
        agent = Agent(inherit_env=False, inbox=store.inbox(), park=park, policy=policy, **given)
        async with agent.open("customer 7") as session:
            result = await (await session.send("pay", key="invoice 7"))
    if result.cause is not None:
        sys.exit(f"{result.outcome}: {result.cause.code}")

with suppress(asyncio.CancelledError):
    asyncio.run(main(json.loads(sys.argv[1])))
"""


def store_at(url: str) -> SqliteStore | PostgresStore:
    """The store of a URL, as the fixture `work_url` gives it."""
    path = url.removeprefix("sqlite://")
    return PostgresStore(url) if path == url else SqliteStore(path)


@asynccontextmanager
async def another_host(
    agent: Agent,
    store: str,
    *,
    closes: bool = False,
    lease: float = 30.0,
    grace: float = 5.0,
    errors: int | None = None,
    policy: str = "",
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A process that sends the prompt and waits; with `closes`, SIGTERM makes it close."""
    options = agent.options
    given: Mapping[str, Any] = {
        "cwd": str(options.cwd),
        "cli_path": str(options.cli_path),
        "env": dict(options.env),
        "store": store,
        "closes": closes,
        "lease": lease,
        "grace": grace,
        "policy": policy,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOST, json.dumps(given)), stderr=errors
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def write(box: CliSandbox, id_: str, text: str = "x") -> Step:
    """A call that the CLI asks about."""
    return call("Write", file_path=str(box.project / "paid"), content=text, id_=id_)


def append(box: CliSandbox, id_: str) -> Step:
    """A call that the CLI asks about, and that leaves a trace each time it runs."""
    return call("Bash", command=f"echo x >> {box.project / 'paid'}", id_=id_)


def paid(box: CliSandbox) -> str:
    """What the calls have written."""
    path = box.project / "paid"
    return path.read_text() if path.exists() else ""


async def next_ask(inbox: StoredInbox) -> Ask:
    """The first ask that is open, once there is one."""
    watch = inbox.watch()
    change = await anext(watch)
    await watch.aclose()
    return change.ask


async def asked(inbox: StoredInbox, count: int) -> None:
    """Return once `count` asks were opened."""
    async with aclosing(inbox.watch()) as watch:
        for _ in range(count):
            await anext(watch)


async def stands_in_file(agent: Agent, text: str) -> None:
    """Return once the CLI has written `text` into its own file."""
    await until(lambda: is_stored(text, config_of(agent.options.env)))


async def parked_turn(
    agent: Agent, store: SqliteStore | PostgresStore
) -> tuple[Session, TurnResult, Ask]:
    """A session that was parked while the first ask of its turn waits."""
    session = await agent.open(CUSTOMER)
    turn = await session.send("pay", key=INVOICE)
    ask = await next_ask(store.inbox())
    await session.park()
    return session, await turn, ask


async def goes_on(agent: Agent, *, again: bool = False, key: str = CUSTOMER) -> list[TurnResult]:
    """Open the conversation again, and take up its turns; or, with `again`, send its prompt."""
    async with agent.open(key) as session:
        turns = [await session.send("pay", key=INVOICE)] if again else await session.resume_turns()
        return [await turn for turn in turns]


async def goes_on_when_ready(agent: Agent, store: SqliteStore | PostgresStore) -> list[TurnResult]:
    """Wait until a conversation can go on, open it by its key, and take up its turns."""
    async with aclosing(store.ready()) as ready:
        conversation = await anext(ready)
    async with agent.open(conversation.key) as session:
        return [await turn for turn in await session.resume_turns()]


async def allow_all(inbox: StoredInbox, by: str = "ann") -> int:
    """Allow what is open; returns how many asks that were."""
    asks = await inbox.list()
    for ask in asks:
        await inbox.answer(ask, Allow(), by=by, seen=ask.digest)
    return len(asks)
