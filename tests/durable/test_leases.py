"""Leases of a session: renewed in time, and never used after their end."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from steersman._background import BackgroundTasks
from steersman.durable.leases import (
    RESERVE,
    LeasedTransport,
    Leases,
    SessionWork,
    new_lease,
    token_if_ended,
)
from steersman.errors import ChannelClosed, LeaseLost, SessionInUse, StoreError
from steersman.ports import Channel, DurableWork, Launch, Receiver
from steersman.testing.faults import VirtualClockLoop

LOG = logging.getLogger("steersman.tests")
SECONDS = 30.0


class Store:
    """A store with leases, in the time of the event loop."""

    def __init__(self) -> None:
        self.owners: dict[str, tuple[str, str, float]] = {}
        self.is_away = False
        self.defects: list[Exception] = []
        """What the next renewals raise."""
        self.delay = 0.0
        """Seconds until a lease that is taken is stored."""
        self.calls: list[tuple[str, float]] = []

    async def take(self, session: str, *, owner: str, token: str, seconds: float, **_: Any) -> None:
        await later(self.delay)
        now = self._called("take")
        has_it, whose, until = self.owners.get(session, ("", "", 0.0))
        if until > now and whose != token:
            raise SessionInUse("in use", owner=has_it, until=until)
        self.owners[session] = owner, token, now + seconds

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        now = self._called("renew")
        if self.defects:
            raise self.defects.pop(0)
        owner, whose, until = self.owners.get(session, ("", "", 0.0))
        if whose != token or until <= now:
            return False
        self.owners[session] = owner, token, now + seconds
        return True

    async def release(self, session: str, token: str) -> None:
        self._called("release")
        if self.owners.get(session, ("", ""))[1] == token:
            del self.owners[session]

    def _called(self, name: str) -> float:
        now = asyncio.get_running_loop().time()
        self.calls.append((name, now))
        if self.is_away:
            raise StoreError("the store is away")
        return now


class Owner:
    """The leases of a session, and what became of them."""

    def __init__(self, store: Store, owner: str = "me", token: str = "mine") -> None:
        self.lost: list[tuple[LeaseLost, float]] = []
        self.owns: dict[str, Callable[[], bool] | None] = {}
        self.token = token
        self.background = BackgroundTasks(LOG)
        self.stopped = 0.0
        """Seconds that this process was stopped."""
        loop = asyncio.get_running_loop()
        work = SessionWork(cast("DurableWork", store), None, owner, "here", token, SECONDS)
        self.leases = Leases(
            work,
            lambda error: self.lost.append((error, loop.time())),
            self._own,
            self.background,
            clock=lambda: loop.time() + self.stopped,
        )

    def _own(self, session: str, is_owner: Callable[[], bool] | None, token: str) -> None:
        assert token == ("" if is_owner is None else self.token)
        self.owns[session] = is_owner


async def later(seconds: float) -> None:
    """Let virtual time pass."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while clock() < until:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(until - clock())


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(run())


def test_a_lease_is_renewed_at_a_third_of_its_time_and_released() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        await owner.leases.take("s")
        await later(35)

        names = [(name, round(at)) for name, at in store.calls]
        assert names == [("take", 0), ("renew", 10), ("renew", 20), ("renew", 30)]
        assert owner.leases.check()
        assert store.owners["s"][2] == pytest.approx(60)
        await owner.leases.release()
        assert (store.owners, owner.lost, owner.owns) == ({}, [], {"s": None})

    in_virtual_time(test)


def test_a_lease_that_cannot_be_renewed_is_lost_before_it_is_over() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        await later(11)
        store.is_away = True
        await later(60)

        ((error, at),) = owner.lost
        until = store.owners["s"][2]
        assert until * 0.8 < at <= until - RESERVE * SECONDS + 1e-6
        assert "the store is away" in str(error)
        assert not owner.leases.check()
        is_owner = owner.owns["s"]
        assert is_owner is not None
        assert not is_owner()

    in_virtual_time(test)


def test_a_store_that_is_back_in_time_changes_nothing() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        await later(9)
        store.is_away = True
        await later(15)
        store.is_away = False
        await later(60)

        assert owner.lost == []
        assert owner.leases.check()
        await owner.leases.release()

    in_virtual_time(test)


def test_a_defect_of_the_store_costs_no_lease_and_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        store.defects = [RuntimeError("no such column"), ValueError("not a number")]
        await later(10.3)
        shown = owner.background.faults
        await later(60)

        assert shown == {"the lease of the conversation": "RuntimeError: no such column"}
        assert (owner.lost, owner.background.faults) == ([], {})
        assert owner.leases.check()
        await owner.leases.release()

    in_virtual_time(test)

    assert caplog.messages[0] == (
        "the lease of the conversation has failed: RuntimeError: no such column. It is started"
        " again in 0.5 s; until then it is not renewed, and its end will end the CLI."
    )


def test_a_lease_that_another_process_has_is_lost_at_once() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        store.owners["s"] = "another", "other", 1000.0
        await later(10.5)

        ((error, at),) = owner.lost
        assert ("another process has it" in str(error), round(at)) == (True, 10)
        await owner.leases.release()
        assert store.owners["s"][1] == "other"

    in_virtual_time(test)


