"""What a server offers is asked before a CLI starts that continues a turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman._session.requests.tool_servers import ToolServers, manifests_of
from steersman.ports import Caller, JsonObject
from steersman.tools import Toolbox

LIMIT = 5.0


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Paging:
    """A server with two pages of tools; records the methods of its messages."""

    tool_names = ("a", "b")

    def __init__(self, tools: object = None) -> None:
        self.asked: list[object] = []
        self._tools = tools

    async def attach(self, caller: Caller) -> None: ...

    async def detach(self, caller: Caller) -> None: ...

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        self.asked.append(message["method"])
        if message["method"] == "initialize":
            return {"id": message["id"], "result": {"serverInfo": {"name": "pages"}}}
        if "id" not in message:
            return None
        is_last = message["params"].get("cursor") == "2"
        page: dict[str, Any] = {"tools": [{"name": "b" if is_last else "a"}]}
        if self._tools is not None:
            page["tools"] = self._tools
        return {"id": message["id"], "result": page if is_last else {**page, "nextCursor": "2"}}


def served(**servers: Any) -> ToolServers:
    callers = {key: Caller("s", key, lambda _: None) for key in servers}
    return ToolServers(servers, callers, lambda *_: None)


async def test_a_manifest_holds_what_initialize_and_every_page_of_the_tools_give() -> None:
    server = Paging()

    found = await served(pages=server).manifests("2.1.325", LIMIT)

    assert found == {
        "pages": {
            "initializeResult": {"serverInfo": {"name": "pages"}},
            "toolsListResult": {"tools": [{"name": "a"}, {"name": "b"}]},
        }
    }
    listing = ["tools/list", "tools/list"]
    assert server.asked == ["initialize", "notifications/initialized", *listing]


async def test_a_toolbox_has_a_manifest() -> None:
    found = await served(box=Toolbox("box", [double])).manifests("2.1.325", LIMIT)

    (tool,) = found["box"]["toolsListResult"]["tools"]
    assert tool["name"] == "double"
    assert found["box"]["initializeResult"]["serverInfo"]["name"] == "box"


class Broken(Paging):
    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        raise RuntimeError("no")


class Mute(Paging):
    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        await asyncio.Event().wait()
        return None


class Endless(Paging):
    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        return {"id": message.get("id"), "result": {"tools": [], "nextCursor": "again"}}


@pytest.mark.parametrize("server", [Broken(), Mute(), Endless(), Paging("no list")])
async def test_a_server_without_an_answer_is_left_to_the_cli(server: Paging) -> None:
    async with asyncio.timeout(LIMIT):
        found = await served(bad=server, box=Toolbox("box")).manifests("2.1.325", 0.05)

    assert list(found) == ["box"]


async def test_without_servers_nothing_is_asked() -> None:
    async def never(*_: object) -> JsonObject:
        raise AssertionError

    assert await manifests_of([], never, "", LIMIT) == {}
