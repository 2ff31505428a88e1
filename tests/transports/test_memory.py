"""How `MemoryTransport` calls its peer. The contract test covers the rest."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.ports import Channel, Launch
from steersman.transports.memory import MemoryTransport, Wire

LAUNCH = Launch(("claude",))


class Receiver:
    """A receiver that keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[bytes | tuple[str, bytes] | int] = []
        self.exit_seen = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.received.append(data)

    def stderr_received(self, data: bytes) -> None:
        self.received.append(("stderr", data))

    def exited(self, status: int) -> None:
        self.received.append(status)
        self.exit_seen.set()


class EchoPeer:
    """A peer that echoes its input, and exits at the end of it."""

    exits = True

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.was_killed = 0
        self.wire: Wire | None = None

    def connected(self, launch: Launch, wire: Wire) -> None:
        self.wire = wire
        wire.write(b"ready")

    def data_received(self, data: bytes) -> None:
        self.received.append(data)
        assert self.wire is not None
        self.wire.write(b"echo " + data)

    def input_ended(self) -> None:
        self.received.append(b"<end>")
        assert self.wire is not None
        if self.exits:
            self.wire.exit(0)

    def killed(self) -> asyncio.Future[Any] | None:
        self.was_killed += 1
        return None


class StubbornPeer(EchoPeer):
    exits = False


async def connect(peer: EchoPeer) -> tuple[Receiver, Channel]:
    receiver = Receiver()
    channel = await MemoryTransport(peer).open(LAUNCH, receiver)
    return receiver, channel


async def rounds(count: int = 4) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_nothing_is_delivered_inside_a_call() -> None:
    peer = EchoPeer()
    receiver, channel = await connect(peer)

    channel.write(b"a")
    at_once = (list(receiver.received), list(peer.received))
    await rounds()

    assert at_once == ([], [])
    assert receiver.received == [b"ready", b"echo a"]
    channel.kill()
    await receiver.exit_seen.wait()


async def test_the_exit_comes_once_and_last() -> None:
    peer = EchoPeer()
    receiver, channel = await connect(peer)
    assert peer.wire is not None

    peer.wire.write(b"last line")
    peer.wire.write_stderr(b"oops")
    peer.wire.exit(3)
    peer.wire.exit(4)
    peer.wire.write(b"too late")
    channel.kill()
    channel.write(b"too late")
    await rounds()

    assert receiver.received == [b"ready", b"last line", ("stderr", b"oops"), 3]
    assert peer.received == []
    assert peer.was_killed == 0


async def test_a_peer_that_ignores_the_end_of_input_is_ended_after_the_grace() -> None:
    peer = StubbornPeer()
    receiver, channel = await connect(peer)

    channel.close(60)
    channel.close(0.01)
    channel.close(60)
    async with asyncio.timeout(5):
        await receiver.exit_seen.wait()

    assert receiver.received == [b"ready", -15]
    assert (peer.received, peer.was_killed) == ([b"<end>"], 1)


async def test_a_peer_that_exits_by_itself_is_not_ended() -> None:
    peer = EchoPeer()
    receiver, channel = await connect(peer)

    channel.close(0)
    await receiver.exit_seen.wait()
    await rounds()

    assert receiver.received == [b"ready", 0]
    assert peer.was_killed == 0


async def test_a_kill_ends_it_now() -> None:
    peer = StubbornPeer()
    receiver, channel = await connect(peer)

    channel.write(b"never read")
    channel.kill()
    channel.kill()
    await receiver.exit_seen.wait()

    assert receiver.received == [b"ready", -9]
    assert (peer.received, peer.was_killed) == ([], 1)


async def test_the_exit_waits_for_the_tasks_of_a_killed_peer() -> None:
    class Slow(EchoPeer):
        def killed(self) -> asyncio.Future[Any]:
            return asyncio.ensure_future(rounds(20))

    receiver, channel = await connect(Slow())

    channel.kill()
    await receiver.exit_seen.wait()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_suspended_peer_neither_receives_nor_sends() -> None:
    peer = EchoPeer()
    receiver, channel = await connect(peer)
    await rounds()

    channel.suspend()
    channel.write(b"a")
    assert peer.wire is not None
    peer.wire.write(b"b")
    await rounds()
    while_suspended = (list(receiver.received), list(peer.received))
    channel.resume()
    await rounds()

    assert while_suspended == ([b"ready"], [])
    assert peer.received == [b"a"]
    assert receiver.received == [b"ready", b"b", b"echo a"]
    channel.close(5)
    await receiver.exit_seen.wait()


async def test_it_has_no_process_id() -> None:
    receiver, channel = await connect(EchoPeer())

    assert channel.pid is None
    channel.kill()
    await receiver.exit_seen.wait()
