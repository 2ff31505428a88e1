"""A server over stdin and stdout without the `mcp` package: it starts quickly, for many tests.

Its tools are `add`, `greet`, `fail` and `die`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object"}
HINTS = {"add": {"readOnlyHint": True}, "greet": {"idempotentHint": True}}
TOOLS = [
    {"name": name, "inputSchema": SCHEMA, "annotations": HINTS.get(name, {})}
    for name in ("add", "greet", "fail", "die")
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "tiny", "version": "1"}
        offers: dict[str, Any] = {"tools": {}}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": offers, "serverInfo": info}
    if method == "tools/list":
        # A page for each tool, to be walked through.
        at = int(params.get("cursor", 0))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {}
        return {"tools": TOOLS[at : at + 1], **more}
    return call(params["name"], params.get("arguments", {}))


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if tool == "die":
        os._exit(3)
    words = str(arguments["a"] + arguments["b"]) if tool == "add" else f"{tool}: {arguments}"
    return {"content": [{"type": "text", "text": words}], "isError": tool == "fail"}


def main() -> None:
    if "CONNECTION_LOG" in os.environ:
        with Path(os.environ["CONNECTION_LOG"]).open("a") as log:
            log.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
