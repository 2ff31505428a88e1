"""Rewrites the imports of a program from the official package to `steersman.compat`. No I/O.

What cannot be decided from the text stays as it is and becomes a `Note`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module

import steersman.compat
from steersman.compat._undecided import (
    INSTRUMENTING,
    MENTION,
    OLDER,
    PACKAGES,
    RENAMED,
    Note,
    instrumentors_in,
    notes_of_lines,
    notes_of_tree,
)

__all__ = ["Migrated", "Note", "migrate_notebook", "migrate_requirements", "migrate_source"]

OURS = "steersman.compat"
SUBMODULES = frozenset({"types", "testing", "client"})
"""The official modules that ours has under the same name, beside the package itself."""
HOMES = {"_internal.message_parser": f"{OURS}.parsing"}
"""Private modules whose names are public in another of ours."""
AS_A_WHOLE = "nothing in this file is changed"
LATER = re.compile(rb"(?m)^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+\w+\[|^[ \t]*type[ ]+\w+[ ]*[=\[]")
"""What Python 3.11 cannot read: type parameters, and the statement `type`."""
_MODULE = re.compile(r"from[\s\\]+(claude_(?:agent|code)_sdk(?:[\s\\]*\.[\s\\]*\w+)*)")


@dataclass(frozen=True, slots=True)
class Migrated:
    """A file after its imports were rewritten, and what is left for its author to decide."""

    data: bytes
    notes: tuple[Note, ...] = ()


def migrate_source(data: bytes) -> Migrated:
    """Return a Python file with the imports of `steersman.compat`."""
    if MENTION.search(data) is None and INSTRUMENTING.search(data) is None:
        return Migrated(data)
    try:
        source = Source.of(data)
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Migrated(data, (_unread(data, error),))
    edits = Edits(source)
    undecided = [*_rewrite(tree, edits)]
    # With classes of both packages `isinstance` would be false without an error.
    changed = data if undecided else edits.apply() if edits.found else data
    left = [Note(each.line, f"{each.text}; {AS_A_WHOLE}") for each in undecided]
    return Migrated(changed, tuple(sorted({*left, *notes_of_tree(tree)})))


def migrate_requirements(data: bytes) -> Migrated:
    """Return a file that names packages, unchanged, and the lines to look at."""
    words = "names the package; add steersman, which finds the CLI in claude-agent-sdk too"
    notes = [*notes_of_lines(data, words), *instrumentors_in(data)]
    # An instrumentor may have the name of the package in its own.
    by_line = {each.line: each for each in notes}
    return Migrated(data, tuple(sorted(by_line.values())))


def migrate_notebook(data: bytes) -> Migrated:
    """Return a notebook, unchanged, and the lines to look at."""
    words = "notebooks are not rewritten; change this cell by hand"
    return Migrated(data, tuple(notes_of_lines(data, words)))


def _unread(data: bytes, error: Exception) -> Note:
    """Return why a file cannot be read, and the Python that can, where that is known."""
    line = (error.lineno or 1) if isinstance(error, SyntaxError) else 1
    if sys.version_info < (3, 12) and isinstance(error, SyntaxError) and LATER.search(data):
        why = "it has type parameters, which need 3.12: run migrate with that Python"
        return Note(line, f"this file cannot be read as Python 3.11; {why}")
    what = error.msg if isinstance(error, SyntaxError) else str(error) or "too complex"
    return Note(line, f"this file cannot be read as Python ({what})")


def _rewrite(tree: ast.Module, edits: Edits) -> Iterator[Note]:
    """Rewrite all import statements, wherever they are."""
    older: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _is_official(node.module) and not node.level:
            yield from _rewrite_from(node, edits)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_official(alias.name):
                    yield from _rewrite_plain(node, alias, edits)
                    if alias.name.partition(".")[0] == OLDER:
                        older.add(alias.asname or OLDER)
    _rename_attributes(tree, edits, older)


def _rewrite_from(node: ast.ImportFrom, edits: Edits) -> Iterator[Note]:
    """Rewrite `from claude_agent_sdk... import ...`."""
    package, _, below = (node.module or "").partition(".")
    first = below.partition(".")[0]
    home = HOMES.get(below) or (f"{OURS}.{first}" if first in ("types", "testing") else OURS)
    unknown = [each.name for each in node.names if not _has(home, package, each.name)]
    private = f"{node.module} is private" if _is_private(below) else f"{home} has no such name"
    if unknown:
        hint = " or ".join(_instead(each) for each in unknown)
        yield Note(node.lineno, f"{', '.join(unknown)}: {private}; {hint}")
        return
    begin, _ = edits.source.span(node)
    found = _MODULE.match(edits.source.text, begin)
    if found is None:
        yield Note(node.lineno, "this import is written in a form that is not rewritten")
        return
    edits.replace(found.span(1), home)
    for alias in node.names:
        if package == OLDER and alias.name in RENAMED:
            new = f"{RENAMED[alias.name]} as {alias.asname or alias.name}"
            edits.replace(edits.source.span(alias), new)


def _rewrite_plain(node: ast.Import, alias: ast.alias, edits: Edits) -> Iterator[Note]:
    """Rewrite `import claude_agent_sdk`; the name that it binds stays the same."""
    package, _, below = alias.name.partition(".")
    if _is_private(below) or (below == "query" and alias.asname):
        yield Note(node.lineno, f"{alias.name} is private; {_instead(below)}")
        return
    if below and below != "query" and below.partition(".")[0] not in SUBMODULES:
        yield Note(node.lineno, f"{OURS} has no module {below}")
        return
    if alias.asname is None:
        # It binds the package. The modules below ours are attributes of it, loaded when needed.
        edits.replace(edits.source.span(alias), f"{OURS} as {package}")
        return
    module = below.removesuffix(".session_store_conformance")
    edits.replace(
        edits.source.span(alias), f"{OURS}{'.' if module else ''}{module} as {alias.asname}"
    )


def _rename_attributes(tree: ast.Module, edits: Edits, names: set[str]) -> None:
    """Rewrite `claude_code_sdk.ClaudeCodeOptions`, for the names that are bound to the package."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
            and node.attr in RENAMED
        ):
            _, end = edits.source.span(node)
            edits.replace((end - len(node.attr), end), RENAMED[node.attr])


