"""The programs on the pages, as files that a type checker can read."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

HEAD = """
# pyright: reportUnusedVariable=false, reportUnusedExpression=false
# pyright: reportUnusedImport=false, reportUnusedFunction=false, reportDuplicateImport=false
from typing import Any, cast
"""
"""The programs on a page are parts of others, which use what these define."""

AGENT = "from steersman import Agent\n"
OWN_AGENT = frozenset({"docs/sync.md"})
"""Pages whose programs import another `Agent`."""

SESSION = """
from steersman import Session
session = cast(Session, None)
"""

BEFORE: Mapping[str, str] = {
    "docs/asks.md": """
from steersman.permissions import QuestionAnswer, QuestionAsk
ask_id = "q"
""",
    "docs/conformance.md": """
from steersman.testing import say
from steersman.testing.script import Step
from steersman_conformance.checks import scene
from steersman_conformance.hosting import Refusal
from steersman_conformance.raw import RawCli
from steersman_conformance.stage import Stage
def _hooks(event: str) -> dict[str, object]:
    return {}
def _write(stage: Stage, name: str) -> Step:
    return say(name)
def _exists(cli: RawCli, name: str) -> bool:
    return True
""",
    "docs/journal.md": """
from collections.abc import Sequence
from steersman.journal import Entry

class MySink:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_closed = False
    def write(self, entries: Sequence[Entry]) -> None:
        if not self.is_closed:
            self.entries.extend(entries)
    def close(self) -> None:
        self.is_closed = True
cursor = 0
def show(entry: Entry) -> None:
    pass
""",
    "docs/mcp.md": """
from steersman.tools.mcp_remote import RemoteCall
token = "secret"
def audit(call: RemoteCall) -> None:
    pass
def measure(call: RemoteCall, result: object) -> None:
    pass
""",
    "docs/messages.md": """
from steersman import Message, User
message = cast(Message, None)
user = cast(User, None)
""",
    "docs/permissions.md": """
from steersman import Allow, Deny
from steersman.journal import Entry
from steersman.permissions import PermissionContext
entries: list[Entry] = []
""",
    "docs/steering.md": f"{SESSION}\nfrom steersman.options import Revival, Watchdog\n",
    "docs/tour.md": """
def add(a: int, b: int) -> int:
    return a + b
""",
    "docs/verbs.md": f"{SESSION}\nfrom steersman.control import McpStatus\n",
}
"""What the programs of a page take as known: names that the text around them explains."""


def page_files() -> dict[str, str]:
    """Return the programs of each page as one file, by the name of the file."""
    found: dict[str, str] = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        programs = PROGRAM.findall(path.read_text(encoding="utf-8"))
        page = str(path.relative_to(ROOT))
        if programs:
            name = re.sub(r"\W", "_", page.removesuffix(".md")).lower()
            parts = [_whole(program, number) for number, program in enumerate(programs)]
            found[f"page_{name}.py"] = "\n".join((head_of(page), *parts))
    return found


def head_of(page: str) -> str:
    """Return the lines before the programs of a page."""
    agent = "" if page in OWN_AGENT else AGENT
    return f"{HEAD}{agent}\n{BEFORE.get(page, '')}"


def _whole(program: str, number: int) -> str:
    """Return a program that awaits outside of functions as the body of one."""
    code = compile(program, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if not code.co_flags & inspect.CO_COROUTINE:
        return program
    return f"async def part_{number}() -> None:\n{textwrap.indent(program, '    ')}"
