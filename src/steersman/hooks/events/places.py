"""Files and directories: settings, instructions, worktrees, what is watched."""

from __future__ import annotations

from typing import ClassVar

from steersman.hooks.events.event import HookEvent
from steersman.hooks.outputs import (
    CwdChangedOutput,
    FileChangedOutput,
    Output,
    WorktreeCreateOutput,
)

__all__ = [
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "InstructionsLoaded",
    "WorktreeCreate",
    "WorktreeRemove",
]


class ConfigChange(HookEvent, frozen=True, kw_only=True, tag="ConfigChange"):
    """A settings file has changed."""

    MATCHED: ClassVar[str] = "source"

    source: str = ""
    file_path: str | None = None


class WorktreeCreate(HookEvent, frozen=True, kw_only=True, tag="WorktreeCreate"):
    """A worktree is wanted: the callback makes it and answers with its path."""

    OUTPUT: ClassVar[type[Output] | None] = WorktreeCreateOutput

    name: str = ""


class WorktreeRemove(HookEvent, frozen=True, kw_only=True, tag="WorktreeRemove"):
    """A worktree that a callback made is to go."""

    worktree_path: str = ""


class InstructionsLoaded(HookEvent, frozen=True, kw_only=True, tag="InstructionsLoaded"):
    """A file of instructions was read, such as a `CLAUDE.md`."""

    MATCHED: ClassVar[str] = "load_reason"

    file_path: str = ""
    memory_type: str = ""
    load_reason: str = ""
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(HookEvent, frozen=True, kw_only=True, tag="CwdChanged"):
    """The working directory has changed. CLI 2.1.325 was not seen to call back for it."""

    OUTPUT: ClassVar[type[Output] | None] = CwdChangedOutput

    old_cwd: str = ""
    new_cwd: str = ""


class FileChanged(HookEvent, frozen=True, kw_only=True, tag="FileChanged"):
    """A watched file has changed; replies name the files to watch, by `watch_paths`."""

    OUTPUT: ClassVar[type[Output] | None] = FileChangedOutput
    MATCHED: ClassVar[str] = "file_name"

    file_path: str = ""
    event: str = ""

    @property
    def file_name(self) -> str:
        """The last part of the path."""
        return self.file_path.replace("\\", "/").rpartition("/")[2]


class DirectoryAdded(HookEvent, frozen=True, kw_only=True, tag="DirectoryAdded"):
    """Another working directory was added."""

    MATCHED: ClassVar[str] = "source"

    directory: str = ""
    source: str = ""
