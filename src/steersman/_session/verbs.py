"""The verbs that people use daily, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from steersman.control import (
    ContextUsage,
    GetContextUsage,
    McpServers,
    McpStatus,
    ModelSet,
    PermissionModeSet,
    RewindFiles,
    Rewound,
    SetModel,
    SetPermissionMode,
    StopTask,
    Verb,
)
from steersman.errors import UsageError
from steersman.options import PermissionMode, checks

__all__ = ["DailyVerbs"]

AnswerT = TypeVar("AnswerT")


class DailyVerbs(ABC):
    """Everything here could be said with `call`."""

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
        return await self.call(McpStatus())

    async def context_usage(self) -> ContextUsage:
        """What fills the context window, and how much is left."""
        return await self.call(GetContextUsage())

    async def stop_task(self, task_id: str) -> None:
        """End a background task; an unknown id is no error to the CLI."""
        await self.call(StopTask(task_id=task_id))
