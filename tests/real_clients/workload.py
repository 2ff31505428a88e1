"""What packages watch: a one-shot with a tool of the CLI, and a client with one of ours."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

from steersman.testing.script import Answer, call, say
from tests.compat.programs.stage import Stage
from tests.compat.programs.traces import Normalizer

STEPS: tuple[Answer, ...] = (
    call("Bash", command="echo one"),
    say("the first is done"),
    call("mcp__calc__add", a=2, b=3),
    say("five"),
    say("bye"),
)

MEASURED = re.compile(
    r"time|duration|latency|elapsed|cost|_ms$|_ns$|seconds|pid$|thread|version|^caller_|^revision_id$"
)
"""Names of what is another value in every run; that it is there is compared."""
IDS = re.compile(
    r"\b\d{8}T\d{12}Z[0-9a-f-]{36}\b|\b(?:[0-9a-f]{32}|[0-9a-f]{16}|\d{14,})\b|(?<=/)\d+(?=\.sock\b)"
)


async def converse(stage: Stage, *, has_own_tool: bool = True) -> None:
    """Run the workload on the package `claude_agent_sdk`, whichever that is here."""
    sdk = import_module("claude_agent_sdk")

    async for _ in sdk.query(prompt="Do the first.", options=given(stage, allowed_tools=["Bash"])):
        pass
    options = with_tool(stage) if has_own_tool else given(stage)
    async with sdk.ClaudeSDKClient(options=options) as client:
        for prompt in ("What is 2 + 3?", "Say bye."):
            await client.query(prompt)
            async for _ in client.receive_response():
                pass


def given(stage: Stage, **options: Any) -> Any:
    """Return options that point the CLI at the scripted model."""
    sdk = import_module("claude_agent_sdk")

    stage.sdk = sdk
    return stage.options(**options)


def with_tool(stage: Stage) -> Any:
    """Return options with a tool of this process."""
    sdk = import_module("claude_agent_sdk")

    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    adding = sdk.tool("add", "Adds two numbers.", {"a": int, "b": int})(add)
    server = sdk.create_sdk_mcp_server("calc", tools=[adding])
    allowed = ["mcp__calc__add"]
    return given(stage, mcp_servers={"calc": server}, allowed_tools=allowed)


async def kinds(stream: AsyncIterator[Any]) -> list[str]:
    """Return the types of the messages of a stream."""
    return [type(each).__name__ async for each in stream]


def keeping() -> tuple[Any, Any]:
    """Return a span processor of OpenTelemetry, and the exporter that has what it was given."""
    export = import_module("opentelemetry.sdk.trace.export")
    memory = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept = memory.InMemorySpanExporter()
    return export.SimpleSpanProcessor(kept), kept


def in_memory() -> tuple[Any, Any]:
    """Return a tracer provider of OpenTelemetry, and the exporter that keeps its spans."""
    processor, kept = keeping()
    provider = import_module("opentelemetry.sdk.trace").TracerProvider()
    provider.add_span_processor(processor)
    return provider, kept


@contextmanager
def collector() -> Generator[tuple[str, list[Any]]]:
    """Serve on loopback; yield the address, and method, path and JSON of what was sent there."""
    sent: list[Any] = []

    class Keeps(BaseHTTPRequestHandler):
        def _keep(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with suppress(ValueError):
                sent.append([self.command, self.path, json.loads(body)])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PATCH = _keep  # noqa: N815 - the names of http.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeps) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", sent
        finally:
            server.shutdown()
            serving.join()


def spans(finished: Iterable[Any]) -> list[Any]:
    """Return what OpenTelemetry has recorded, parents by their names."""
    found = list(finished)
    names = {each.context.span_id: each.name for each in found}
    return [
        {
            "name": each.name,
            "kind": str(each.kind),
            "parent": names.get(each.parent.span_id, "outside") if each.parent else None,
            "status": str(each.status.status_code),
            "attributes": dict(each.attributes or {}),
            "events": [event.name for event in each.events],
        }
        for each in found
    ]


def comparable(record: Any, stage: Stage) -> Any:
    """Return a record as JSON that is equal on every run."""
    root = str(stage.sandbox.root)
    dashed = re.sub(r"[^a-zA-Z0-9]", "-", root)
    folders = {root: "<root>", str(stage.cli): "<cli>", dashed: "<root>"}
    found = Normalizer(folders)(_plain(record))
    # Spans and events of one time are sent in any order.
    return sorted(found, key=json.dumps) if isinstance(found, list) else found


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        items = sorted((str(name), each) for name, each in value.items())
        return {name: "<n>" if MEASURED.search(name) else _plain(each) for name, each in items}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return "<n>"
    if isinstance(value, str):
        return IDS.sub("<id>", value)
    return value if isinstance(value, int | None) else type(value).__name__
