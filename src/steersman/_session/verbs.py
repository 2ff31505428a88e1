"""The verbs that people use daily, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from steersman._session.mcp_servers import McpControls
from steersman.control.context import ContextUsage, GetContextUsage
from steersman.control.files import RewindFiles, Rewound
from steersman.control.mcp import McpServers, McpServersSet
from steersman.control.models import ModelSet, SetModel
from steersman.control.permissions import PermissionModeSet, SetPermissionMode
from steersman.control.tasks import StopTask
from steersman.control.verbs import Verb
from steersman.errors import UsageError
from steersman.options import PermissionMode, checks
from steersman.options.servers import McpServer
from steersman.ports import JsonObject, ToolServer

__all__ = ["DailyVerbs"]

AnswerT = TypeVar("AnswerT")


class DailyVerbs(ABC):
    """Everything here could be said with `call`."""

    mcp: McpControls
    """The tool servers of the running session."""

    @abstractmethod
    async def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Put `verb` to the CLI and wait for its answer."""

    async def set_model(self, model: str | None) -> ModelSet:
        """Use another model from the next API call on; `None` is the default one."""
        if not (model is None or (isinstance(model, str) and model)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("model", model, "a model's name, or None")
        return await self.call(SetModel(model=model))

    async def set_permission_mode(self, mode: PermissionMode) -> PermissionModeSet:
        """Ask more, ask less, or plan only."""
        checks.permission_mode("mode", mode)
        return await self.call(SetPermissionMode(mode=mode))

    async def rewind_files(self, user_message_id: str, *, dry_run: bool = False) -> Rewound:
        """Put files back to where they stood before a prompt; needs file checkpointing."""
        return await self.call(RewindFiles(user_message_id=user_message_id, dry_run=dry_run))

    async def mcp_status(self) -> McpServers:
        """How the tool servers are."""
        return await self.mcp.status()

    async def mcp_reconnect(self, server_name: str) -> None:
        """Have the CLI connect to an external tool server again. Raises `RequestRefused`."""
        await self.mcp.reconnect(server_name)

    async def mcp_toggle(self, server_name: str, *, enabled: bool) -> None:
        """Take a tool server out of use, or into use again."""
        await self.mcp.toggle(server_name, enabled=enabled)

    async def mcp_set_servers(
        self, servers: Mapping[str, ToolServer | McpServer | JsonObject | None]
    ) -> McpServersSet:
        """Replace the external servers that this method has added before, and add own ones.

        Servers in this process that are not named stay; `None` takes one away.
        Raises `McpNotReady` when a server in this process cannot be attached.
        """
        return await self.mcp.set_servers(servers)

    async def context_usage(self) -> ContextUsage:
        """What fills the context window, and how much is left."""
        return await self.call(GetContextUsage())

    async def stop_task(self, task_id: str) -> None:
        """End a background task; an unknown id is no error to the CLI."""
        await self.call(StopTask(task_id=task_id))
