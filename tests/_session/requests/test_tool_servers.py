"""A call that adds tools has its result when the CLI has listed them."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman import Toolbox, tool
from steersman._protocol.events import ToolCalled
from steersman._session.requests.tool_servers import LISTING, ToolServers
from steersman.ports import Caller, JsonObject
from steersman.testing.faults import VirtualClockLoop

LIMIT = 5.0


async def late() -> str:
    """Come late."""
    return "late"


class Served:
    """A toolbox with a tool that adds another one."""

    def __init__(self) -> None:
        self.has_changed = asyncio.Event()
        box = Toolbox("box")

        @tool
        async def unlock() -> str:
            box.register(late)
            return "unlocked"

        box.register(unlock)
        caller = Caller("s", "box", lambda _: self.has_changed.set())
        self.servers = ToolServers({"box": box}, {"box": caller}, lambda *_: None)

    async def ask(self, method: str, **params: Any) -> JsonObject:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.servers.answer(ToolCalled("r", "box", message))


async def test_the_result_of_a_call_that_adds_a_tool_waits_until_the_tools_are_listed() -> None:
    served = Served()
    async with asyncio.timeout(LIMIT):
        await served.servers.attach()
        calling = asyncio.ensure_future(served.ask("tools/call", name="unlock", arguments={}))
        await served.has_changed.wait()
        await asyncio.sleep(0)
        was_done = calling.done()
        await served.ask("tools/list")
        async with asyncio.timeout(LISTING / 2):
            result = await calling
        again = await served.ask("tools/call", name="late", arguments={})

    assert not was_done
    assert result["result"]["content"] == [{"type": "text", "text": "unlocked"}]
    assert again["result"]["content"] == [{"type": "text", "text": "late"}]


def test_a_cli_that_does_not_list_them_delays_one_call_for_a_bounded_time() -> None:
    async def play() -> list[float]:
        served, clock = Served(), asyncio.get_running_loop().time
        await served.servers.attach()
        took = list[float]()
        for name in ("unlock", "late"):
            begun = clock()
            await served.ask("tools/call", name=name, arguments={})
            took.append(clock() - begun)
        return took

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        first, second = runner.run(play())

    assert first >= LISTING
    assert second < LISTING
