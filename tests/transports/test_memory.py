"""How `MemoryTransport` treats its peer; the rest is in the contract."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.ports import Channel, Launch
from steersman.transports.memory import MemoryTransport, Wire

LAUNCH = Launch(("claude",))


class Ear:
    """A receiver that remembers, and may talk back."""

    def __init__(self) -> None:
        self.heard: list[bytes | tuple[str, bytes] | int] = []
        self.channel: Channel | None = None
        self.replies: list[bytes] = []
        self.gone = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        if self.replies and self.channel is not None:
            self.channel.write(self.replies.pop(0))

    def stderr_received(self, data: bytes) -> None:
        self.heard.append(("stderr", data))

    def exited(self, status: int) -> None:
        self.heard.append(status)
        self.gone.set()


class Mouth:
    """A peer that echoes, and leaves at the end of its input."""

    leaves = True

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.was_killed = 0
        self.wire: Wire | None = None

    def connected(self, launch: Launch, wire: Wire) -> None:
        self.wire = wire
        wire.write(b"ready")

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        assert self.wire is not None
        self.wire.write(b"echo " + data)

    def input_ended(self) -> None:
        self.heard.append(b"<end>")
        assert self.wire is not None
        if self.leaves:
            self.wire.exit(0)

    def killed(self) -> asyncio.Future[Any] | None:
        self.was_killed += 1
        return None


class Deaf(Mouth):
    leaves = False


async def connect(peer: Mouth) -> tuple[Ear, Channel]:
    ear = Ear()
    channel = ear.channel = await MemoryTransport(peer).open(LAUNCH, ear)
    return ear, channel


async def rounds(count: int = 4) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_nothing_is_handed_over_inside_a_call() -> None:
    peer = Mouth()
    ear, channel = await connect(peer)

    channel.write(b"a")
    said_at_once = (list(ear.heard), list(peer.heard))
    await rounds()

    assert said_at_once == ([], [])
    assert ear.heard == [b"ready", b"echo a"]
    channel.kill()
    await ear.gone.wait()


async def test_the_exit_comes_once_and_last() -> None:
    peer = Mouth()
    ear, channel = await connect(peer)
    assert peer.wire is not None

    peer.wire.write(b"last words")
    peer.wire.write_stderr(b"oops")
    peer.wire.exit(3)
    peer.wire.exit(4)
    peer.wire.write(b"from the grave")
    channel.kill()
    channel.write(b"anyone?")
    await rounds()

    assert ear.heard == [b"ready", b"last words", ("stderr", b"oops"), 3]
    assert peer.heard == []
    assert peer.was_killed == 0


async def test_a_deaf_peer_is_ended_after_the_grace() -> None:
    peer = Deaf()
    ear, channel = await connect(peer)

    channel.close(60)
    channel.close(0.01)
    channel.close(60)
    async with asyncio.timeout(5):
        await ear.gone.wait()

    assert ear.heard == [b"ready", -15]
    assert (peer.heard, peer.was_killed) == ([b"<end>"], 1)


async def test_a_peer_that_leaves_by_itself_is_not_ended() -> None:
    peer = Mouth()
    ear, channel = await connect(peer)

    channel.close(0)
    await ear.gone.wait()
    await rounds()

    assert ear.heard == [b"ready", 0]
    assert peer.was_killed == 0


async def test_a_kill_ends_it_now() -> None:
    peer = Deaf()
    ear, channel = await connect(peer)

    channel.write(b"never read")
    channel.kill()
    channel.kill()
    await ear.gone.wait()

    assert ear.heard == [b"ready", -9]
    assert (peer.heard, peer.was_killed) == ([], 1)


async def test_the_exit_waits_for_the_tasks_of_a_killed_peer() -> None:
    class Slow(Mouth):
        def killed(self) -> asyncio.Future[Any]:
            return asyncio.ensure_future(rounds(20))

    ear, channel = await connect(Slow())

    channel.kill()
    await ear.gone.wait()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_suspended_peer_neither_hears_nor_is_heard() -> None:
    peer = Mouth()
    ear, channel = await connect(peer)
    await rounds()

    channel.suspend()
    channel.write(b"a")
    assert peer.wire is not None
    peer.wire.write(b"b")
    await rounds()
    while_suspended = (list(ear.heard), list(peer.heard))
    channel.resume()
    await rounds()

    assert while_suspended == ([b"ready"], [])
    assert peer.heard == [b"a"]
    assert ear.heard == [b"ready", b"b", b"echo a"]
    channel.close(5)
    await ear.gone.wait()


async def test_it_has_no_process_id() -> None:
    ear, channel = await connect(Mouth())

    assert channel.pid is None
    channel.kill()
    await ear.gone.wait()
