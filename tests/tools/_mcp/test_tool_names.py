"""A server in this process never reaches the CLI without its name.

Without one the CLI drops the server in silence, or hung, depending on its version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman import _json
from steersman._launch.plan import LaunchPlan, plan
from steersman._session.mcp_servers import own_config
from steersman.control import McpSetServers
from steersman.errors import UsageError
from steersman.options import Options
from steersman.tools import Toolbox

KEYS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
CONFIGS = st.one_of(
    st.fixed_dictionaries({"command": st.text()}),
    st.fixed_dictionaries({"type": st.just("http"), "url": st.text()}),
    st.builds(Toolbox, st.just("box")),
)
TYPES = st.sampled_from(["sdk", "stdio", "http", "sse", "ws", "", None, 5])
ANY_CONFIG = st.dictionaries(
    st.sampled_from(["type", "name", "command", "url"]), st.one_of(TYPES, st.text(max_size=3))
)


def sdk_entries(found: LaunchPlan) -> list[Any]:
    """Every configuration of a server in this process that the CLI would read at its start."""
    file = json.loads(found.launch.files.get("mcp.json", b'{"mcpServers": {}}'))
    return [each for each in file["mcpServers"].values() if each.get("type") == "sdk"]


@given(servers=st.dictionaries(KEYS, CONFIGS, max_size=5))
def test_at_the_start_they_are_told_by_their_keys_and_in_no_other_way(
    servers: Mapping[str, Any],
) -> None:
    own = [key for key, each in servers.items() if isinstance(each, Toolbox)]

    found = plan(
        Options(mcp_servers=servers), program="claude", host_env={}, new_session_id="x", servers=own
    )

    assert (found.initialize.sdk_mcp_servers or []) == own
    assert all(own)
    assert sdk_entries(found) == []


@given(servers=st.dictionaries(st.text(max_size=3), ANY_CONFIG, max_size=3))
def test_whatever_a_caller_configures_no_nameless_one_is_planned(
    servers: Mapping[str, Any],
) -> None:
    try:
        options = Options(mcp_servers=servers)
    except UsageError:
        return

    found = plan(options, program="claude", host_env={}, new_session_id="x")

    assert sdk_entries(found) == []


@given(key=KEYS)
def test_while_it_runs_they_are_told_with_their_names(key: str) -> None:
    verb = McpSetServers(servers={key: own_config(key)})

    assert verb.servers == {key: {"type": "sdk", "name": key}}


@given(servers=st.dictionaries(st.text(max_size=3), ANY_CONFIG, max_size=3))
def test_the_verb_itself_refuses_one_without_a_name(servers: dict[str, dict[str, Any]]) -> None:
    nameless = [
        each
        for each in servers.values()
        if each.get("type") == "sdk" and not (isinstance(each.get("name"), str) and each["name"])
    ]

    if nameless:
        with pytest.raises(UsageError, match="without a name"):
            McpSetServers(servers=servers)
    else:
        assert _json.loads(_json.dumps(McpSetServers(servers=servers).servers)) == servers
