"""A client of the language server that editors use: just enough to ask for completions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class LanguageServer:
    """pyright's language server, over stdio; used with `with`, and killed after `limit` seconds."""

    def __init__(self, folder: Path, limit: float) -> None:
        self._folder = folder
        self._limit = limit
        self._requests = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        # Ends every read below, should the server not answer.
        self._killer = threading.Timer(self._limit, self._process.kill)
        self._killer.start()
        folder = {"uri": self._folder.as_uri(), "name": "folder"}
        self.request(
            "initialize",
            processId=None,
            rootUri=folder["uri"],
            workspaceFolders=[folder],
            capabilities={"workspace": {"configuration": True}},
        )
        self.notify("initialized")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._killer.cancel()
        self._process.kill()
        # Closes the pipes too.
        self._process.communicate()

    def completions(self, text: str) -> list[str]:
        """Return the labels that are offered at the mark `|` in `text`."""
        before, _, after = text.partition("|")
        document = {"uri": (self._folder / f"asked_{self._requests}.py").as_uri()}
        source = {**document, "languageId": "python", "version": 1, "text": before + after}
        self.notify("textDocument/didOpen", textDocument=source)
        lines = before.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self.request("textDocument/completion", textDocument=document, position=position)
        return [each["label"] for each in found["items"]]

    def request(self, method: str, **params: Any) -> Any:
        """Send a request and return its result; answers what the server asks meanwhile."""
        self._requests += 1
        number = self._requests
        self._write({"id": number, "method": method, "params": params})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                asked = message.get("params", {}).get("items", [])
                self._write({"id": message["id"], "result": [None] * len(asked) or None})
            elif message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        pipe, length = self._process.stdout, 0
        assert pipe is not None
        while line := pipe.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the language server ended, or did not answer in time"
        message: dict[str, Any] = json.loads(pipe.read(length))
        return message
