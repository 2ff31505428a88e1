"""Sessions in PostgreSQL: a real server, which is restarted, stopped, and asked too late."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from steersman.errors import StoreError, StoreTooNew, UsageError
from steersman.permissions import Elicitation
from steersman.stores import PostgresStore
from steersman.stores._sql import sessions
from tests.inbox.places import an_ask
from tests.postgres import PostgresServer
from tests.stores.writing import KEY, batch_of

pytestmark = pytest.mark.process


async def test_a_store_goes_on_after_the_server_was_restarted(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        postgres_server.restart()
        await store.append(KEY, batch_of("a", 2))
        postgres_server.restart()
        found = await store.load(KEY)

    assert found == [*batch_of("a", 1), *batch_of("a", 2)]


async def test_a_server_that_is_gone_is_told_and_found_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        postgres_server.stop()
        try:
            for _ in range(2):
                with pytest.raises(StoreError, match="nothing of the batch was stored"):
                    await store.append(KEY, batch_of("a", 2))
        finally:
            postgres_server.start()
        await store.append(KEY, batch_of("a", 2))

        assert await store.load(KEY) == [*batch_of("a", 1), *batch_of("a", 2)]


async def test_a_server_that_does_not_answer_is_told_in_time_and_a_caller_may_leave(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
    async with PostgresStore(postgres_url, timeout=1.0) as store:
        await store.positions(KEY)
        backends = postgres_server.run(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND pid <> pg_backend_pid()"
        )
        stopped = [postgres_server.pid, *map(int, backends.split())]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):
                with pytest.raises(StoreError, match=r"did not answer within 1 s"):
                    await store.append(KEY, batch_of("a", 2))
                task = asyncio.ensure_future(store.load(KEY))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 2))
        found = await store.load(KEY) or []

    uuids = [entry.get("uuid") for entry in found if "uuid" in entry]
    assert len(uuids) == len(set(uuids)) == 8


def connections_of(store: Any) -> Any:
    """The connections on which a store reads and writes sessions."""
    return store._sessions._connections


class LosesTheAnswer:
    """A connection that is lost just after, or just before, a commit reaches the server."""

    def __init__(self, connection: Any, *, commits: bool) -> None:
        self._connection = connection
        self._commits = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, statement: Any, *values: Any, **how: Any) -> Any:
        if statement != "COMMIT":
            return await self._connection.execute(statement, *values, **how)
        if self._commits:
            await self._connection.execute(statement)
        self._connection.pgconn.finish()
        return await self._connection.execute(statement)


@contextmanager
def first_on(
    connections: Any,
    wrapped: Callable[[Any], Any],
    before_again: Callable[[], Awaitable[object]] | None = None,
) -> Iterator[list[bool]]:
    """Run the first piece of work on a connection that is wrapped; the seam is the network.

    `before_again` is awaited before work is repeated. Gives what says whether there was a first.
    """
    run, begun = connections.run, list[bool]()

    async def losing(work: Any) -> Any:
        async def once(connection: Any) -> Any:
            if begun:
                if before_again is not None:
                    await before_again()
                return await work(connection)
            begun.append(True)
            return await work(wrapped(connection))

        return await run(once)

    connections.run = losing
    yield begun
    connections.run = run


def loses_the_answer(*, commits: bool) -> Callable[[Any], Any]:
    return lambda connection: LosesTheAnswer(connection, commits=commits)


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
async def test_a_commit_whose_answer_was_lost_is_looked_up_and_not_done_twice(
    postgres_url: str, *, commits: bool
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        with first_on(connections_of(store), loses_the_answer(commits=commits)) as lost:
            await store.append(KEY, batch_of("a", 2))

        # Entries without a uuid would tell.
        assert await store.load(KEY) == [*batch_of("a", 1), *batch_of("a", 2)]
        assert lost == [True]


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
async def test_a_deletion_that_was_not_confirmed_is_not_known_and_can_be_repeated(
    postgres_url: str, *, commits: bool
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        connections = connections_of(store)
        run = connections.run

        async def losing(work: Any) -> Any:
            return await run(lambda connection: work(LosesTheAnswer(connection, commits=commits)))

        connections.run = losing  # the seam is the network
        with pytest.raises(StoreError, match="not known whether the change was stored") as lost:
            await store.delete(KEY)
        connections.run = run
        is_there = await store.load(KEY) is not None
        await store.delete(KEY)

        assert "nothing of the batch was stored" not in str(lost.value)
        assert is_there is not commits
        assert await store.load(KEY) is None


async def test_a_session_that_others_begin_anew_after_a_delete_is_not_deleted_again(
    postgres_url: str,
) -> None:
    async with PostgresStore(postgres_url) as store, PostgresStore(postgres_url) as other:
        await store.append(KEY, batch_of("a", 1))

        def others() -> Awaitable[None]:
            return other.append(KEY, batch_of("b", 1))

        with first_on(connections_of(store), loses_the_answer(commits=True), others):
            await store.delete(KEY)

        assert await store.load(KEY) == batch_of("b", 1)


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "rolled back"])
@pytest.mark.parametrize("turn", [None, "u1"])
async def test_an_ask_whose_commit_was_not_confirmed_is_stored_once(
    postgres_url: str, turn: str | None, *, commits: bool
) -> None:
    store = PostgresStore(postgres_url, timeout=5.0)
    rows = store.asks
    ask = an_ask(Elicitation(mcp_server_name="far", message="Who?"), turn=turn)
    connections = cast("Any", rows)._database._connections
    with first_on(connections, loses_the_answer(commits=commits)) as lost:
        row = await rows.open(ask, None, ())
    # As after an error: the host stores what it has not seen stored.
    again = await rows.open(ask, None, ())
    another = await rows.open(ask, None, {row.number} if row else ())
    stored = await rows.open_ones()
    await store.aclose()

    assert row is not None
    assert (lost, again, row.ask.id) == ([True], row, ask.id)
    # One that this process awaits is another request of the same id.
    assert another is not None
    assert another.ask.id == f"{ask.id}~2"
    assert [each.number for each in stored] == [row.number, another.number]


class Crashes(LosesTheAnswer):
    """A connection whose server crashes before a commit, and gives transaction ids again."""

    def __init__(self, connection: Any, server: PostgresServer, loop: Any) -> None:
        super().__init__(connection, commits=False)
        self._server = server
        self._loop = loop

    async def execute(self, statement: Any, *values: Any, **how: Any) -> Any:
        if statement == "COMMIT":
            # In the thread of the test: the server ends with the thread that has started it.
            crash = asyncio.run_coroutine_threadsafe(self._crash(), self._loop)
            await asyncio.wrap_future(crash)
        return await super().execute(statement, *values, **how)

    async def _crash(self) -> None:
        self._server.restart()
        for _ in range(8):
            self._server.run("SELECT pg_current_xact_id()")


async def test_what_a_crash_has_rolled_back_is_written_again(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        postgres_server.run("CHECKPOINT")
        loop = asyncio.get_running_loop()

        def crashing(connection: Any) -> Crashes:
            return Crashes(connection, postgres_server, loop)

        with first_on(connections_of(store), crashing) as lost:
            await store.append(KEY, batch_of("a", 2))

        assert await store.load(KEY) == [*batch_of("a", 1), *batch_of("a", 2)]
        assert lost == [True]


async def test_a_batch_that_others_have_followed_is_not_written_twice(postgres_url: str) -> None:
    async with PostgresStore(postgres_url) as store, PostgresStore(postgres_url) as other:
        await store.append(KEY, batch_of("a", 1))

        def others() -> Awaitable[None]:
            return other.append(KEY, batch_of("b", 1))

        with first_on(connections_of(store), loses_the_answer(commits=True), others):
            await store.append(KEY, batch_of("a", 2))

        wanted = [*batch_of("a", 1), *batch_of("a", 2), *batch_of("b", 1)]
        assert await store.load(KEY) == wanted


async def test_a_commit_that_cannot_be_looked_up_is_reported_as_not_known(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("a", 1))
        connections = connections_of(store)
        run = connections.run

        async def losing(work: Any) -> Any:
            async def once(connection: Any) -> Any:
                lost = LosesTheAnswer(connection, commits=True)
                try:
                    return await work(lost)
                finally:
                    postgres_server.stop(immediate=True)

            return await run(once)

        connections.run = losing  # the seam is the network
        try:
            with pytest.raises(StoreError, match="not known whether the change was stored"):
                await store.append(KEY, batch_of("a", 2))
        finally:
            postgres_server.start()
        connections.run = run

        assert await store.load(KEY) == [*batch_of("a", 1), *batch_of("a", 2)]


async def test_tables_of_a_later_release_are_refused(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, [{"type": "x"}])
    schema = postgres_url.rpartition("%3D")[2]
    postgres_server.run(f"UPDATE {schema}.steersman_schema SET version = 999")

    store = PostgresStore(postgres_url)
    with pytest.raises(StoreTooNew, match="tables of version 999"):
        await store.append(KEY, [{"type": "x"}])
    await store.aclose()


async def test_stores_that_begin_at_once_create_the_tables_once(postgres_url: str) -> None:
    stores = [PostgresStore(postgres_url) for _ in range(6)]

    await asyncio.gather(
        *(store.append(KEY, batch_of("x", number)) for number, store in enumerate(stores))
    )

    assert await stores[0].positions(KEY) == 30
    for store in stores:
        await store.aclose()


SECRET = "s3cr:t/p%w@rd"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:s3cr%3At%2Fp%25w%40rd@127.0.0.1:1/db",
        "postgresql://user@127.0.0.1:1/db?password=s3cr%3At%2Fp%25w%40rd",
        "postgresql://user:s3cr%3At%2Fp%25w%40rd@/db?host=/nowhere",
        "postgresql://user:s3cr%3At%2Fp%25w%40rd@localhost:99999999/db",
    ],
)
async def test_no_secret_of_the_url_is_in_an_error_or_a_repr(url: str) -> None:
    store = PostgresStore(url, timeout=5)
    with pytest.raises(StoreError) as caught:
        await store.load(KEY)

    shown = "".join(traceback.format_exception(caught.value)) + repr(store) + repr(vars(store))
    error: BaseException | None = caught.value
    while error is not None:
        shown += f"{error!r} {error} {vars(error)}"
        error = error.__cause__ or error.__context__
    assert SECRET not in shown
    assert "s3cr" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3cr3t",
        "mysql://u:s3cr3t@h/d",
        "postgresql://u:s3cr3t@h:p@/x y%zz",
        "host=h password=s3cr3t",
    ],
)
def test_what_is_no_url_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(UsageError, match="url") as caught:
        PostgresStore(url)

    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert "s3cr3t" not in shown
    assert caught.value.__context__ is None


async def test_a_table_that_the_user_may_not_write_is_told(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    schema = postgres_url.rpartition("%3D")[2]
    postgres_server.run(f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader")
    store = PostgresStore(postgres_url.replace("tester@", "reader@"))

    with pytest.raises(StoreError, match="permission denied"):
        await store.append(KEY, [{"type": "x"}])

    await store.aclose()
    postgres_server.run("DROP OWNED BY reader; DROP ROLE reader")


async def test_a_large_batch_is_sent_in_portions_and_stays_one_batch(postgres_url: str) -> None:
    text = "x" * (sessions.MOST_SENT // 3)
    entries: list[Any] = [{"type": "x", "uuid": str(number), "text": text} for number in range(4)]
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, entries)
        await store.append(KEY, [*entries, {"type": "last"}])

        assert await store.load(KEY) == [*entries, {"type": "last"}]


async def test_a_forked_process_leaves_the_connections_of_its_parent(postgres_url: str) -> None:
    async with PostgresStore(postgres_url) as store:
        await store.append(KEY, batch_of("parent", 1))
        child = os.fork()
        if child == 0:
            # Nothing of the parent's event loop or of pytest may run here.
            status = 1
            try:
                asyncio.events._set_running_loop(None)
                asyncio.run(store.append(KEY, batch_of("child", 1)))
                status = 0
            finally:
                os._exit(status)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        await store.append(KEY, batch_of("parent", 2))

        assert os.waitstatus_to_exitcode(status) == 0
        wanted = [*batch_of("parent", 1), *batch_of("child", 1), *batch_of("parent", 2)]
        assert await store.load(KEY) == wanted


@pytest.mark.parametrize("connections", [1, 0, -1, True, 2.5, "4"])
def test_connections_are_a_number_of_two_or_more(connections: Any) -> None:
    with pytest.raises(UsageError, match="connections"):
        PostgresStore("postgresql://u@h/d", connections=connections)


async def test_a_store_has_no_more_connections_than_it_may(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    url = f"{postgres_url}&application_name=counted"
    async with PostgresStore(url, connections=2) as store:
        watching = asyncio.Task(anext(store.ready()))
        inbox = store.inbox()
        await asyncio.gather(
            *(store.append(KEY, batch_of("a", number)) for number in range(8)),
            *(inbox.list() for _ in range(8)),
        )
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'"
        async with asyncio.timeout(30):
            # The one for notifications may still be made.
            while (count := int(postgres_server.run(asked))) < 3:  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.05)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    assert count == 3
