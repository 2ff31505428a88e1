"""What the checks look at: the options, the environment, and one CLI that is started once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._launch.environment import environment
from steersman.agent import Agent
from steersman.control.handshake import Initialized
from steersman.control.mcp import McpServers, McpServerStatus
from steersman.errors import SteersmanError, UsageError
from steersman.hooks import Hooks
from steersman.options import Options, StartupLimits
from steersman.transports import leftovers
from steersman.transports.locate import locate

PATIENCE = 20.0
"""Seconds for each phase of the start."""
MCP_PATIENCE = 10.0
"""Seconds for MCP servers to answer."""
POLL = 0.05
PROJECT_SERVERS = ".mcp.json"
BUNDLE = ("claude_agent_sdk", "_bundled")
"""The directories in which the official Python package has its CLI."""

StatusOf = Callable[[], Awaitable[McpServers]]


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a CLI reported, and how long it took."""

    initialized: Initialized
    seconds: float
    servers: tuple[McpServerStatus, ...]


class Machine:
    """The machine, as a session with `options` would see it; what is costly is done once."""

    def __init__(
        self,
        options: Options | None = None,
        environ: Mapping[str, str] = os.environ,
        *,
        now: float | None = None,
    ) -> None:
        self.options = options or Options()
        self.environ = dict(environ)
        """The variables of this process."""
        self.env = environment(self.environ, self.options.inherit_env, self.options.env)
        """The variables that the CLI would get."""
        self.now = time.time() if now is None else now
        self._handshake: asyncio.Task[Handshake] | None = None

    @cached_property
    def home(self) -> Path:
        """The home of the CLI."""
        return Path(self.env.get("HOME") or Path.home())

    @cached_property
    def config(self) -> Path:
        """The configuration directory of the CLI."""
        named = self.env.get("CLAUDE_CONFIG_DIR")
        return Path(named) if named else self.home / ".claude"

    @cached_property
    def temporary(self) -> Path:
        """The directory for temporary files."""
        return Path(self.env.get("TMPDIR") or "/tmp")  # noqa: S108 - what the CLI uses too

    @cached_property
    def cwd(self) -> Path:
        """The working directory of the CLI."""
        given = Path(self.options.cwd or ".")
        try:
            return given.absolute()
        except OSError:
            # The directory of this process was removed. The check of the protocol reports it.
            return given

    @cached_property
    def cli(self) -> str:
        """The path of the CLI. Raises `LaunchError`."""
        return locate(self.options.cli_path, self.environ)

    @cached_property
    def is_bundled(self) -> bool:
        """Whether the CLI is that of the official Python package. Raises `LaunchError`."""
        return Path(self.cli).parts[-3:-1] == BUNDLE

    @cached_property
    def leftovers(self) -> tuple[int, int]:
        """How many directories and processes killed hosts have left."""
        return leftovers.count_left(str(self.temporary)), leftovers.count_orphans()

    @cached_property
    def servers(self) -> dict[str, JsonObject]:
        """The MCP servers outside of this process: of the options, and of the project.

        Raises `UsageError` if a file of them cannot be read.
        """
        given = self.options.mcp_servers
        found = _servers_in(self.cwd / PROJECT_SERVERS, must_exist=False)
        if isinstance(given, str | Path):
            return {**found, **_servers_in(self.cwd / given, must_exist=True)}
        return {**found, **{key: each for key, each in given.items() if _json.is_mapping(each)}}

    async def handshake(self) -> Handshake:
        """Start the CLI and initialize it, once. Raises what the start raises."""
        if self._handshake is None:
            # A start removes what killed hosts have left, so that is counted before.
            _ = self.leftovers
            self._handshake = asyncio.Task(self._start())
        return await asyncio.shield(self._handshake)

    async def aclose(self) -> None:
        """End the CLI, if it was started."""
        if self._handshake is not None:
            self._handshake.cancel()
            await asyncio.wait([self._handshake])

    async def _start(self) -> Handshake:
        begun = time.monotonic()
        options = self.session_options()
        async with Agent(options).session() as session:
            seconds = time.monotonic() - begun
            found = await _settled(session.mcp_status) if options.mcp_servers else ()
            return Handshake(session.initialized, seconds, found)

    def session_options(self) -> Options:
        """Return the options of the session that is started: it continues and sends nothing."""
        try:
            servers = self.servers
        except UsageError:
            # The check of the servers reports it.
            servers = {}
        return self.options.replace(
            cli_path=self.cli,
            env=self.env,
            inherit_env=False,
            mcp_servers=servers,
            require=(),
            startup=StartupLimits(spawn=PATIENCE, first_byte=PATIENCE, initialize=PATIENCE),
            persist_session=False,
            revive=False,
            **_NOTHING,
        )


_NOTHING: JsonDict = {
    # A hook of SessionStart may send a prompt.
    "hooks": Hooks(),
    "prompt_suggestions": False,
    "resume": None,
    "continue_conversation": False,
    "fork_session": False,
    "resume_session_at": None,
    "resume_drops_turn": None,
    "session_id": None,
    "session_store": None,
    "journal": None,
    "sinks": (),
    "flight_recorder": None,
}


async def _settled(status: StatusOf) -> tuple[McpServerStatus, ...]:
    """Return the servers once none of them is still connecting, or after `MCP_PATIENCE`."""
    found: tuple[McpServerStatus, ...] = ()
    try:
        async with asyncio.timeout(MCP_PATIENCE):
            while True:
                found = tuple((await status()).servers)
                if all(each.status != "pending" for each in found):
                    break
                await asyncio.sleep(POLL)
    except (TimeoutError, SteersmanError):
        pass
    return found


def _servers_in(path: Path, *, must_exist: bool) -> dict[str, JsonObject]:
    if not must_exist and not path.exists():
        return {}
    allowed = 'a file with {"mcpServers": {...}}'
    try:
        content = _json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(str(path), error.strerror, allowed) from None
    except ValueError:
        raise UsageError(str(path), "text that is not JSON", allowed) from None
    servers = content.get("mcpServers") if _json.is_object(content) else None
    if not _json.is_object(servers):
        raise UsageError(str(path), "something else", allowed)
    return {key: each for key, each in servers.items() if _json.is_object(each)}
