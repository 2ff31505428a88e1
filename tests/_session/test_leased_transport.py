"""Without a valid lease nothing is read from or written to a CLI."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from steersman._background import BackgroundTasks
from steersman._session.durable import SessionWork
from steersman._session.leased_transport import LeasedTransport
from steersman._session.leases import Leases
from steersman.errors import LeaseLost
from steersman.ports import Channel, Launch, Receiver

LOG = logging.getLogger("steersman.tests")


class Work:
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
    now, lost = [100.0], list[LeaseLost]()
    work = SessionWork(cast("Any", Work()), None, "me", "here", "token", 10.0)
    leases = Leases(work, lost.append, lambda *_: None, BackgroundTasks(LOG), clock=lambda: now[0])
    await leases.take("s")
    cli, reader = Cli(), Cli()

    channel = await LeasedTransport(cli, leases).open(Launch(("claude",)), cast("Receiver", reader))
    assert cli.receiver is not None
    channel.write(b"a")
    cli.receiver.data_received(b"b")
    now[0] = 109.5
    cli.receiver.data_received(b"c")
    channel.write(b"d")
    channel.resume()
    cli.receiver.exited(-9)
    with pytest.raises(LeaseLost):
        await LeasedTransport(cli, leases).open(Launch(("claude",)), cast("Receiver", reader))
    await leases.release()

    assert cli.seen == [("end_after", 9.0), ("write", b"a")]
    assert reader.seen == [("data_received", b"b"), ("exited", -9)]
    assert [each.session_id for each in lost] == ["s"]
