"""Tools that read, search and write files."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman._struct import Readers, many, one
from steersman.messages.builtin.base import Part, ToolInput, ToolOutput

__all__ = [
    "FileContent",
    "FileEditInput",
    "FileEditOutput",
    "FileReadInput",
    "FileReadOutput",
    "FileWriteInput",
    "FileWriteOutput",
    "GlobInput",
    "GlobOutput",
    "GrepInput",
    "GrepOutput",
    "Hunk",
    "LSPInput",
    "NotebookEditInput",
    "NotebookEditOutput",
]


class FileReadInput(ToolInput, frozen=True, kw_only=True):
    """`Read`: show a file."""

    file_path: str = ""
    offset: int | None = None
    limit: int | None = None
    pages: str | None = None
    allow_large: bool | None = None


class FileContent(Part, frozen=True, kw_only=True, rename="camel"):
    """What was read: lines of text, or a picture, a notebook, a document."""

    file_path: str | None = None
    content: str | None = None
    num_lines: int | None = None
    start_line: int | None = None
    total_lines: int | None = None
    base64: str | None = None
    type: str | None = None
    original_size: int | None = None
    dimensions: dict[str, Any] | None = None
    cells: list[Any] | None = None
    count: int | None = None
    output_dir: str | None = None


class FileReadOutput(ToolOutput, frozen=True, kw_only=True):
    """What `Read` gave; `type` tells text from pictures, notebooks and documents."""

    READERS: ClassVar[Readers] = {"file": one(FileContent)}

    type: str | None = None
    file: FileContent | None = None
    artifact_read: Any = None
    first_page: Any = None
    pages: Any = None


class FileWriteInput(ToolInput, frozen=True, kw_only=True):
    """`Write`: put a whole file."""

    file_path: str = ""
    content: str = ""


class Hunk(Part, frozen=True, kw_only=True, rename="camel"):
    """A place where a file changed, as a patch tells it."""

    old_start: int = 0
    old_lines: int = 0
    new_start: int = 0
    new_lines: int = 0
    lines: list[str] = []


class FileWriteOutput(ToolOutput, frozen=True, kw_only=True):
    """What `Write` did; `type` is `create` or `update`."""

    READERS: ClassVar[Readers] = {"structured_patch": many(Hunk)}

    type: str | None = None
    file_path: str | None = None
    content: str | None = None
    structured_patch: list[Hunk] | None = None
    original_file: str | None = None
    git_diff: dict[str, Any] | None = None
    user_modified: bool | None = None
    staged: Any = None


class FileEditInput(ToolInput, frozen=True, kw_only=True):
    """`Edit`: replace a text in a file."""

    file_path: str = ""
    old_string: str = ""
    new_string: str = ""
    replace_all: bool | None = None


class FileEditOutput(ToolOutput, frozen=True, kw_only=True):
    """What `Edit` did."""

    READERS: ClassVar[Readers] = {"structured_patch": many(Hunk)}

    file_path: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    original_file: str | None = None
    structured_patch: list[Hunk] | None = None
    user_modified: bool | None = None
    replace_all: bool | None = None
    git_diff: dict[str, Any] | None = None
    staged: Any = None


class NotebookEditInput(ToolInput, frozen=True, kw_only=True):
    """`NotebookEdit`: change a cell of a notebook."""

    notebook_path: str = ""
    new_source: str = ""
    cell_id: str | None = None
    cell_type: str | None = None
    edit_mode: str | None = None


class NotebookEditOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """What `NotebookEdit` did."""

    new_source: str | None = None
    old_source: str | None = None
    cell_id: str | None = None
    cell_type: str | None = None
    language: str | None = None
    edit_mode: str | None = None
    error: str | None = None
    notebook_path: str | None = None
    original_file: str | None = None
    updated_file: str | None = None


class GlobInput(ToolInput, frozen=True, kw_only=True):
    """`Glob`: find files by name."""

    pattern: str = ""
    path: str | None = None


class GlobOutput(ToolOutput, frozen=True, kw_only=True):
    """The files that `Glob` found."""

    filenames: list[str] | None = None
    num_files: int | None = None
    duration_ms: float | None = None
    truncated: bool | None = None
    total_matches: int | None = None
    count_is_complete: bool | None = None
    timed_out: bool | None = None


class GrepInput(ToolInput, frozen=True, kw_only=True):
    """`Grep`: find text in files. Its flags have words here."""

    pattern: str = ""
    path: str | None = None
    glob: str | None = None
    type: str | None = None
    output_mode: str | None = None
    lines_before: float | None = field(default=None, name="-B")
    lines_after: float | None = field(default=None, name="-A")
    lines_around: float | None = field(default=None, name="-C")
    context: float | None = None
    line_numbers: bool | None = field(default=None, name="-n")
    ignore_case: bool | None = field(default=None, name="-i")
    only_matching: bool | None = field(default=None, name="-o")
    head_limit: float | None = None
    offset: float | None = None
    multiline: bool | None = None


class GrepOutput(ToolOutput, frozen=True, kw_only=True):
    """What `Grep` found; `mode` tells lines from files and counts."""

    mode: str | None = None
    num_files: int | None = None
    filenames: list[str] | None = None
    content: str | None = None
    num_lines: int | None = None
    num_matches: int | None = None
    total_files: int | None = None
    total_lines: int | None = None
    applied_limit: int | None = None
    applied_offset: int | None = None
    timed_out: bool | None = None


class LSPInput(ToolInput, frozen=True, kw_only=True):
    """`LSP`: ask a language server. Known by name only; `raw` has what was asked."""