def _is_official(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in PACKAGES


def _is_private(below: str) -> bool:
    return any(each.startswith("_") for each in below.split("."))


def _has(home: str, package: str, name: str) -> bool:
    """Return whether one of our modules has a name of an official one."""
    wanted = RENAMED.get(name, name) if package == OLDER else name
    if name == "*":
        return True
    if home == OURS:
        return wanted in steersman.compat.__all__ or wanted in SUBMODULES
    return not wanted.startswith("_") and hasattr(import_module(home), wanted)


def _instead(name: str) -> str:
    if name.endswith("Error"):
        return "catch ClaudeSDKError, the base of all errors of the package"
    if "transport" in name.lower():
        return "write your own transport with claude_agent_sdk.Transport, or use a steersman one"
    return "use client.session, or raw_of(message) from steersman.compat.parsing"


# Changes of a source at positions of its syntax tree; all other bytes stay as they are

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: its text, its encoding, and where its lines begin."""

    text: str
    encoding: str
    begins: tuple[int, ...]

    @classmethod
    def of(cls, data: bytes) -> Source:
        """Return the source in `data`. Raises `SyntaxError` or `UnicodeDecodeError`."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        # Newlines are kept: Python reads \r\n and \r as \n, so that the numbers of lines agree.
        text = data.decode(encoding)
        return cls(text, encoding, (0, *(each.end() for each in _NEWLINE.finditer(text))))

    def offset(self, line: int, column: int) -> int:
        """Return the offset in the text of a place in the tree, whose columns are UTF-8 bytes."""
        begin = self.begins[line - 1]
        # Characters take one byte or more, so that this part is long enough.
        part = self.text[begin : begin + column].encode("utf-8", "surrogatepass")
        return begin + len(part[:column].decode("utf-8", "surrogatepass"))

    def span(self, node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.offset(node.lineno, node.col_offset), end


@dataclass(slots=True)
class Edits:
    """What is put in the place of what."""

    source: Source
    found: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    def replace(self, span: tuple[int, int], text: str) -> None:
        """Put `text` in the place of a part of the source. Parts do not overlap."""
        self.found[span] = text

    def apply(self) -> bytes:
        """Return the changed file, in its own encoding."""
        text = self.source.text
        for (begin, end), new in sorted(self.found.items(), reverse=True):
            text = text[:begin] + new + text[end:]
        return text.encode(self.source.encoding)
