"""Transports of the program's own, which play the CLI's side themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage, prompts

SESSION = "00000000-0000-4000-8000-00000000000a"
UUID = "00000000-0000-4000-8000-00000000000b"
OWN = {"session_id": SESSION, "uuid": UUID}


def result(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 1,
        "duration_api_ms": 1,
        "num_turns": 1,
        "total_cost_usd": 0.1,
        "result": text,
        **OWN,
        **fields,
    }


def assistant(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "model": "own", "content": content}
    return {"type": "assistant", "message": message, **OWN}


class Peer:
    """Answers each prompt with the next list of messages; what it is to raise is in `faults`."""

    def __init__(
        self, stage: Stage, answers: tuple[Any, ...], faults: dict[str, Exception]
    ) -> None:
        self.stage = stage
        self.lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.answers = list(answers)
        self.faults = faults
        self.ready = False
        self.closed = 0

    async def connect(self) -> None:
        self.stage.called("connect")
        self.fail("connect")
        self.ready = True

    async def write(self, data: str) -> None:
        line = json.loads(data)
        match line["type"]:
            case "control_request":
                self.stage.called("request", line["request"]["subtype"])
                answer = {"subtype": "success", "request_id": line["request_id"], "response": {}}
                self.lines.put_nowait({"type": "control_response", "response": answer})
            case "control_response":
                self.stage.called("answer", line["response"].get("response"))
                self.next()
            case _:
                self.fail("write")
                self.stage.called("prompt", line["message"])
                self.next()

    def next(self) -> None:
        for each in self.answers.pop(0) if self.answers else []:
            self.lines.put_nowait(each)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (line := await self.lines.get()) is not None:
            if line.get("type") == "fault":
                self.fail("read")
            yield line

    async def close(self) -> None:
        self.closed += 1
        self.ready = False
        self.lines.put_nowait(None)

    def is_ready(self) -> bool:
        return self.ready

    async def end_input(self) -> None:
        self.stage.called("end_input")
        self.lines.put_nowait(None)

    def fail(self, where: str) -> None:
        if where in self.faults:
            raise self.faults[where]


def transport(sdk: Any, stage: Stage, *answers: Any, **faults: Exception) -> Any:
    """Return a transport of the package's own base class, which plays the CLI's side."""
    return type("Own", (Peer, sdk.Transport), {})(stage, answers, faults)


@program()
async def transport_of_our_own(sdk: Any, stage: Stage) -> None:
    own = transport(sdk, stage, [assistant("hello"), result("hello")])
    await stage.read(sdk.query(prompt="go", options=stage.options(), transport=own))
    stage.note("closed", own.closed > 0)


@program()
async def transport_of_a_client(sdk: Any, stage: Stage) -> None:
    own = transport(
        sdk, stage, [assistant("one"), result("one")], [assistant("two"), result("two")]
    )
    async with sdk.ClaudeSDKClient(stage.options(), transport=own) as client:
        for text in ("first", "second"):
            await client.query(text)
            await stage.trying(text, stage.read(client.receive_response()))
    stage.note("closed", own.closed > 0)


@program()
async def transport_with_rate_limits_and_unknown_messages(sdk: Any, stage: Stage) -> None:
    limit = {
        "status": "allowed_warning",
        "resetsAt": 1_800_000_000,
        "rateLimitType": "five_hour",
        "utilization": 0.91,
    }
    odd = {"type": "assistant", "message": {"model": "own", "content": [{"type": "hologram"}]}}
    own = transport(
        sdk,
        stage,
        [
            {"type": "rate_limit_event", "rate_limit_info": limit, **OWN},
            {"type": "never_seen", "x": 1, **OWN},
            {"type": "system", "subtype": "never_seen", "x": 1, **OWN},
            {**odd, **OWN},
            {"type": "conversation_reset", "new_conversation_id": UUID, **OWN},
            result("done"),
        ],
    )
    await stage.read(sdk.query(prompt=prompts("go"), options=stage.options(), transport=own))


@program()
async def transport_that_asks_for_permission(sdk: Any, stage: Stage) -> None:
    async def can_use_tool(tool: str, arguments: Any, context: Any) -> Any:
        stage.called("can_use_tool", tool, arguments, context)
        return sdk.PermissionResultAllow()

    ask = {
        "type": "control_request",
        "request_id": "ask_1",
        "request": {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": "ls"},
            "tool_use_id": "toolu_own",
            "permission_suggestions": [],
        },
    }
    own = transport(sdk, stage, [ask], [result("done")])
    options = stage.options(can_use_tool=can_use_tool)
    async with sdk.ClaudeSDKClient(options, transport=own) as client:
        await client.query("go")
        await stage.trying("response", stage.read(client.receive_response()))


@program()
async def transport_that_does_not_connect(sdk: Any, stage: Stage) -> None:
    own = transport(sdk, stage, connect=OSError("no route"))
    await stage.trying(
        "query", stage.read(sdk.query(prompt="go", options=stage.options(), transport=own))
    )
    own = transport(sdk, stage, connect=OSError("no route"))
    client = sdk.ClaudeSDKClient(stage.options(), transport=own)
    await stage.trying("connect", client.connect())


@program()
async def transport_that_cannot_write(sdk: Any, stage: Stage) -> None:
    own = transport(sdk, stage, write=OSError("the line is cut"))
    client = sdk.ClaudeSDKClient(stage.options(), transport=own)
    await client.connect()
    await stage.trying("query", client.query("go"))
    await stage.trying("disconnect", client.disconnect())


@program()
async def transport_that_breaks_while_reading(sdk: Any, stage: Stage) -> None:
    own = transport(sdk, stage, [assistant("half"), {"type": "fault"}], read=OSError("cut off"))
    client = sdk.ClaudeSDKClient(stage.options(), transport=own)
    await client.connect()
    await client.query("go")
    await stage.trying("response", stage.read(client.receive_response()))
    await stage.trying("disconnect", client.disconnect())
    stage.note("closed", own.closed > 0)


@program()
async def transport_that_ends_without_a_result(sdk: Any, stage: Stage) -> None:
    own = transport(sdk, stage, [assistant("half"), None])
    await stage.trying(
        "query",
        stage.read(sdk.query(prompt=prompts("go"), options=stage.options(), transport=own)),
    )
    # Whether the end of the prompts is noticed before the end of the messages is open.
    stage.calls = [each for each in stage.calls if each != ["end_input"]]


@program()
async def transport_with_an_error_result(sdk: Any, stage: Stage) -> None:
    bad = result("", subtype="error_during_execution", is_error=True, errors=["it broke"])
    own = transport(sdk, stage, [bad])
    await stage.trying(
        "query", stage.read(sdk.query(prompt="go", options=stage.options(), transport=own))
    )
