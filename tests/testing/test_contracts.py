"""Every adapter keeps the contract of its port; a new adapter adds one line to a table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.stores.journal_file import JournalFile
from steersman.testing.contracts import (
    SINK_CONTRACTS,
    TOOL_SERVER_CONTRACTS,
    TRANSPORT_CONTRACTS,
    MakeToolServer,
    MakeTransport,
    SinkContract,
    ToolServerContract,
    TransportContract,
    contract_name,
)
from steersman.testing.faults import Delay, FaultPlan, FaultyTransport, SplitInput
from steersman.tools import Toolbox, tool
from steersman.tools.mcp_instance import as_tool_server
from steersman.transports.command import CommandTransport
from steersman.transports.memory import MemoryTransport, Wire
from steersman.transports.subprocess import SubprocessTransport
from tests.mcp_servers.everything import fast_server

CAT = Launch(("/bin/cat",), {"PATH": os.environ["PATH"]})


HARMLESS = FaultPlan(0, Delay(1), SplitInput(1))


def running_cat(transport: Transport) -> MakeTransport:
    return lambda: (transport, CAT)


class EchoPeer:
    """A program in memory that copies its input to its output."""

    def connected(self, launch: Launch, wire: Wire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        self._wire.write(data)

    def input_ended(self) -> None:
        self._wire.exit(0)

    def killed(self) -> None:
        pass


class EchoTransport:
    """Runs each program in memory, with a peer of its own."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        return await MemoryTransport(EchoPeer()).open(launch, receiver)


TRANSPORTS: dict[str, MakeTransport] = {
    "memory": running_cat(EchoTransport()),
    "subprocess": running_cat(SubprocessTransport()),
    "command": running_cat(CommandTransport(("env",), program="cat")),
    "local command": running_cat(CommandTransport(("env",), local=True)),
    "without faults": running_cat(FaultyTransport(SubprocessTransport())),
    "harmless faults": running_cat(FaultyTransport(SubprocessTransport(), HARMLESS)),
}


@pytest.mark.parametrize("contract", TRANSPORT_CONTRACTS, ids=contract_name)
@pytest.mark.parametrize("name", TRANSPORTS)
async def test_a_transport_keeps_its_contract(name: str, contract: TransportContract) -> None:
    await contract(TRANSPORTS[name])


@pytest.mark.parametrize("contract", SINK_CONTRACTS, ids=contract_name)
async def test_a_sink_keeps_its_contract(tmp_path: Path, contract: SinkContract) -> None:
    await contract(lambda: JournalFile(tmp_path / "journal.jsonl"))


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


TOOL_SERVERS: dict[str, MakeToolServer] = {
    "toolbox": lambda: Toolbox("numbers", [double]),
    "mcp server": lambda: as_tool_server(fast_server()),
}


@pytest.mark.parametrize("contract", TOOL_SERVER_CONTRACTS, ids=contract_name)
@pytest.mark.parametrize("name", TOOL_SERVERS)
async def test_a_tool_server_keeps_its_contract(name: str, contract: ToolServerContract) -> None:
    await contract(TOOL_SERVERS[name])
