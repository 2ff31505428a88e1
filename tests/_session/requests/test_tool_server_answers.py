"""In-process MCP servers of a session: whatever they do, the CLI gets an answer."""

from __future__ import annotations

from typing import Any

import pytest

from steersman._protocol.events import ToolCalled
from steersman._session.requests.tool_servers import ToolServers
from steersman.ports import Caller, JsonObject


class Server:
    """A server that answers, fails or keeps silent as its words say."""

    def __init__(self, *, fails_at: str = "", answer: Any = None) -> None:
        self.calls: list[str] = []
        self._fails_at = fails_at
        self._answer = answer

    @property
    def tool_names(self) -> tuple[str, ...]:
        return ()

    async def attach(self, caller: Caller) -> None:
        self._note("attach")

    async def handle(self, message: JsonObject, caller: Caller) -> Any:
        self._note("handle")
        return self._answer

    async def detach(self, caller: Caller) -> None:
        self._note("detach")

    def _note(self, what: str) -> None:
        self.calls.append(what)
        if what == self._fails_at:
            raise ValueError(what)


class Served:
    """The servers of a session, and what they reported."""

    def __init__(self, **servers: Any) -> None:
        self.reports: list[tuple[str, str]] = []
        self.callers = {key: caller(key) for key in servers}
        self.servers = ToolServers(
            servers, self.callers, lambda where, error: self.reports.append((where, str(error)))
        )


def caller(key: str) -> Caller:
    return Caller("s", key, lambda _message: None)


def called(server: str = "box", **message: Any) -> ToolCalled:
    return ToolCalled("q", server, {"id": 7, **message})


@pytest.mark.parametrize(
    ("server", "answer"),
    [
        (Server(answer={"a": 1}), {"a": 1}),
        (Server(), {"jsonrpc": "2.0", "result": {}}),
        (
            Server(fails_at="handle"),
            {
                "jsonrpc": "2.0",
                "id": 7,
                "error": {"code": -32603, "message": "the MCP server failed: ValueError"},
            },
        ),
    ],
)
async def test_every_message_is_answered(server: Any, answer: JsonObject) -> None:
    served = Served(box=server)

    assert await served.servers.answer(called()) == answer
    failed = [("tool server 'box'", "handle")] if "error" in answer else []
    assert served.reports == failed


async def test_a_server_that_is_not_here_is_an_error_with_its_name() -> None:
    answer = await Served().servers.answer(called("gone"))

    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32603,
            "message": "there is no MCP server named 'gone' in this process",
        },
    }


async def test_each_server_that_was_attached_is_detached_once_whatever_the_others_do() -> None:
    one, two = Server(fails_at="detach"), Server()
    served = Served(one=one, two=two)

    await served.servers.attach()
    await served.servers.detach()
    await served.servers.detach()

    assert one.calls == two.calls == ["attach", "detach"]
    assert served.reports == [("tool server 'one'", "detach")]


async def test_a_server_that_cannot_be_attached_is_detached_and_those_after_it_are_not() -> None:
    one, two = Server(fails_at="attach"), Server()
    served = Served(one=one, two=two)

    with pytest.raises(ValueError, match="attach"):
        await served.servers.attach()
    await served.servers.detach()

    assert (one.calls, two.calls) == (["attach", "detach"], [])


async def test_a_server_can_be_added_and_removed() -> None:
    served, new = Served(), Server(answer={"a": 1})

    await served.servers.add(new, caller("new"))
    assert list(served.servers.keys) == ["new"]
    assert await served.servers.answer(called("new")) == {"a": 1}
    await served.servers.remove("new")
    await served.servers.detach()

    assert list(served.servers.keys) == []
    assert new.calls == ["attach", "handle", "detach"]


async def test_a_server_that_cannot_be_added_is_not_kept() -> None:
    served, broken = Served(), Server(fails_at="attach")

    with pytest.raises(ValueError, match="attach"):
        await served.servers.add(broken, caller("new"))

    assert list(served.servers.keys) == []
    assert broken.calls == ["attach", "detach"]


async def test_a_server_that_was_never_attached_is_not_detached() -> None:
    server = Server()
    served = Served(box=server)

    await served.servers.remove("box")

    assert server.calls == []


def test_the_session_id_is_told_to_every_server() -> None:
    served = Served(one=Server(), two=Server())

    served.servers.name_session("new")

    assert [each.session_id for each in served.callers.values()] == ["new", "new"]
