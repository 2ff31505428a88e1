"""The contracts of the ports, as checks for any adapter.

A contract is an async function of a factory that raises `AssertionError`. A test runs all of them:

    @pytest.mark.parametrize("contract", TRANSPORT_CONTRACTS, ids=contract_name)
    async def test_my_transport(contract: TransportContract) -> None:
        await contract(make_my_transport)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steersman._json import JsonDict
from steersman.journal import Entry, Kind
from steersman.ports import Caller, Launch, Sink, ToolServer, Transport

__all__ = [
    "SINK_CONTRACTS",
    "TOOL_SERVER_CONTRACTS",
    "TRANSPORT_CONTRACTS",
    "MakeSink",
    "MakeToolServer",
    "MakeTransport",
    "SinkContract",
    "ToolServerContract",
    "TransportContract",
    "contract_name",
]

PATIENCE = 10.0
GRACE = 5.0

MakeTransport = Callable[[], tuple[Transport, Launch]]
"""Returns a transport, and the launch of a program that copies stdin to stdout, as `cat` does."""
MakeSink = Callable[[], Sink]
MakeToolServer = Callable[[], ToolServer]
"""Returns an MCP server with at least one tool."""

TransportContract = Callable[[MakeTransport], Awaitable[None]]
SinkContract = Callable[[MakeSink], Awaitable[None]]
ToolServerContract = Callable[[MakeToolServer], Awaitable[None]]


def contract_name(contract: object) -> str:
    """Return the name of a contract, for the id of a test."""
    return str(getattr(contract, "__name__", contract))


# --- Transport ---------------------------------------------------------------------------


class _Receiver:
    """Records what a transport delivers, and fails if it delivers after the exit."""

    def __init__(self) -> None:
        self.out = b""
        self.statuses: list[int] = []
        self._exited = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        assert not self.statuses, "stdout was delivered after the exit"
        self.out += data

    def stderr_received(self, data: bytes) -> None:
        assert not self.statuses, f"stderr was delivered after the exit: {data!r}"

    def exited(self, status: int) -> None:
        self.statuses.append(status)
        self._exited.set()

    async def exit(self) -> int:
        """Wait for the exit, and for a second one that must not come; return the status."""
        async with asyncio.timeout(PATIENCE):
            await self._exited.wait()
        await asyncio.sleep(0)
        assert len(self.statuses) == 1, f"the exit was reported several times: {self.statuses}"
        return self.statuses[0]


async def what_is_written_arrives_in_order(make: MakeTransport) -> None:
    """Every write reaches the program, in order and before the end of its input."""
    transport, launch = make()
    receiver = _Receiver()
    lines = [b'{"line": %d}\n' % number for number in range(200)]

    channel = await transport.open(launch, receiver)
    for line in lines:
        channel.write(line)
    channel.end_input()

    assert await receiver.exit() == 0
    assert receiver.out == b"".join(lines)


async def close_ends_the_program(make: MakeTransport) -> None:
    """`close` ends a program that waits for input; a second call changes nothing."""
    transport, launch = make()
    receiver = _Receiver()

    channel = await transport.open(launch, receiver)
    channel.close(GRACE)
    channel.close(GRACE)

    await receiver.exit()


async def kill_ends_the_program(make: MakeTransport) -> None:
    """`kill` ends the program, and the exit is reported once."""
    transport, launch = make()
    receiver = _Receiver()

    channel = await transport.open(launch, receiver)
    channel.kill()
    channel.kill()

    assert await receiver.exit() != 0


async def a_suspended_program_can_be_resumed(make: MakeTransport) -> None:
    """After `suspend` and `resume` the program continues with the input that it got meanwhile."""
    transport, launch = make()
    receiver = _Receiver()

    channel = await transport.open(launch, receiver)
    channel.suspend()
    channel.write(b"{}\n")
    channel.resume()
    channel.end_input()

    assert await receiver.exit() == 0
    assert receiver.out == b"{}\n"


async def calls_after_the_exit_are_ignored(make: MakeTransport) -> None:
    """Every method of a channel may be called after the exit, and does nothing."""
    transport, launch = make()
    receiver = _Receiver()
    channel = await transport.open(launch, receiver)
    channel.end_input()
    await receiver.exit()

    channel.write(b"{}\n")
    channel.end_input()
    channel.suspend()
    channel.resume()
    channel.close(0.0)
    channel.kill()

    assert await receiver.exit() == 0
    assert channel.pid is None or channel.pid > 0


async def one_transport_runs_several_programs(make: MakeTransport) -> None:
    """Two programs of one transport do not share their data."""
    transport, launch = make()
    receivers = [_Receiver(), _Receiver()]

    channels = [await transport.open(launch, receiver) for receiver in receivers]
    for number, channel in enumerate(channels):
        channel.write(b"%d\n" % number)
        channel.end_input()

    assert [await receiver.exit() for receiver in receivers] == [0, 0]
    assert [receiver.out for receiver in receivers] == [b"0\n", b"1\n"]


TRANSPORT_CONTRACTS: tuple[TransportContract, ...] = (
    what_is_written_arrives_in_order,
    close_ends_the_program,
    kill_ends_the_program,
    a_suspended_program_can_be_resumed,
    calls_after_the_exit_are_ignored,
    one_transport_runs_several_programs,
)


# --- Sink --------------------------------------------------------------------------------


def _entries(first: int, count: int) -> list[Entry]:
    return [
        Entry(number, 1.0 * number, Kind.NOISE, b"line %d" % number)
        for number in range(first, first + count)
    ]


async def a_sink_takes_entries_in_batches(make: MakeSink) -> None:
    """A sink accepts batches of any size, also empty ones, and can be closed."""
    sink = make()

    sink.write(_entries(1, 3))
    sink.write([])
    sink.write(_entries(4, 1))
    sink.close()


async def a_sink_may_be_closed_twice(make: MakeSink) -> None:
    """`close` may be called any number of times, also without an entry."""
    sink = make()

    sink.close()
    sink.close()


async def a_closed_sink_raises_nothing(make: MakeSink) -> None:
    """A late entry does not raise: a journal that cannot be kept must not harm the session."""
    sink = make()
    sink.close()

    sink.write(_entries(1, 1))


SINK_CONTRACTS: tuple[SinkContract, ...] = (
    a_sink_takes_entries_in_batches,
    a_sink_may_be_closed_twice,
    a_closed_sink_raises_nothing,
)


# --- Tool server -------------------------------------------------------------------------


async def _ask(server: ToolServer, caller: Caller, method: str, **params: object) -> JsonDict:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = await server.handle(message, caller)
    assert answer is not None, f"{method} was not answered"
    assert (answer.get("jsonrpc"), answer.get("id")) == ("2.0", 7)
    return dict(answer)


def _caller() -> Caller:
    return Caller("session", "server", lambda _: None)


async def _initialize(server: ToolServer, caller: Caller) -> JsonDict:
    info = {"name": "contract", "version": "1"}
    answer = await _ask(
        server,
        caller,
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo=info,
    )
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert await server.handle(note, caller) is None, "a notification was answered"
    return answer


async def a_server_can_be_initialized(make: MakeToolServer) -> None:
    """`initialize` names the protocol version, and a notification gets no answer."""
    server, caller = make(), _caller()

    await server.attach(caller)
    answer = await _initialize(server, caller)
    await server.detach(caller)

    assert isinstance(answer["result"]["protocolVersion"], str)


async def a_server_lists_its_tools(make: MakeToolServer) -> None:
    """`tools/list` has every name of `tool_names`, each with an input schema."""
    server, caller = make(), _caller()

    await server.attach(caller)
    await _initialize(server, caller)
    listed = (await _ask(server, caller, "tools/list"))["result"]["tools"]
    await server.detach(caller)

    assert {*server.tool_names} <= {tool["name"] for tool in listed}
    assert all(tool["inputSchema"]["type"] == "object" for tool in listed)


async def an_unknown_method_is_refused(make: MakeToolServer) -> None:
    """An unknown method gets a JSON-RPC error, and the server stays usable."""
    server, caller = make(), _caller()

    await server.attach(caller)
    await _initialize(server, caller)
    refused = await _ask(server, caller, "no/such/method")
    listed = await _ask(server, caller, "tools/list")
    await server.detach(caller)

    assert isinstance(refused["error"]["code"], int)
    assert listed["result"]["tools"]


async def a_server_serves_two_sessions(make: MakeToolServer) -> None:
    """The end of one session does not affect another."""
    server, first, second = make(), _caller(), _caller()

    await server.attach(first)
    await server.attach(second)
    await _initialize(server, first)
    await _initialize(server, second)
    await server.detach(first)
    listed = await _ask(server, second, "tools/list")
    await server.detach(second)

    assert listed["result"]["tools"]


TOOL_SERVER_CONTRACTS: tuple[ToolServerContract, ...] = (
    a_server_can_be_initialized,
    a_server_lists_its_tools,
    an_unknown_method_is_refused,
    a_server_serves_two_sessions,
)
