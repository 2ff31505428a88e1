"""Every in-process MCP server keeps the contract of `ToolServer`; a new one adds a line here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from steersman.testing.contracts.tool_servers import TOOL_SERVER_CONTRACTS, ToolServerContract
from steersman.tools import RemoteTools, Toolbox
from steersman.tools.mcp_instance import McpInstance
from tests.mcp_servers.everything import fast_server
from tests.mcp_servers.running import Running, running

each_contract = pytest.mark.parametrize(
    "contract", TOOL_SERVER_CONTRACTS, ids=lambda contract: contract.__name__
)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Running]:
    with running("http") as server:
        yield server


async def hang() -> None:
    await asyncio.Event().wait()


def fail() -> None:
    raise ValueError("the pump is broken")


def add(a: int, b: int) -> int:
    return a + b


@each_contract
async def test_a_toolbox_keeps_the_contract(contract: ToolServerContract) -> None:
    await contract(lambda: Toolbox("box", [add, fail, hang]))


@each_contract
async def test_a_server_of_the_mcp_package_keeps_the_contract(contract: ToolServerContract) -> None:
    await contract(lambda: McpInstance(fast_server()))


@each_contract
async def test_a_server_elsewhere_keeps_the_contract(
    contract: ToolServerContract, elsewhere: Running
) -> None:
    await contract(lambda: RemoteTools(elsewhere.config()))
