"""A stand-in CLI that records how it was started and what it was sent, for both packages.

`official()` and `ours()` start it through a client, with the same options; the records are then
compared. The stand-in sends the control requests that a test gives it, one after the other, and
records the answers.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

Line = dict[str, Any]

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
"""The environment of the program that starts the stand-in; tests add to it."""

PROGRAM = """\
#!{python} -SE
import json, os, sys
if "-v" in sys.argv or "--version" in sys.argv:
    print("2.1.325 (Claude Code)")
    sys.exit()
record = {{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}
record |= {{"files": {{}}, "sent": []}}
for token in sys.argv[1:]:
    for path in (token, token.partition("=")[2]):
        if path.startswith("/") and os.path.isfile(path):
            with open(path) as file:
                record["files"][path] = file.read()
flag = "--permission-mode"
given = [each.partition("=")[2] for each in sys.argv if each.startswith(flag + "=")]
given += [sys.argv[at + 1] for at, each in enumerate(sys.argv) if each == flag]
script = json.loads(os.environ.get("STAND_IN_SCRIPT", "[]"))
waiting = list(enumerate(script))
sys.stderr.write(os.environ.get("STAND_IN_STDERR", ""))
sys.stderr.flush()


def send(line):
    sys.stdout.write(json.dumps(line) + "\\n")
    sys.stdout.flush()


def ask_next():
    if waiting:
        number, request = waiting.pop(0)
        send({{"type": "control_request", "request_id": f"ask_{{number}}", "request": request}})
    elif script:
        send({{"type": "system", "subtype": "asked", "session_id": "s1", "uuid": "u1"}})


for text in sys.stdin:
    line = json.loads(text)
    record["sent"].append(line)
    if line["type"] == "control_response":
        ask_next()
    elif line["type"] == "control_request":
        about = {{"hooks_applied": True, "hook_on_failure_supported": True, "commands": []}}
        about["current_permission_mode"] = (given or ["default"])[-1]
        done = {{"subtype": "success", "request_id": line["request_id"], "response": about}}
        send({{"type": "control_response", "response": done}})
        if line["request"]["subtype"] == "initialize":
            ask_next()
with open(os.environ["STAND_IN_RECORD"], "w") as file:
    json.dump(record, file)
"""


@dataclass
class Record:
    """What one run of the stand-in got, and what the program got."""

    argv: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    sent: list[Line] = field(default_factory=list[Line])
    warned: list[str] = field(default_factory=list[str])
    """The classes of the warnings."""
    error: BaseException | None = None

    @property
    def initialize(self) -> Line:
        """The first control request."""
        return {key: value for key, value in self.sent[0]["request"].items() if key != "subtype"}

    @property
    def answers(self) -> list[Line]:
        """The answers to the control requests of the stand-in, in their order."""
        lines = [line["response"] for line in self.sent if line["type"] == "control_response"]
        return sorted(lines, key=lambda each: int(each["request_id"].partition("_")[2]))


class StandIn:
    """The program, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "claude"
        self.path.write_text(PROGRAM.format(python=sys.executable))
        self.path.chmod(0o755)
        self._runs = 0

    async def run(
        self,
        sdk: ModuleType,
        options: Mapping[str, Any],
        script: Sequence[Line] = (),
        stderr: str = "",
    ) -> Record:
        """Connect a client of the package `sdk`, let the stand-in ask its requests, and end."""
        self._runs += 1
        place = self._directory / f"record-{self._runs}.json"
        own = {
            "STAND_IN_RECORD": str(place),
            "STAND_IN_SCRIPT": json.dumps([*script]),
            "STAND_IN_STDERR": stderr,
            "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
        }
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            error = await _connect(sdk, {**options}, own, self.path, asks=bool(script))
        classes = [
            each.category.__name__
            for each in warned
            if not issubclass(each.category, ResourceWarning | DeprecationWarning)
        ]
        if error is not None:
            return Record(error=error, warned=classes)
        found: Line = json.loads(place.read_text())
        for name in own:
            del found["env"][name]
        return Record(**found, warned=classes)


async def _connect(
    sdk: ModuleType, options: dict[str, Any], own: Mapping[str, str], path: Path, *, asks: bool
) -> BaseException | None:
    client = None
    try:
        given = sdk.ClaudeAgentOptions(**{"cli_path": path, **options})
        given.env = {**given.env, **own}
        client = sdk.ClaudeSDKClient(given)
        await client.connect()
        if asks:
            async for message in client.receive_messages():
                if getattr(message, "subtype", "") == "asked":
                    break
    except Exception as error:  # noqa: BLE001 - what is compared
        return error
    finally:
        if client is not None:
            await client.disconnect()
    return None


def mcp_message(message: Line, server: str = "key") -> Line:
    """Return the control request that carries a message for an MCP server."""
    return {"subtype": "mcp_message", "server_name": server, "message": message}


def mcp_calls(calls: Sequence[tuple[str, Any]]) -> list[Line]:
    """Return a script: the handshake of a server, the list of its tools, and calls of them."""
    about = {"name": "c", "version": "1"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    return [
        mcp_message({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}),
        mcp_message({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        mcp_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        *(
            mcp_message(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": name, "arguments": arguments},
                }
            )
            for number, (name, arguments) in enumerate(calls, 2)
        ),
    ]
