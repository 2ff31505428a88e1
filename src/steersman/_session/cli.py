"""The current CLI of a session. A restart replaces the CLI; the slot stays."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec import field, structs

from steersman._releases import Release
from steersman._session.link import CliLink
from steersman._session.requests.tasks import RequestTasks
from steersman._session.turn import SentPrompt
from steersman._struct import read_leniently, set_source
from steersman.control.handshake import Initialized
from steersman.control.mcp import McpMessage
from steersman.control.models import SetModel
from steersman.control.permissions import SetPermissionMode
from steersman.control.session import Interrupt
from steersman.control.verbs import Answer, Verb
from steersman.errors import (
    ChannelClosed,
    Described,
    LimitReached,
    RequestError,
    Stalled,
    SteersmanError,
    UsageError,
)
from steersman.ports import JsonObject


class Handshake(Answer, frozen=True, kw_only=True):
    """A few fields of `Initialized`. The others are long lists, which few programs read."""

    claude_code_version: str = field(default="", name="claude_code_version")
    current_permission_mode: str = field(default="", name="current_permission_mode")
    capabilities: list[str] = []
    hooks_applied: bool | None = field(default=None, name="hooks_applied")

    def whole(self) -> Initialized:
        """Return the whole answer, with the version of this one, which may have been found out."""
        fields, version = self.raw, self.claude_code_version
        whole = read_leniently(Initialized, fields)
        return set_source(structs.replace(whole, claude_code_version=version), fields)


NOT_STARTED = "this session has not started"
HOW_TO_START = "use `async with`, or `with` in steersman.sync"
"""The hint of the error `NOT_STARTED`."""


class HomeLoop:
    """The event loop that started a session. Used from another one, its waits would never end."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def enter(self) -> None:
        """Make the running loop the home. Raises `UsageError` if there is none, or another one."""
        self.check()
        running = _running()
        if running is None:
            raise UsageError(
                "event loop",
                None,
                "a running asyncio event loop",
                hint="start the program with asyncio.run(), or use steersman.sync",
            )
        self._loop, self._pid = running, os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the session was not started yet, or the running loop is its home."""
        return self._loop is None or _running() is self._loop

    @property
    def is_lost(self) -> bool:
        """Whether this process was forked after the start: the session is the parent's."""
        return self._loop is not None and self._pid != os.getpid()

    def check(self) -> None:
        """Raise `UsageError` in another event loop, and in a thread without one."""
        if self.is_lost:
            raise UsageError(
                "session",
                Described("one that the parent process has opened"),
                "a session of this process",
                hint="open another session after fork()",
            )
        if not self.is_here:
            raise UsageError(
                "event loop",
                _running(),
                "the event loop that started this session",
                hint="from another thread, use asyncio.run_coroutine_threadsafe(coroutine, loop)",
            )

    def call(self, function: Callable[[], object]) -> None:
        """Call `function` here, or from another thread soon in the home.

        Not in a closed loop, and not in a forked child: the loop of the parent would be woken.
        """
        if self.is_lost:
            return
        if self._loop is None or self.is_here:
            function()
        else:
            self.post(function)

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` soon in the home, from whatever thread; not in a closed loop."""
        if self._loop is not None:
            with suppress(RuntimeError):
                # The loop is closed.
                self._loop.call_soon_threadsafe(function)


@dataclass(frozen=True, slots=True)
class RunningCli:
    """One CLI process: the link to it, and the tasks that answer its requests."""

    link: CliLink
    tasks: RequestTasks


class CliSlot:
    """Holds the current CLI and what is known about it."""

    def __init__(
        self, session_id: str | None, request_timeout: float, path: str | None = None
    ) -> None:
        self.home = HomeLoop()
        """The event loop of the session."""
        self.running: RunningCli | None = None
        self.handshake: Handshake | None = None
        """What the CLI answered to the handshake; None before the first one."""
        self._initialized: Initialized | None = None
        self.listed: frozenset[str] | None = None
        """What the last `system/init` lists; None before the first."""
        self.release = Release("")
        """What is known of the release of the CLI."""
        self.has_set_servers = False
        """Whether the MCP servers of the CLI were set while it ran."""
        self.cause: SteersmanError | None = None
        """Why the session failed, if it did."""
        self.why_killed: Stalled | LimitReached | None = None
        """Set when we killed the CLI ourselves, until its exit is handled."""
        self.changed: dict[str, str | None] = {}
        """Options that the caller has changed at run time, by name."""
        self._known_id = session_id
        self._opened = (session_id, path)
        """The conversation that was resumed by the path of its file, and that path."""
        self._request_timeout = request_timeout

    @property
    def session_id(self) -> str | None:
        """The session id that the CLI reported, or else the one that we chose."""
        reported = "" if self.running is None else self.running.link.connection.session_id
        self._known_id = reported or self._known_id
        return self._known_id

    @property
    def path(self) -> str | None:
        """The file of the conversation, if it was resumed by its path.

        Not after `/clear`, which begins another conversation among the CLI's own files.
        """
        opened, path = self._opened
        return path if opened in (None, self.session_id) else None

    @property
    def place(self) -> str | None:
        """What the conversation is found by: the path of its file, or else its id."""
        return self.path or self.session_id

    def open_file(self, session_id: str | None, path: str | None) -> None:
        """Record which file the conversation is resumed from."""
        self.know(session_id)
        self._opened = (session_id, path)

    def know(self, session_id: str | None) -> None:
        """Record the session id, found out before the CLI has reported it."""
        self._known_id = self._known_id or session_id

    @property
    def is_modern(self) -> bool:
        """Whether the CLI announces capabilities; older ones cannot continue a turn."""
        return self.handshake is not None and bool(self.handshake.capabilities)

    @property
    def capabilities(self) -> frozenset[str] | None:
        """What the CLI lists, and the promises that hold on its release; None before the start."""
        if self.handshake is None:
            return None
        return self.release.keeps.union(self.handshake.capabilities, self.listed or ())

    @property
    def version(self) -> str:
        """The version of the CLI; empty if it is not known."""
        return "" if self.handshake is None else self.handshake.claude_code_version

    @property
    def initialized(self) -> Initialized | None:
        """The whole answer to the handshake, decoded at the first reading: few programs do."""
        if self._initialized is None and self.handshake is not None:
            self._initialized = self.handshake.whole()
        return self._initialized

    def set_handshake(self, handshake: Handshake) -> None:
        """Record the answer of a CLI to the handshake."""
        self.handshake, self._initialized = handshake, None

    def require(self) -> RunningCli:
        """Return the current CLI. Raises what the session failed with, or `ChannelClosed`.

        Raises `UsageError` in another event loop than that of the session.
        """
        self.home.check()
        if self.cause is not None:
            raise self.cause
        if self.running is None or self.handshake is None:
            raise ChannelClosed(NOT_STARTED, hint=HOW_TO_START)
        if not self.running.link.is_open:
            raise ChannelClosed("this session is closed", hint="open another session")
        return self.running

    def kill(self, why: Stalled | LimitReached) -> None:
        """Kill the CLI's process tree; `why` decides whether it is restarted."""
        self.why_killed = why
        if self.running is not None:
            self.running.link.kill()

    async def stop_turns(
        self, prompts: Sequence[SentPrompt], why: Stalled | LimitReached, patience: float
    ) -> None:
        """Interrupt the CLI; kill it if `prompts` have not settled after `patience` seconds."""
        cli = self.running
        if cli is None or not cli.link.is_open:
            return
        for prompt in prompts:
            prompt.cause = prompt.cause or why
        try:
            async with asyncio.timeout(patience):
                await cli.link.call(Interrupt(), patience)
                for prompt in prompts:
                    await prompt.result()
        except (TimeoutError, RequestError):
            if self.running is cli and not cli.link.exit_status.done():
                self.kill(why)

    def lacks(self, verb: Verb[Any]) -> frozenset[str]:
        """Return the capabilities that `verb` needs and the CLI has not listed.

        Before the first turn it has listed few: only what keeps a call safe must be among them.
        """
        listed = self.listed
        if listed is None:
            early = () if self.handshake is None else self.handshake.capabilities
            return (verb.needs & verb.GUARDS).difference(early)
        return verb.needs - listed

    def sends(self, operation: str) -> None:
        """Note a control request of the caller before it is sent."""
        self.has_set_servers |= operation == "mcp_set_servers"

    def record_change(self, verb: object) -> None:
        """Keep what a verb has changed in the CLI, so that the next CLI starts with it."""
        if isinstance(verb, SetModel):
            self.changed["model"] = verb.model
        elif isinstance(verb, SetPermissionMode):
            self.changed["permission_mode"] = verb.mode

    def fail(self, cause: SteersmanError) -> None:
        """Kill the CLI for good: the session fails with `cause`."""
        self.cause = cause
        if self.running is not None:
            self.running.link.end()

    def notify(self, server: str, message: JsonObject) -> None:
        """Send a JSON-RPC notification from an in-process MCP server, if a CLI is running."""
        if self.running is not None and self.running.link.is_open:
            verb = McpMessage(server_name=server, message=dict(message))
            self.running.link.notify(verb, self._request_timeout)

    def redact(self, line: bytes) -> bytes:
        """Return `line` without the secrets that the current CLI was given."""
        return line if self.running is None else self.running.link.redactor.line(line)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
