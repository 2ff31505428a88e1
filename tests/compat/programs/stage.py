"""Where a program runs: its folders, its model, and the record of what it saw."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from tests.compat.programs.traces import Normalizer, plain, shown
from tests.live.staging import inhabitants, until, words_of

PATIENCE = 15.0
"""Seconds for a wait of a program; every one needs a small part of it."""

GONE_WITHIN = 3.0
LOOK_AGAIN = 0.05

Trace = dict[str, Any]


class Stage:
    """One run of one program.

    What happens is recorded in lanes, because the order between them is nobody's promise:
    `messages` that were iterated, `calls` of the program's callbacks, `notes` of the program.
    """

    def __init__(self, sdk: Any, cli: Path, sandbox: CliSandbox, model: ScriptedModel) -> None:
        self.sdk = sdk
        self.cli = cli
        self.sandbox = sandbox
        self.model = model
        self.messages: list[Any] = []
        self.calls: list[Any] = []
        self.notes: list[Any] = []
        self.raised: Any = None
        self.is_ordered = True

    # --- What a program is given -----------------------------------------------------------

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self.sandbox.project

    def env(self, **more: str) -> dict[str, str]:
        """Return the environment of a CLI that talks to the model of this stage."""
        return self.sandbox.env(self.model.url, more)

    def options(self, *, env: dict[str, str] | None = None, **options: Any) -> Any:
        """Return options that point the CLI at this stage."""
        own = {"cwd": str(self.cwd), "cli_path": str(self.cli), "env": self.env(**(env or {}))}
        return self.sdk.ClaudeAgentOptions(**{**own, **options})

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project."""
        file = self.cwd / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    # --- What a program records ------------------------------------------------------------

    async def read(self, stream: AsyncIterator[Any], count: int | None = None) -> list[Any]:
        """Record all messages of a stream, or the first `count`, and return them."""
        found: list[Any] = []
        async for message in stream:
            self.saw(message)
            found.append(message)
            if count is not None and len(found) >= count:
                break
        return found

    async def read_until(self, stream: AsyncIterator[Any], is_last: Callable[[Any], bool]) -> Any:
        """Record the messages of a stream up to one that fits, and return that one."""
        async for message in stream:
            self.saw(message)
            if is_last(message):
                return message
        raise AssertionError("the stream ended")

    def saw(self, message: Any) -> None:
        """Record a message."""
        self.messages.append(plain(message))

    def called(self, what: str, *arguments: Any) -> None:
        """Record the call of a callback."""
        self.calls.append([what, *map(plain, arguments)])

    def note(self, what: str, value: Any = None) -> None:
        """Record something else."""
        self.notes.append([what, plain(value)])

    def unordered(self) -> None:
        """Record all of it in any order, because things happen beside each other."""
        self.is_ordered = False

    async def trying(
        self, what: str, attempt: Any, *, patience: float = PATIENCE, loosely: bool = False
    ) -> Any:
        """Record how an awaitable ends, and return its value; it may raise or take too long.

        With `loosely`, only that an error of the package was raised: which one it is depends on
        who notices first.
        """
        try:
            async with asyncio.timeout(patience):
                value = await attempt
        except TimeoutError:
            self.note(what, "takes too long")
        except Exception as error:  # noqa: BLE001 - what it raises is what is compared
            is_own = loosely and isinstance(error, self.sdk.ClaudeSDKError)
            self.note(what, "a ClaudeSDKError" if is_own else shown(error))
        else:
            self.note(what, "returns")
            return value
        return None

    # --- What a program waits for ----------------------------------------------------------

    async def asked(self, count: int = 1) -> None:
        """Return once the model has been asked `count` times."""
        await asyncio.to_thread(self.model.wait_for_request, count, PATIENCE)

    async def release(self) -> None:
        """Let a stalled model continue."""
        await asyncio.to_thread(self.model.release, PATIENCE)

    async def file(self, path: str) -> None:
        """Return once a file of the project is there."""
        async with asyncio.timeout(PATIENCE):
            await until((self.cwd / path).exists)

    async def saved(self, text: str) -> None:
        """Return once the CLI has written `text` into the file of a conversation."""
        files = self.sandbox.config.glob
        async with asyncio.timeout(PATIENCE):
            await until(
                lambda: any(text in each.read_text() for each in files("projects/*/*.jsonl"))
            )

    def cli_pids(self) -> list[int]:
        """Return the CLIs that run in this stage."""
        name = os.fsdecode(self.cli)
        found = inhabitants(self.sandbox.root)
        return [pid for pid in found if words_of(pid)[:1] == [name]]

    # --- The end ---------------------------------------------------------------------------

    async def close(self) -> int:
        """Return how many processes were left, and end them."""
        deadline = time.monotonic() + GONE_WITHIN
        # In a thread: a look at all processes takes long, and other programs run beside.
        while left := await asyncio.to_thread(inhabitants, self.sandbox.root):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(LOOK_AGAIN)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(left)

    def trace(self, left: int) -> Trace:
        """Return the trace, in which ids and paths of this run are replaced."""
        root = str(self.sandbox.root)
        # The CLI names a project's folder after its path.
        dashed = re.sub(r"[^a-zA-Z0-9]", "-", root)
        folders = {root: "<root>", str(self.cli): "<cli>", dashed: "<root>"}
        asked = [
            [each.kind, request.last_text, list(request.tool_results.values())]
            for each in self.model.requests
            if (request := each.model_request) and each.kind != "auxiliary"
        ]
        # The CLI repeats what the API refuses, more often in some versions.
        once = [each for before, each in pairwise([None, *asked]) if each != before]
        found = {
            "messages": self.messages,
            "calls": self.calls,
            "notes": self.notes,
            "raises": self.raised,
            "model": once,
            "surprises": list(self.model.script.surprises),
            "left": left,
        }
        cleaned = Normalizer(folders)(found)
        if not self.is_ordered:
            for asking in cleaned["model"]:
                asking[-1].sort()
            for lane in ("messages", "calls", "model"):
                cleaned[lane].sort(key=json.dumps)
        return {name: each for name, each in cleaned.items() if each}


async def prompts(*texts: str | dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield user messages, as the streaming input of the official package takes them."""
    for text in texts:
        if isinstance(text, dict):
            yield text
        else:
            yield {
                "type": "user",
                "message": {"role": "user", "content": text},
                "parent_tool_use_id": None,
                "session_id": "default",
            }