def test_a_process_that_was_stopped_finds_out_with_its_first_look() -> None:
    async def test() -> None:
        owner = Owner(Store())
        await owner.leases.take("s")
        owner.stopped = SECONDS

        assert (owner.leases.check(), owner.leases.check()) == (False, False)
        assert len(owner.lost) == 1
        await owner.leases.release()

    in_virtual_time(test)


def test_the_next_owner_waits_as_long_as_it_wants_to() -> None:
    async def test() -> None:
        store = Store()
        first, second = Owner(store), Owner(store, "me too", "second")
        await first.leases.take("s")

        with pytest.raises(SessionInUse) as refused:
            await second.leases.take("s", wait=3)
        assert (refused.value.owner, refused.value.until) == ("me", SECONDS)
        assert 3 <= asyncio.get_running_loop().time() < 4
        with pytest.raises(ChannelClosed):
            await second.leases.take("s", lambda: True, wait=3)
        waiting = asyncio.ensure_future(second.leases.take("s", wait=100))
        await later(1)
        await first.leases.release()
        await waiting
        assert store.owners["s"][1] == "second"
        await second.leases.release()

    in_virtual_time(test)


def test_a_take_that_was_cancelled_leaves_no_lease() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        taking = asyncio.ensure_future(owner.leases.take("s"))
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait({taking})
        await owner.leases.release()

        assert store.owners == {}

    in_virtual_time(test)


def test_a_session_that_has_ended_takes_no_lease_again() -> None:
    async def test() -> None:
        store = Store()
        owner = Owner(store)
        await owner.leases.take("s")
        await owner.leases.release()

        with pytest.raises(ChannelClosed, match="has ended"):
            await owner.leases.take("s")
        await later(2 * SECONDS)

        assert store.owners == {}
        assert [name for name, _ in store.calls] == ["take", "release"]

    in_virtual_time(test)


def test_a_lease_that_is_taken_while_its_session_ends_is_given_up() -> None:
    async def test() -> None:
        store = Store()
        store.delay = 1.0
        owner = Owner(store)
        taking = asyncio.ensure_future(owner.leases.take("s"))
        await asyncio.sleep(0)
        store.delay = 0.0
        await owner.leases.release()
        with pytest.raises(ChannelClosed, match="has ended"):
            await taking
        await later(2 * SECONDS)

        assert store.owners == {}
        assert [name for name, _ in store.calls] == ["release", "take", "release"]

    in_virtual_time(test)


@pytest.mark.process
def test_the_lease_of_a_process_that_has_ended_here_is_free_at_once() -> None:
    given = "from steersman.durable.leases import new_lease; print(*new_lease('here'), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", given], capture_output=True, text=True, timeout=60, check=True
    )
    dead, token = done.stdout.splitlines()
    alive, _ = new_lease("here")

    async def test() -> None:
        store = Store()
        store.owners["s"] = dead, token, 1000.0
        owner = Owner(store)
        await owner.leases.take("s")
        assert store.owners["s"][1] == "mine"
        await owner.leases.release()

    in_virtual_time(test)
    assert token_if_ended(dead) == token
    assert [token_if_ended(each) for each in (alive, "", "somebody", f"process {os.getpid()}")] == [
        None
    ] * 4


def test_a_process_of_another_machine_may_run() -> None:
    owner, token = new_lease("there")
    boot, process, own = token.split("-")

    assert token_if_ended(owner.replace(boot, "0" * 12)) is None
    assert token_if_ended(owner.replace(process, "0" * 12)) == f"{boot}-{'0' * 12}-{own}"


# --- The transport -----------------------------------------------------------------------


class Free:
    """A store in which every lease is free."""

    async def take(self, _session: str, **_: Any) -> None:
        return None

    async def release(self, _session: str, _token: str) -> None:
        return None


class Cli:
    """A transport, and the channel to its CLI; also receives the CLI's output."""

    pid = 7

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.receiver: Receiver | None = None

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        assert launch.argv == ("claude",)
        self.receiver = receiver
        return cast("Channel", self)

    def __getattr__(self, name: str) -> Any:
        def note(*given: object) -> None:
            self.seen.append((name, *given))

        return note


async def test_after_the_end_of_the_lease_nothing_is_read_or_written() -> None:
    now, lost, launched = [100.0], list[LeaseLost](), list[str]()
    work = SessionWork(cast("Any", Free()), None, "me", "here", "token", 10.0)
    leases = Leases(work, lost.append, lambda *_: None, BackgroundTasks(LOG), clock=lambda: now[0])
    await leases.take("s")
    cli, reader = Cli(), Cli()
    transport = LeasedTransport(cli, leases, lambda: launched.append("a CLI"))

    channel = await transport.open(Launch(("claude",)), cast("Receiver", reader))
    assert cli.receiver is not None
    channel.write(b"a")
    cli.receiver.data_received(b"b")
    now[0] = 109.5
    cli.receiver.data_received(b"c")
    channel.write(b"d")
    channel.resume()
    cli.receiver.exited(-9)
    with pytest.raises(LeaseLost):
        await transport.open(Launch(("claude",)), cast("Receiver", reader))
    await leases.release()

    assert launched == ["a CLI"]
    assert cli.seen == [("end_after", 9.0), ("write", b"a")]
    assert reader.seen == [("data_received", b"b"), ("exited", -9)]
    assert [each.session_id for each in lost] == ["s"]
