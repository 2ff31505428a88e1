"""Servers of type `sdk` in `mcp_servers`, as the official SDKs have them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import Agent, Options, Toolbox
from steersman._factory import tool_servers
from steersman.errors import UsageError
from steersman.options.servers import SdkServer


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_an_instance_is_the_server() -> None:
    box = Toolbox("box", [add])

    options = Options(mcp_servers={"x": {"type": "sdk", "name": "box", "instance": box}})

    assert options.mcp_servers == {"x": box}
    assert options == Options(mcp_servers={"x": box})


def test_tools_become_a_toolbox_of_that_name() -> None:
    form = {"type": "sdk", "name": "box", "tools": [add], "version": "2.0"}

    options = Options(mcp_servers={"x": form})
    served = tool_servers(options)["x"]

    stored: Any = options.mcp_servers
    assert stored == {"x": SdkServer("box", (add,), "2.0")}
    assert isinstance(served, Toolbox)
    assert (served.name, served.version, served.tool_names) == ("box", "2.0", ("add",))


@pytest.mark.parametrize(
    ("form", "argument"),
    [
        ({"name": "x"}, "mcp_servers['x']"),
        ({"name": "x", "tools": [], "instance": Toolbox("x")}, "mcp_servers['x']"),
        ({"name": "x", "instance": 5}, "mcp_servers['x']['instance']"),
        ({"name": "x", "instance": {"command": "x"}}, "mcp_servers['x']['instance']"),
        ({"name": "x", "tools": "add"}, "mcp_servers['x']['tools']"),
        ({"name": "", "tools": [add]}, "mcp_servers['x']['name']"),
        ({"tools": [add]}, "mcp_servers['x']['name']"),
        ({"name": "x", "tools": [add], "version": 2}, "mcp_servers['x']['version']"),
        ({"name": "x", "tools": [add], "alwaysLoad": True}, "mcp_servers['x']['alwaysLoad']"),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, dict) else each,
)
def test_another_form_is_refused_when_it_is_passed(form: dict[str, Any], argument: str) -> None:
    with pytest.raises(UsageError) as refused:
        Options(mcp_servers={"x": {"type": "sdk", **form}})

    assert refused.value.argument == argument


def test_what_cannot_be_a_tool_is_refused_by_the_agent() -> None:
    with pytest.raises(UsageError):
        Agent(mcp_servers={"x": {"type": "sdk", "name": "x", "tools": [5]}})
